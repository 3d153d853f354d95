"""Is a table whole? Looks at every file of it and changes none."""

from collections.abc import Callable
from typing import Any

from hudi_locks.deprecation import forward_renamed
from hudi_locks.verification.report import TableFinding, VerificationRecord, VerificationReport
from hudi_locks.verification.verifier import verify_table

__all__ = ["TableFinding", "VerificationRecord", "VerificationReport", "verify_table"]

__getattr__: Callable[[str], Any] = forward_renamed(
    __name__, {"Finding": "TableFinding", "Report": "VerificationReport"}, removed_in="0.3.0"
)
