"""Is a table whole? Looks at every file of it and changes none."""

from collections.abc import Callable
from typing import Any

from hudi_locks.deprecation import forward_renamed
from hudi_locks.verification.grants import Grant, GrantAudit, Overlap, audit_grants, find_other_lock, list_grants
from hudi_locks.verification.lock_migration import JobLock, LockMigration, follow_migration
from hudi_locks.verification.report import TableFinding, VerificationRecord, VerificationReport
from hudi_locks.verification.verifier import verify_table
from hudi_locks.verification.writer_traces import WriterTrace, WriterTraces, trace_writers

__all__ = [
    "Grant",
    "GrantAudit",
    "JobLock",
    "LockMigration",
    "Overlap",
    "TableFinding",
    "VerificationRecord",
    "VerificationReport",
    "WriterTrace",
    "WriterTraces",
    "audit_grants",
    "find_other_lock",
    "follow_migration",
    "list_grants",
    "trace_writers",
    "verify_table",
]

__getattr__: Callable[[str], Any] = forward_renamed(
    __name__, {"Finding": "TableFinding", "Report": "VerificationReport"}, removed_in="0.3.0"
)
