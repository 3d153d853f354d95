"""Judges what a storage promises: `hudi-locks conformance --storage PATH`, `StorageSuite` from pytest."""

from hudi_locks_conformance.storages.check import STORAGE_CHECKS, StorageBench, StorageCheck
from hudi_locks_conformance.storages.judging import StorageOutcome, judge_storage, render_storage, run_storage_check

__all__ = [
    "STORAGE_CHECKS",
    "StorageBench",
    "StorageCheck",
    "StorageOutcome",
    "judge_storage",
    "render_storage",
    "run_storage_check",
]
