"""A stand-in for gssapi: a login of two messages, and seals that can be read. tests/servers has the real one."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace
from typing import Any

import pytest

__all__ = ["PEER_TOKEN", "FakeGssapi", "offer"]

PEER_TOKEN = b"server's token"
UNKNOWN, EXPIRED, UNREACHABLE = -1765328377, -1765328352, -1765328228


class GSSError(Exception):
    maj_code = 851968

    def __init__(self, code: int = 0, text: str = "") -> None:
        super().__init__(text)
        self.min_code = code & 0xFFFFFFFF
        self.text = text

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        return [self.text] if self.text and not is_major else []


class MissingCredentialsError(GSSError):
    pass


class ExpiredCredentialsError(GSSError):
    pass


def offer(mask: int, *, encrypted: bool = False) -> bytes:
    """What a server seals to tell which protections it offers."""
    return (b"E" if encrypted else b"S") + struct.pack(">I", mask << 24 | 65_536)


class FakeGssapi:
    """The module.

    Attributes:
        raises: For principals, the error of the first step.
        asked: The principals that a ticket was asked for.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.raises: dict[str, GSSError] = {}
        self.asked: list[str] = []
        errors = (GSSError, MissingCredentialsError, ExpiredCredentialsError)
        self.exceptions = SimpleNamespace(**{one.__name__: one for one in errors})
        self.RequirementFlag = SimpleNamespace(mutual_authentication=1, integrity=2, confidentiality=3)
        self.NameType = SimpleNamespace(kerberos_principal="principal")
        self.MechType = SimpleNamespace(kerberos="krb5")
        monkeypatch.setitem(sys.modules, "gssapi", self)

    def Name(self, text: str, kind: str) -> str:  # noqa: N802
        assert kind == "principal"
        return text

    def SecurityContext(self, **given: Any) -> Context:  # noqa: N802
        assert given["usage"] == "initiate"
        return Context(self, given["name"])


class Context:
    def __init__(self, module: FakeGssapi, name: str) -> None:
        self.module, self.name, self.complete = module, name, False

    def step(self, token: bytes | None = None) -> bytes | None:
        if token is None:
            self.module.asked.append(self.name)
            if error := self.module.raises.get(self.name):
                raise error
            return f"ticket for {self.name}".encode()
        if token != PEER_TOKEN:
            raise GSSError(1, "a token is defective")
        self.complete = True
        return None

    def wrap(self, data: bytes, encrypt: bool) -> SimpleNamespace:
        return SimpleNamespace(message=(b"E" if encrypt else b"S") + data, encrypted=encrypt)

    def unwrap(self, data: bytes) -> SimpleNamespace:
        if data[:1] not in (b"E", b"S"):
            raise GSSError(2, "a seal is broken")
        return SimpleNamespace(message=data[1:], encrypted=data[:1] == b"E")
