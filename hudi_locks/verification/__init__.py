"""Is a table whole? Looks at every file of it and changes none."""

from hudi_locks.verification.report import Finding, Report
from hudi_locks.verification.verifier import verify_table

__all__ = ["Finding", "Report", "verify_table"]
