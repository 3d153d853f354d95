"""Parquet files as a DataFrame of Spark's own reader, with the values of their partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import DamagedTable

__all__ = ["Folders", "read_files", "text_columns"]

Folders = Mapping[str, tuple[str | None, ...]]
"""Of each folder, as Spark is to open it, the values of its partition columns as text."""
_TASKS_PER_CORE: Final = 8
"""Spark lists files in as many tasks as there are files, each of which takes longer to begin than to end."""
_PARALLELISM: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def read_files(
    spark: SparkSession,
    paths: Sequence[str],
    schema: T.StructType,
    *,
    partitioned_by: Sequence[str] = (),
    folders: Folders | None = None,
) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    The reader takes paths as they are, where `spark.read.parquet` would take them for patterns.

    Args:
        spark: The session.
        paths: Of the files.
        schema: Of the rows.
        partitioned_by: Columns of `schema` whose values are those of the file's folder: filters on them spare files.
        folders: All folders of the files, if there are such columns.

    Raises:
        DamagedTable: A file is gone.
    """
    java = _Java(spark)
    columns = java.translate(schema)
    partitions = java.translate(T.StructType([schema[name] for name in partitioned_by]))
    known = folders or {}
    rows = java.make_rows([schema[name] for name in partitioned_by], list(known.values()))
    found = [java.sources.PartitionPath(row, folder) for row, folder in zip(rows, java.qualify(known), strict=True)]
    files = java.index(paths, columns, java.sources.PartitionSpec(partitions, java.listed(found)))
    _refuse_missing(files, paths)
    form = java.sources.parquet.ParquetFileFormat()
    session = spark._jsparkSession  # noqa: SLF001  # as PySpark's own modules reach it
    relation = java.sources.HadoopFsRelation(files, partitions, columns, java.none, form, java.no_options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _refuse_missing(index: Any, paths: Sequence[str]) -> None:
    """Spark's index leaves files out that are not there, and says nothing."""
    if index.allFiles().size() == len(paths):
        return
    found = {unquote(path).rpartition("/")[2] for path in index.inputFiles()}
    lost = next((path for path in paths if path.rpartition("/")[2] not in found), paths[0])
    raise DamagedTable(f"{lost} is gone: cleaned or removed since the timeline was loaded", path=lost)


def text_columns(*names: str) -> T.StructType:
    """A schema of columns of text."""
    return T.StructType([T.StructField(name, T.StringType()) for name in names])


class _Java:
    """Spark's own file index, which no public call makes from files and their partition values."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm  # noqa: SLF001  # as PySpark's own modules reach it
        self.sources = self._jvm.org.apache.spark.sql.execution.datasources
        self.path = self._jvm.org.apache.hadoop.fs.Path
        self._python = self._jvm.org.apache.spark.api.python.PythonUtils
        self.none = self._jvm.scala.Option.apply(None)
        self.no_options = self._python.toScalaMap(self._jvm.java.util.HashMap())

    def listed(self, values: Iterable[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return self._python.toSeq(found)

    def qualify(self, folders: Iterable[str]) -> list[Any]:
        """The folders by the names that files are listed under."""
        configuration = self._spark._jsc.hadoopConfiguration()  # noqa: SLF001
        found = [self.path(folder) for folder in folders]
        return [found[0].getFileSystem(configuration).makeQualified(path) for path in found]

    def translate(self, schema: T.StructType) -> Any:
        return self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def make_rows(self, fields: Sequence[T.StructField], texts: Sequence[tuple[str | None, ...]]) -> Sequence[Any]:
        """The values of partitions as Spark's own rows, cast by Spark."""
        encoder = self._jvm.org.apache.spark.sql.Encoders.STRING()
        given = self._jvm.java.util.ArrayList()
        for values in texts:
            given.add(json.dumps(values))
        made = DataFrame(self._spark._jsparkSession.createDataset(given, encoder).toDF(), self._spark)  # noqa: SLF001
        casts = [
            f"cast(from_json(value, 'array<string>')[{place}] as {field.dataType.simpleString()}) c{place}"
            for place, field in enumerate(fields)
        ]
        plan = made.selectExpr(*casts)._jdf.queryExecution().executedPlan()  # noqa: SLF001
        return plan.executeCollect() if texts else []

    def index(self, paths: Sequence[str], columns: Any, partitions: Any) -> Any:
        roots = self.listed(map(self.path, paths))
        options, nothing = self._jvm.scala.Option, self.none
        cache = getattr(self.sources, "NoopCache$").__getattr__("MODULE$")
        given = (roots, self.no_options, options.apply(columns), cache, options.apply(partitions), nothing)
        return self.sources.InMemoryFileIndex(self._listing_session(), *given)

    def _listing_session(self) -> Any:
        """The user's session is left as it is."""
        session = self._spark._jsparkSession.cloneSession()  # noqa: SLF001
        tasks = self._spark.sparkContext.defaultParallelism * _TASKS_PER_CORE
        session.conf().set(_PARALLELISM, str(min(tasks, int(session.conf().get(_PARALLELISM)))))
        return session
