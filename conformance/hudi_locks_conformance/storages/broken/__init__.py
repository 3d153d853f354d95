"""Storages with one planted fault each, and the checks that find it: who guards the guards."""

from typing import Final

from hudi_locks.storage import MemoryStorage
from hudi_locks_conformance.storages.broken import files, tickets

__all__ = ["FAULTS"]

FAULTS: Final[dict[type[MemoryStorage], tuple[str, ...]]] = {**files.FAULTS, **tickets.FAULTS}
"""Each storage with a planted fault, and the checks that are named for it."""
