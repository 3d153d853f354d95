"""Logins by Kerberos: SASL's mechanism GSSAPI (RFC 4752), with the ticket or keytab of this process, through gssapi."""

from __future__ import annotations

import importlib
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

from hudi_locks.config import Key
from hudi_locks.errors import BackendRefused, BackendUnavailable, ConfigError, LockError, ProviderLoadError

__all__ = ["PROTECTIONS", "KerberosLogin", "check_principal", "import_gssapi", "list_principals"]

PROTECTIONS: Final = {"auth": 1, "auth-int": 2, "auth-conf": 4}
"""What may guard a connection after the login, with its bit: nothing, signatures, or encryption."""
_MOST_BYTES: Final = 0xFF_FF_FF
_HOST: Final = "_HOST"
_CODES: Final = 0xFF_FF_FF_FF
_NO_ANSWER_OF_KDC: Final = -1765328228 & _CODES
"""KRB5_KDC_UNREACH."""
_NO_SUCH_SERVER: Final = -1765328377 & _CODES
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN."""
_EXPIRED: Final = -1765328352 & _CODES
"""KRB5KRB_AP_ERR_TKT_EXPIRED."""
_known: Final[dict[tuple[str, ...], str]] = {}
"""Which of several names a service has: that a realm does not know the others would be asked again each time."""


class KerberosLogin:
    """One login to one service, and what guards the connection after it. Not thread-safe.

    Args:
        principals: The service's, as `hive/host@REALM`; the next one is taken where nobody is called so.
        key: The key by which a user names another one.
        protections: Which of `PROTECTIONS` may be agreed on, best first.

    Attributes:
        is_complete: Whether this side has sent all that a login needs.
        protection: What was agreed on; "auth" until then.

    Raises:
        ProviderLoadError: gssapi cannot be imported; says how it is installed.
    """

    def __init__(self, principals: tuple[str, ...], key: Key[str], protections: tuple[str, ...] = ("auth",)) -> None:
        self.is_complete = False
        self.protection: str = "auth"
        known = [_known[principals]] if principals in _known else []
        self._principal, *self._others = dict.fromkeys([*known, *principals])
        self._names = principals
        self._key = key
        self._protections = protections
        self._gssapi = import_gssapi()
        self._context: Any = None

    def step(self, challenge: bytes | None) -> bytes:
        """The answer to a challenge of the server; to None, which begins the login, its first message.

        Raises:
            BackendRefused: There is no ticket for this, the server is not who it should be, or it offers none of the
                protections.
            BackendUnavailable: The key distribution center does not answer.
        """
        try:
            if self._context is None:
                return self._begin()
            if not self._context.complete:
                return self._context.step(challenge) or b""
            return self._agree(challenge or b"")
        except self._gssapi.exceptions.GSSError as error:
            raise self._explain(error) from error

    def _begin(self) -> bytes:
        while True:
            self._context = self._open_context()
            try:
                first = self._context.step() or b""
            except self._gssapi.exceptions.GSSError as error:
                if not (self._others and error.min_code & _CODES == _NO_SUCH_SERVER):
                    raise
                self._principal = self._others.pop(0)
                continue
            _known[self._names] = self._principal
            return first

    def _open_context(self) -> Any:
        gssapi, flags = self._gssapi, self._gssapi.RequirementFlag
        return gssapi.SecurityContext(
            name=gssapi.Name(self._principal, gssapi.NameType.kerberos_principal),
            mech=gssapi.MechType.kerberos,
            flags=[flags.mutual_authentication, flags.integrity, flags.confidentiality],
            usage="initiate",
        )

    def _agree(self, challenge: bytes) -> bytes:
        """Choose one of the protections that the server offers, and tell it."""
        offered = self._context.unwrap(challenge).message[:1]
        mask = offered[0] if offered else 0
        found = next((name for name in self._protections if PROTECTIONS[name] & mask), None)
        if found is None:
            theirs = ", ".join(name for name, bit in PROTECTIONS.items() if bit & mask) or "nothing"
            what = f"{self._principal} offers {theirs} to guard a connection, and not {', '.join(self._protections)}"
            told = "make hadoop.rpc.protection the same on both sides"
            raise BackendRefused(f"{what}: {told}", principal=self._principal)
        self.protection, self.is_complete = found, True
        answer = PROTECTIONS[found] << 24 | (0 if found == "auth" else _MOST_BYTES)
        return bytes(self._context.wrap(struct.pack(">I", answer), False).message)

    def wrap(self, data: bytes) -> bytes:
        """`data` as it goes to the server.

        Raises:
            BackendUnavailable: The context of this login has ended.
        """
        if self.protection == "auth":
            return data
        return self._guard(lambda: self._context.wrap(data, self.protection == "auth-conf"))

    def unwrap(self, data: bytes) -> bytes:
        """What the server sent.

        Raises:
            BackendUnavailable: Somebody changed it, it is not encrypted as was agreed, or the context has ended.
        """
        return data if self.protection == "auth" else self._guard(lambda: self._context.unwrap(data))

    def _guard(self, act: Callable[[], Any]) -> bytes:
        try:
            done = act()
        except self._gssapi.exceptions.GSSError as error:
            said = f"the connection to {self._principal} is not guarded any more: {_read_message(error)}"
            raise BackendUnavailable(said, principal=self._principal) from error
        if self.protection == "auth-conf" and not done.encrypted:
            raise BackendUnavailable(f"{self._principal} sends what is not encrypted", principal=self._principal)
        return bytes(done.message)

    def _explain(self, error: Any) -> LockError:
        """What an error of GSSAPI means."""
        said, facts = _read_message(error), {"principal": self._principal}
        if error.min_code & _CODES == _NO_ANSWER_OF_KDC:
            return BackendUnavailable(f"no ticket for {self._principal} could be had: {said}", **facts)
        gone = self._gssapi.exceptions
        is_gone = isinstance(error, (gone.MissingCredentialsError, gone.ExpiredCredentialsError))
        if is_gone or error.min_code & _CODES == _EXPIRED:
            told = "get one with kinit, or name a keytab in KRB5_CLIENT_KTNAME"
            return BackendRefused(f"this process has no valid Kerberos ticket ({said}): {told}", **facts)
        told = f"check the principal of the server ({self._key.name}) and the clocks of both machines"
        if error.min_code & _CODES == _NO_SUCH_SERVER:
            told = f"give the principal of the server by {self._key.name}"
        return BackendRefused(f"the login by Kerberos to {self._principal} fails ({said}): {told}", **facts)


def _read_message(error: Any) -> str:
    """What the mechanism says, else what GSSAPI does."""
    found = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(error.maj_code, True)
    return " ".join(found)


def import_gssapi() -> Any:
    """The module, when it is first needed.

    Raises:
        ProviderLoadError: It cannot be imported; says how it is installed.
    """
    try:
        return importlib.import_module("gssapi")
    except ImportError as error:
        raise ProviderLoadError(
            "a login by Kerberos needs gssapi: pip install 'hudi-locks[kerberos]', which builds it from the headers of"
            f" Debian's libkrb5-dev, with gcc and python3-dev ({error})",
            module="gssapi",
        ) from error


def check_principal(text: str, key: Key[str]) -> str:
    """`text`, once it is known to be a service's principal.

    Raises:
        ConfigError: It is not of the form service/host@REALM.
    """
    service, _, rest = text.partition("/")
    host, at, realm = rest.partition("@")
    if not (service and host and (realm or not at)):
        message = f"{text!r} is no principal of a service: give {key.name}=service/{_HOST}@REALM"
        raise ConfigError(message, key=key.name)
    return text


def list_principals(template: str, host: str) -> tuple[str, ...]:
    """What a service on a host may be called: `_HOST` stands for the host as it was given, else its name in the DNS.

    Hive 2 takes the first, Hive 3 and ZooKeeper the second.
    """
    service, _, rest = template.partition("/")
    named, at, realm = rest.partition("@")
    hosts = dict.fromkeys([host.lower(), _find_full_name(host)]) if named == _HOST else [named]
    return tuple(f"{service}/{one}{at}{realm}" for one in hosts)


def _find_full_name(host: str) -> str:
    """In small letters; as it was given where the DNS has no name for its address."""
    try:
        address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4]
        return socket.getnameinfo(address, socket.NI_NAMEREQD)[0].lower()
    except OSError:
        return host.lower()
