"""Calls of the driver's process by those in which PySpark runs Spark's own format; see `CommitServer`."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.connection import Client
from typing import Any, Final

from hudi_locks import errors
from hudi_locks.errors import HudiLocksError, SessionRefused, WriteError

__all__ = ["FAMILY", "ask_driver"]

FAMILY: Final = "AF_UNIX"
"""Only the driver's user can open a socket in a folder of its own."""


def ask_driver(address: str, call: str, **arguments: object) -> Any:
    """What the driver answers to a process in which PySpark calls the format.

    Raises:
        SessionRefused: Nobody answers.
        HudiLocksError: What it raised.
    """
    try:
        with closing(Client(address, FAMILY)) as driver:
            driver.send((call, arguments))
            kind, answer = driver.recv()
    except (OSError, EOFError) as error:
        message = (
            f"the driver's process that registered the format hudi_locks does not answer at {address} ({error});"
            " it must run on the machine of Spark's driver until its queries have ended. `hudi-locks timeline` tells"
            " whether a write was committed"
        )
        raise SessionRefused(message, address=address) from error
    if kind is None:
        return answer
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, HudiLocksError):
        raise known(answer)
    raise WriteError(f"{kind}: {answer}")
