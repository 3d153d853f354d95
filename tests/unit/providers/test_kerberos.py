"""Logins by Kerberos on a stand-in for gssapi: what is agreed on, and what errors mean."""

from __future__ import annotations

import sys

import pytest
from fake_gssapi import EXPIRED, PEER_TOKEN, UNKNOWN, UNREACHABLE, FakeGssapi, GSSError, MissingCredentialsError, offer
from hudi_locks_providers._kerberos import PROTECTIONS, KerberosLogin, check_principal, list_principals

from hudi_locks import BackendRefused, BackendUnavailable, ConfigError, ProviderLoadError
from hudi_locks.config import security_keys

KEY = security_keys.HIVE_PRINCIPAL
NAME, OTHER = "hive/alias@R", "hive/node1.example.com@R"


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> FakeGssapi:
    monkeypatch.setattr("hudi_locks_providers._kerberos._known", {})
    return FakeGssapi(monkeypatch)


def log_in(mask: int, *protections: str) -> tuple[KerberosLogin, bytes]:
    """A login, and its last message to the server."""
    login = KerberosLogin((NAME,), KEY, protections)
    assert login.step(None) == b"ticket for hive/alias@R"
    assert login.step(PEER_TOKEN) == b""
    assert not login.is_complete
    return login, login.step(offer(mask))


@pytest.mark.parametrize(
    ("mask", "protections", "agreed", "told"),
    [
        (1, ("auth",), "auth", b"S\x01\0\0\0"),
        (7, tuple(PROTECTIONS), "auth", b"S\x01\0\0\0"),
        (6, tuple(PROTECTIONS), "auth-int", b"S\x02\xff\xff\xff"),
        (7, ("auth-conf", "auth-int"), "auth-conf", b"S\x04\xff\xff\xff"),
    ],
)
@pytest.mark.usefixtures("gssapi")
def test_the_first_protection_that_both_have_is_agreed_on(
    mask: int, protections: tuple[str, ...], agreed: str, told: bytes
) -> None:
    login, last = log_in(mask, *protections)
    assert (login.is_complete, login.protection, last) == (True, agreed, told)


@pytest.mark.parametrize(("mask", "on_wire"), [(1, b"data"), (2, b"Sdata"), (4, b"Edata")])
@pytest.mark.usefixtures("gssapi")
def test_messages_are_guarded_as_was_agreed(mask: int, on_wire: bytes) -> None:
    login, _ = log_in(mask, *PROTECTIONS)
    assert login.wrap(b"data") == on_wire
    assert login.unwrap(on_wire) == b"data"


@pytest.mark.usefixtures("gssapi")
def test_what_is_not_guarded_as_was_agreed_is_not_taken() -> None:
    login, _ = log_in(4, "auth-conf")
    with pytest.raises(BackendUnavailable, match="is not guarded any more: a seal is broken"):
        login.unwrap(b"data")
    with pytest.raises(BackendUnavailable, match="sends what is not encrypted"):
        login.unwrap(b"Sdata")


@pytest.mark.usefixtures("gssapi")
def test_protections_that_only_one_side_has_are_refused() -> None:
    with pytest.raises(BackendRefused, match=r"offers auth to guard a connection, and not auth-conf: make hadoop.rpc"):
        log_in(1, "auth-conf")


def test_the_next_name_is_taken_where_nobody_is_called_so(gssapi: FakeGssapi) -> None:
    gssapi.raises[NAME] = GSSError(UNKNOWN, "not found")
    assert KerberosLogin((NAME, OTHER), KEY).step(None) == f"ticket for {OTHER}".encode()
    assert KerberosLogin((NAME, OTHER), KEY).step(None) == f"ticket for {OTHER}".encode()
    assert gssapi.asked == [NAME, OTHER, OTHER], "what a realm does not know is not asked for again"
    gssapi.raises[OTHER] = GSSError(UNKNOWN, "not found")
    with pytest.raises(BackendRefused, match=rf"{NAME} fails \(not found\): give .* by {KEY.name}$"):
        KerberosLogin((NAME, OTHER), KEY).step(None)


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (GSSError(UNREACHABLE, "no KDC"), BackendUnavailable, f"no ticket for {NAME} could be had: no KDC"),
        (GSSError(5, "skewed"), BackendRefused, rf"to {NAME} fails \(skewed\): check the principal .* and the clocks"),
        (
            MissingCredentialsError(6, "none"),
            BackendRefused,
            r"no valid Kerberos ticket \(none\): get one with kinit, or",
        ),
        (
            GSSError(EXPIRED, "old"),
            BackendRefused,
            r"no valid Kerberos ticket \(old\): get one with kinit, or name a key",
        ),
    ],
)
def test_an_error_says_what_to_do(gssapi: FakeGssapi, error: GSSError, raised: type[Exception], said: str) -> None:
    gssapi.raises[NAME] = error
    with pytest.raises(raised, match=said):
        KerberosLogin((NAME, OTHER), KEY).step(None)
    assert gssapi.asked == [NAME]


@pytest.mark.usefixtures("gssapi")
def test_a_server_that_is_not_who_it_should_be_is_refused() -> None:
    login = KerberosLogin((NAME,), KEY)
    login.step(None)
    with pytest.raises(BackendRefused, match="a token is defective"):
        login.step(b"")


def test_what_is_missing_is_named_with_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ProviderLoadError, match=r"pip install 'hudi-locks\[kerberos\]'.* Debian's libkrb5-dev"):
        KerberosLogin((NAME,), KEY)


@pytest.mark.parametrize("text", ["hive", "hive@R", "/host@R", "hive/@R", "hive/host@"])
def test_what_is_no_principal_of_a_service_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is no principal of a service: give .*principal=service/_HOST@REALM"):
        check_principal(text, KEY)
    assert check_principal("hive/_HOST", KEY) == "hive/_HOST"


def test_the_host_of_a_principal_is_the_one_given_else_its_name_in_the_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("10.0.0.1", 0))])
    monkeypatch.setattr("socket.getnameinfo", lambda *_: ("Node1.example.com", "0"))
    assert list_principals("hive/_HOST@R", "Alias") == (NAME, OTHER)
    assert list_principals("hive/_HOST", "node1.example.com") == ("hive/node1.example.com",)
    assert list_principals("hive/fixed@R", "Alias") == ("hive/fixed@R",)


def test_a_host_without_a_name_in_the_dns_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no such host")

    monkeypatch.setattr("socket.getaddrinfo", fail)
    assert list_principals("hive/_HOST@R", "Alias") == (NAME,)
