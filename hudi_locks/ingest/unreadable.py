"""What cannot be read: a message or a line that is no row ends the query, and is named. Runs on the driver.

Spark's strict mode does not say which message or file it could not read. So it marks what it cannot read, and an
expression refuses what is marked by its place.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from hudi_locks.errors import BadInput
from hudi_locks.spark.writing.rows import quote_name

__all__ = ["MARKING", "find_unreadable", "keep_sound", "mark_corrupt", "refuse_line"]

_CORRUPT: Final = "_hudi_locks_corrupt"
MARKING: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
"""Options of Spark's readers of text, for a schema by `mark_corrupt`."""
_LINE: Final = "has a line that is no row of the table's columns and their types"
_END: Final = r"[^\n]*?(?= SQLSTATE|\n|$)"
_MESSAGE: Final = re.compile(rf"message at topic (\S+), partition (\d+), offset (\d+) {_END}")
_FILE: Final = re.compile(rf"file (.+?) {re.escape(_LINE)}{_END}")
_UNKNOWN: Final = re.compile(r"has the schema id (\d+),")


def mark_corrupt(schema: StructType) -> StructType:
    """The columns with one more, in which Spark puts what it cannot read."""
    return StructType([*schema.fields, StructField(_CORRUPT, StringType())])


def keep_sound(rows: DataFrame, schema: StructType, *, refusal: Column, of: str = "") -> DataFrame:
    """The rows, where none is marked.

    Args:
        rows: As Spark has read them by a schema of `mark_corrupt`.
        schema: Without the mark.
        refusal: An expression that ends the query.
        of: Where their columns lie, such as `row.`.
    """
    names = [f"{of}{quote_name(field.name)}" for field in schema.fields]
    row = F.when(F.col(f"{of}{_CORRUPT}").isNull(), F.struct(*(F.col(name) for name in names))).otherwise(refusal)
    return rows.select(row.alias("row")).select("row.*")


def refuse_line() -> Column:
    """An expression that ends the query, naming the file that is read."""
    form = f"file %s {_LINE}; mend the line, or take the file away"
    return F.raise_error(F.format_string(form, F.col("_metadata.file_path")))


def find_unreadable(text: str) -> BadInput | None:
    """The error of a message or a line that could not be read, if that is what Spark's error says.

    Its facts are `topic`, `partition`, `offset`, and `schema_id` where that is unknown; or `path`.
    """
    if match := _MESSAGE.search(text):
        unknown = _UNKNOWN.search(match[0])
        facts = {"schema_id": int(unknown[1])} if unknown else {}
        return BadInput(match[0], topic=match[1], partition=int(match[2]), offset=int(match[3]), **facts)
    found = _FILE.search(text)
    return BadInput(found[0], path=found[1]) if found else None
