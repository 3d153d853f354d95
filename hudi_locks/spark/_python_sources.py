"""What PySpark has for data sources in Python, from release 4.0 on; some of it came later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_locks.errors import ProviderLoadError

if TYPE_CHECKING:  # of which releases before 4.0 have nothing

    class DataSource:
        """See `pyspark.sql.datasource`."""

        options: Mapping[str, str]

        def __init__(self, options: Mapping[str, str]) -> None:
            """As Spark has them."""

    class DataSourceReader:
        """See `pyspark.sql.datasource`."""

    class DataSourceStreamReader:
        """See `pyspark.sql.datasource`."""

    class DataSourceStreamArrowWriter:
        """See `pyspark.sql.datasource`."""

    class DataSourceArrowWriter:
        """See `pyspark.sql.datasource`."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            """What a task does."""

        def commit(self, messages: Any) -> None:
            """Once every task is done."""

        def abort(self, messages: Any) -> None:
            """Once one of them failed."""

    class WriterCommitMessage:
        """See `pyspark.sql.datasource`."""

    class InputPartition:
        """See `pyspark.sql.datasource`."""

    class SupportsTriggerAvailableNow:
        """See `pyspark.sql.streaming.datasource`."""

else:
    try:
        from pyspark.sql.datasource import (
            DataSource,
            DataSourceArrowWriter,
            DataSourceReader,
            DataSourceStreamReader,
            InputPartition,
            WriterCommitMessage,
        )
    except ImportError as error:
        from pyspark import __version__ as _release

        raise ProviderLoadError(
            f"the format hudi_locks needs PySpark 4.0 or later, and this is {_release}: read by"
            " hudi_locks.spark.read(spark, path, options), which does the same",
            found=_release,
        ) from error

    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:  # before 4.1 rows of a stream come as Python objects

        class DataSourceStreamArrowWriter: ...

    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before 4.2 Spark ends such a query by itself, after one micro-batch

        class SupportsTriggerAvailableNow: ...


__all__ = [
    "WRITES_STREAMS",
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "InputPartition",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
]

WRITES_STREAMS: Final[bool] = DataSourceStreamArrowWriter.__module__.startswith("pyspark.")
"""Whether this PySpark hands the rows of a stream over as Arrow."""
