"""Thrift over SASL on a stand-in for gssapi: what a login sends, frames, and what a server's refusal says."""

from __future__ import annotations

import io
import struct

import pytest
from fake_gssapi import PEER_TOKEN, FakeGssapi, offer
from hudi_locks_providers._hive.sasl import SaslTransport
from hudi_locks_providers._kerberos import KerberosLogin

from hudi_locks import BackendRefused
from hudi_locks.config import security_keys

OK, BAD, ERROR, COMPLETE = 2, 3, 4, 5


class Below:
    """The socket: answers that were planned, and what was sent."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = io.BytesIO(b"".join(answers))
        self.sent = b""

    def readAll(self, size: int) -> bytes:  # noqa: N802
        return self._answers.read(size)

    def write(self, data: bytes) -> None:
        self.sent += data

    def flush(self) -> None:
        pass


def message(status: int, body: bytes = b"") -> bytes:
    return struct.pack(">BI", status, len(body)) + body


def frame(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@pytest.fixture(autouse=True)
def gssapi(monkeypatch: pytest.MonkeyPatch) -> FakeGssapi:
    return FakeGssapi(monkeypatch)


def open_transport(*answers: bytes) -> tuple[SaslTransport, Below]:
    below = Below(*answers)
    login = KerberosLogin(("hive/h@R",), security_keys.HIVE_PRINCIPAL, ("auth-int",))
    return SaslTransport(below, "thrift://h:1", login), below


def test_a_login_goes_on_in_frames() -> None:
    answers = (message(OK, PEER_TOKEN), message(OK, offer(7)), message(COMPLETE), frame(b"Sab"), frame(b"Scd"))
    transport, below = open_transport(*answers)
    transport.log_in()
    sent = message(1, b"GSSAPI") + message(OK, b"ticket for hive/h@R") + message(OK)
    assert below.sent == sent + message(OK, b"S\x02\xff\xff\xff")
    assert (transport.readAll(1), transport.readAll(3)) == (b"a", b"bcd")
    below.sent = b""
    transport.write(b"x")
    transport.write(b"y")
    transport.flush()
    transport.flush()
    assert below.sent == frame(b"Sxy") + frame(b"S")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (message(ERROR, b"GSS initiate failed"), r"refuses the login by Kerberos \(GSS initiate failed\): its log"),
        (message(BAD, b"no"), r"\(no\)"),
        (message(COMPLETE), "its answer is none of SASL's"),
        (b"HTTP/1.1 400", "its answer is none of SASL's"),
        (struct.pack(">BI", OK, 1 << 30), "its answer is none of SASL's"),
    ],
)
def test_a_refusal_says_what_the_metastore_said(answer: bytes, said: str) -> None:
    transport, _ = open_transport(answer)
    with pytest.raises(BackendRefused, match=said):
        transport.log_in()
