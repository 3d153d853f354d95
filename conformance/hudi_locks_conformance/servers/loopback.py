"""Keeps servers on loopback that have no setting for the address on which they listen."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hudi_locks_conformance.servers.cache import compile_c

__all__ = ["keep_on_loopback"]

_SOURCE: Final = Path(__file__).with_name("loopback.c")


def keep_on_loopback() -> dict[str, str]:
    """Environment under which a process that binds to every address binds to loopback alone; Linux only.

    Raises:
        ServerUnavailable: There is no C compiler.
    """
    return {"LD_PRELOAD": str(compile_c("loopback", _SOURCE))}
