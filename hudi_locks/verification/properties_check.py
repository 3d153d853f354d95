"""`hoodie.properties`: keys that look damaged, and columns that the table does not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_locks.config import find_key, nearest_key
from hudi_locks.format import decode_properties
from hudi_locks.table import PROPERTIES_PATH, Table, TableConfig
from hudi_locks.verification.report import Notebook
from hudi_locks.verification.survey import Survey

__all__ = ["check_columns", "check_keys"]

_KIND: Final = "properties"
_BACKUP: Final = f"{PROPERTIES_PATH}.backup"
_MEND: Final = f"compare the line with {_BACKUP}, or with what the table was made with, and mend it"
_ZONES: Final = ("UTC", "LOCAL")


def check_keys(table: Table, book: Notebook) -> None:
    """Look at every line."""
    book.checked["properties"] += 1
    for path in (PROPERTIES_PATH, _BACKUP):
        data = table.storage.read(path)
        if data is None:
            continue
        with book.reading(_KIND, path, "properties that can be read, with their checksum"):
            properties = decode_properties(data, path)
            TableConfig.from_properties(properties, path)
            _check_names(properties, path, book)
    if table.config.timezone not in _ZONES:
        found = repr(table.config.timezone)
        expected = f"a zone of the timeline, {' or '.join(_ZONES)}"
        book.damage(_KIND, PROPERTIES_PATH, expected=expected, found=found, advice=_MEND)


def check_columns(survey: Survey) -> None:
    """Whether the columns that make keys, folders and the order of rows are columns of the last commit."""
    with survey.book.reading(_KIND, PROPERTIES_PATH, "a schema of the table"):
        schema = survey.table.schema(survey.timeline)
        if schema is None:
            return
        config = survey.table.config
        named = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
        lacking = sorted(
            {field.split(":")[0].split(".")[0] for field in named} - {*schema.names, *config.dropped_fields}
        )
        if lacking:
            expected = f"columns of the table, which are {', '.join(schema.names)}"
            found = f"{', '.join(lacking)} as column of keys, partitions or order"
            survey.book.damage(_KIND, PROPERTIES_PATH, expected=expected, found=found, advice=_MEND)


def _check_names(names: Iterable[str], path: str, book: Notebook) -> None:
    for name in names:
        if find_key(name) is not None:
            continue
        near = nearest_key(name)
        if near is not None and near[1]:
            book.damage(_KIND, path, expected=f"the key {near[0]}", found=f"{name!r}", advice=_MEND)
        else:
            advice = "nothing, if you know the key"
            book.note(_KIND, path, expected="keys that Hudi knows", found=f"{name!r}", advice=advice)
