"""Verifying a table: every check, and a second walk where the first finds damage.

Writers may be at work. What one walk sees of a write or of a clean in its midst, the next sees done; so damage is what
both have found, in the same file.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import Storage
from hudi_locks.table import PROPERTIES_PATH, Table
from hudi_locks.verification.archive_check import check_archive
from hudi_locks.verification.claims_check import check_claims
from hudi_locks.verification.data_check import check_data
from hudi_locks.verification.metadata_check import check_metadata_table
from hudi_locks.verification.properties_check import check_columns, check_keys
from hudi_locks.verification.report import Notebook, VerificationReport
from hudi_locks.verification.survey import Survey
from hudi_locks.verification.timeline_check import check_timeline
from hudi_locks.verification.traces_check import check_traces

__all__ = ["verify_table"]

_ALL: Final = "everything else: without this the table cannot be found"


def verify_table(
    storage: Storage, *, zone: str | None = None, reads_values: bool = False, reads_keys: bool = False
) -> VerificationReport:
    """Look at every file of a table; change none, and take no lock. Runs beside writers.

    Args:
        storage: The table's files.
        zone: Where a timeline in LOCAL time is, as for `Table.load`.
        reads_values: Whether every value in base files is decoded too, which takes as long as to read the whole table.
        reads_keys: Whether record keys are, if the table has a record index.

    Raises:
        NotATable: There is none.
        UnsupportedTable: It is of a kind that is not read here.
        StorageError: The store failed.
    """
    walk = partial(_walk, storage, zone, reads_values=reads_values, reads_keys=reads_values or reads_keys)
    found = walk()
    return found if found.is_sound else found.confirmed_by(walk())


def _walk(storage: Storage, zone: str | None, *, reads_values: bool, reads_keys: bool) -> VerificationReport:
    book = Notebook()
    try:
        table = Table.load(storage, zone=zone)
        check_keys(table, book)
        _survey(Survey(table, book, table.timeline(), reads_values=reads_values, reads_keys=reads_keys))
    except DamagedTable as error:
        path = str(error.facts.get("path", PROPERTIES_PATH))
        kind = "properties" if PROPERTIES_PATH in str(error) else "timeline"
        book.damage(kind, path, expected="a table whose timeline can be listed", found=str(error))
        book.leave_out(_ALL)
    return book.report(storage.base)


def _survey(survey: Survey) -> None:
    storage = survey.storage
    names = storage.list_names(survey.table.layout.folder)
    survey.read_contents(name for name in names if name[:1].isdigit())
    check_archive(survey)
    check_timeline(survey)
    check_claims(survey)
    survey.gather_writes()
    survey.list_files()
    check_columns(survey)
    check_data(survey)
    check_metadata_table(survey)
    check_traces(survey)
