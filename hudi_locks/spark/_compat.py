"""What touches the private parts of PySpark, in one place; written for 3.5 to 4.3.

A part that only makes Spark quicker is switched off by a key of Spark's configuration (`SWITCHES`), such as
`--conf spark.hudi_locks.shuffle=false`. docs/design.md has what each gains.

- `shuffle`: a write shuffles its rows once, and each of its jobs reads the files of that shuffle, not persisted rows.
- `connection`: a worker acknowledges the first part of a task at once; of its set-up until PySpark 4.1.
- `archives`: a worker does not read every archive anew for the next task.
- `freeze`: a worker does not look for garbage in what it has imported.
- `files`: Spark's index of files is given the files that a timeline names, and lists none of them again.
- `connector`: large files of a store are read by Spark's own reader, where the session has a connector that opens them.

All else has no switch, since no public call does the same.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.config.read_keys import LENIENT_KEYS
from hudi_locks.redaction import open_log
from hudi_locks.spark._worker import QUICKENING, WorkerTask, run_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as T  # noqa: N812

__all__ = [
    "SWITCHES",
    "FileIndexes",
    "ask_connector_for_bytes",
    "collect_columns",
    "encode_file_status",
    "find_data_source",
    "find_machine_zone",
    "is_on",
    "is_stopped",
    "list_filters",
    "list_java_fields",
    "local_rows",
    "name_scala",
    "reread_shuffled",
    "run_in_workers",
]

SWITCHES: Final = MappingProxyType(
    {name: f"spark.hudi_locks.{name}" for name in ("shuffle", "connection", "archives", "freeze", "files", "connector")}
)
"""Keys of Spark's configuration; `false` switches a part off."""
_NO_PATIENCE: Final = MappingProxyType(
    {
        "fs.s3a.attempts.maximum": "1",
        "fs.s3a.retry.limit": "1",
        "fs.s3a.connection.establish.timeout": "5000",
        "fs.azure.io.retry.max.retries": "1",
        "fs.gs.http.max.retry": "1",
    }
)
"""Of the connectors for object stores: what cannot be opened at once is read without them."""
_log = open_log(__name__)
_TASKS_PER_CORE: Final = 8
"""Spark lists files in as many tasks as there are files, each of which takes longer to begin than to end."""
_PARALLELISM: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def _java_session(spark: SparkSession) -> Any:
    return spark._jsparkSession  # noqa: SLF001


def is_on(spark: SparkSession, name: str) -> bool:
    """Whether a part of `SWITCHES` is to be used."""
    return (spark.conf.get(SWITCHES[name], None) or "true").strip().lower() != "false"


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's context was stopped."""
    return spark.sparkContext._jsc is None  # noqa: SLF001


def find_data_source(spark: SparkSession, form: str) -> None:
    """Look for a source of data by its short name.

    Raises:
        AnalysisException: Spark has none of this name.
    """
    sources: Any = spark._jvm.org.apache.spark.sql.execution.datasources  # noqa: SLF001
    sources.DataSource.lookupDataSource(form, spark._jsparkSession.sessionState().conf())  # noqa: SLF001


def find_machine_zone(spark: SparkSession) -> str:
    """The zone of Spark's JVM, as java.util.TimeZone names it: where Hudi has times whose zone nobody said."""
    zone: str = spark._jvm.java.util.TimeZone.getDefault().getID()  # noqa: SLF001
    return zone


def name_scala(spark: SparkSession) -> str:
    """The release of Scala that Spark is built with, such as `2.12`; its packages have it in their names."""
    version: str = spark._jvm.scala.util.Properties.versionNumberString()  # noqa: SLF001
    return ".".join(version.split(".")[:2])


def ask_connector_for_bytes(spark: SparkSession, address: str) -> int | None:
    """How large Hadoop's file system says that a file is, without trying for long; None if it cannot say.

    A file system of its own asks, since the session's might repeat a refused request for minutes.
    """
    from py4j.protocol import Py4JError

    java: Any = spark._jvm  # noqa: SLF001
    try:
        settings = java.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())  # noqa: SLF001
        for key, value in _NO_PATIENCE.items():
            settings.set(key, value)
        path = java.org.apache.hadoop.fs.Path(address)
        store = java.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), settings)
        try:
            return int(store.getFileStatus(path).getLen())
        finally:
            store.close()
    except Py4JError as error:
        _log.info("no connector of Spark opens %s, so Arrow reads it: %s", address, error)
        return None


def list_java_fields(rows: DataFrame) -> list[Any]:
    """The columns as the JVM has them, also those of types that PySpark cannot name."""
    return list(rows._jdf.schema().fields())  # noqa: SLF001


def list_filters(rows: DataFrame, where: str | Column) -> tuple[list[str], list[Any]]:
    """The columns of a condition, and those of its parts that Spark would push down to a source of rows.

    Args:
        rows: Of the columns that it may be about.
        where: The condition; a row is shown for which all of the parts, and perhaps others, are true.

    Raises:
        AnalysisException: It is none on these columns.
    """
    plans = rows.where(where)._jdf.queryExecution()  # noqa: SLF001
    named = plans.analyzed().condition().references().toSeq()
    columns = [named.apply(place).name() for place in range(named.size())]
    optimized = plans.optimizedPlan()
    sources: Any = rows.sparkSession._jvm.org.apache.spark.sql.execution.datasources  # noqa: SLF001
    strategy = getattr(sources, "DataSourceStrategy$").__getattr__("MODULE$")
    parts = _split_all(optimized.condition()) if optimized.nodeName() == "Filter" else []
    pushed = (strategy.translateFilter(part, False) for part in parts)  # Java has no names for it
    return columns, [one.get() for one in pushed if one.isDefined()]


def _split_all(condition: Any) -> list[Any]:
    if condition.nodeName() == "And":
        return [*_split_all(condition.left()), *_split_all(condition.right())]
    return [condition]


def collect_columns(rows: DataFrame) -> pa.Table:
    """The rows on the driver, as Arrow has them; PySpark 3.5 has no public call for it."""
    if hasattr(rows, "toArrow"):
        return rows.toArrow()
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches(rows._collect_as_arrow(), to_arrow_schema(rows.schema))  # noqa: SLF001


def local_rows(spark: SparkSession, columns: Mapping[str, str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """Rows that the driver has: those of `createDataFrame` a Python worker makes, in each job anew.

    `columns` has types as SQL writes them, a row has values as JSON has them. Not for what users filter: they could
    name the column `value` that these are made of.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import from_json

    jvm = spark._jvm  # noqa: SLF001
    texts = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    made = (
        _java_session(spark).createDataset(_send_texts(jvm, texts), jvm.org.apache.spark.sql.Encoders.STRING()).toDF()
    )
    kinds = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    return DataFrame(made, spark).select(from_json("value", kinds).alias("row")).select("row.*")


def _send_texts(jvm: Any, texts: Sequence[str]) -> Any:
    """Texts as a list of Java's, sent at once; none has the character between them."""
    java = jvm.java.util
    parts = java.regex.Pattern.compile(_BETWEEN).splitAsStream(_BETWEEN.join(texts))
    found = parts.collect(java.stream.Collectors.toList())
    return found if texts else java.ArrayList()  # of nothing Java's own splitting makes one empty text


def reread_shuffled(shuffled: DataFrame) -> DataFrame | None:
    """Rows whose last step is a shuffle, read again from its files by every job; None where Spark has no such way.

    Spark plans a DataFrame anew for each job, and then shuffles anew; over one RDD it finds the files that are there.
    """
    from py4j.protocol import Py4JError
    from pyspark.sql import DataFrame

    session, plan = shuffled.sparkSession, shuffled._jdf  # noqa: SLF001
    rdd = plan.queryExecution().toRdd()
    try:
        again = _java_session(session).internalCreateDataFrame(rdd, plan.schema(), False)
    except Py4JError:
        return None
    return DataFrame(again, session)


def encode_file_status(address: str, size: int) -> bytes:
    """A file as Hadoop's `FileStatus` reads it: the length, and Protocol Buffers' FileStatusProto."""
    path = address.encode()
    body = b"".join((b"\x08\x02\x12", _encode_varint(len(path)), path, b"\x18", _encode_varint(size), b"\x58", _BLOCK))
    return struct.pack(">i", len(body)) + body


def _encode_varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


_BLOCK: Final = _encode_varint(128 << 20)
_NOWHERE: Final = "viewfs://hudi-locks"
_NOTHING_THERE: Final = {"fs.viewfs.mounttable.hudi-locks.link./nothing": "file:///"}
"""A folder there can be listed and refreshed by nobody: no path that a user refreshes is above it."""
_FLAT: Final = {"recursiveFileLookup": "true"}
"""Without it only those files of a table without partition columns count that lie in the folder itself."""
_BETWEEN: Final = "\0"
_PATH: Final = "org.apache.hadoop.fs.Path"
_SQL: Final = "org.apache.spark.sql"
_FILE_STATUS: Final = "org.apache.hadoop.fs.FileStatus"
_STRICT: Final = {key.name: "false" for key in LENIENT_KEYS}
"""They go before the session's own: what Spark passes over it does not tell, and rows would be missing in silence."""


class FileIndexes:
    """Spark's own file index, which no public call makes from files and their partition values."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm  # noqa: SLF001  # as PySpark's own modules reach it
        self.sources = self._jvm.org.apache.spark.sql.execution.datasources
        self.path = self._jvm.org.apache.hadoop.fs.Path
        self._python = self._jvm.org.apache.spark.api.python.PythonUtils
        self.none = self._jvm.scala.Option.apply(None)
        self.strict = self.map(_STRICT)

    def map(self, options: Mapping[str, str]) -> Any:
        return self._python.toScalaMap(self._jvm.java.util.HashMap(dict(options)))

    def place(self, rows: Any, folders: Sequence[str]) -> Any:
        """Folders of one table as a list of Spark's, each with the row of its partition values.

        There may be thousands, and a call to the JVM takes a tenth of a millisecond: there it is one for all.
        """
        placed = _send_texts(self._jvm, self._qualify(folders))
        if folders:
            placed.replaceAll(self._make_placing(rows, len(folders)))
        return self._python.toSeq(placed)

    def _make_placing(self, rows: Any, count: int) -> Any:
        """An operator of Java's: of a folder's name it makes the folder, with the next of so many rows."""
        invoke, java, kind = self._jvm.java.lang.invoke, self._jvm.java, self._find_class
        find, shape = invoke.MethodHandles.publicLookup(), invoke.MethodType.methodType
        path, row, nothing = kind(_PATH), kind(f"{_SQL}.catalyst.InternalRow"), java.lang.Void.TYPE
        kept = java.util.Arrays.asList(self._copy(rows, java.lang.Object, count)).iterator()
        step = find.findVirtual(kind("java.util.Iterator"), "next", shape(kind("java.lang.Object")))
        open_path = find.findConstructor(path, shape(nothing, kind("java.lang.String")))
        folder = kind(f"{_SQL}.execution.datasources.PartitionPath")
        make = find.findConstructor(folder, shape(nothing, row, self._array(java.lang.Class, path)))
        make = invoke.MethodHandles.collectArguments(make, 0, step.bindTo(kept).asType(shape(row)))
        make = invoke.MethodHandles.filterArguments(make, 0, self._array(invoke.MethodHandle, open_path))
        return invoke.MethodHandleProxies.asInterfaceInstance(kind("java.util.function.UnaryOperator"), make)

    def _find_class(self, name: str) -> Any:
        java = self._jvm.java.lang
        return java.Class.forName(name, True, java.Thread.currentThread().getContextClassLoader())

    def _array(self, kind: Any, value: Any) -> Any:
        made = self._spark.sparkContext._gateway.new_array(kind, 1)  # noqa: SLF001
        made[0] = value
        return made

    def _copy(self, array: Any, kind: Any, count: int) -> Any:
        """The first values of an array, in one of another type."""
        made = self._spark.sparkContext._gateway.new_array(kind, count)  # noqa: SLF001
        self._jvm.java.lang.System.arraycopy(array, 0, made, 0, count)
        return made

    def _qualify(self, folders: Sequence[str]) -> list[str]:
        """The names that files are listed under: one of them tells of all."""
        begin = self._find_begin(folders[0]) if folders else ""
        if begin is not None:
            return [f"{begin}{folder}" for folder in folders]
        return [str(self._make_qualified(folder)) for folder in folders]

    def _find_begin(self, path: str) -> str | None:
        """What a listing's name of a path has before it, such as `file:`; None if it is not that path."""
        named = str(self._make_qualified(path))
        return named.removesuffix(path) if named.endswith(path) else None

    def _make_qualified(self, path: str) -> Any:
        given = self.path(path)
        return given.getFileSystem(self._spark._jsc.hadoopConfiguration()).makeQualified(given)  # noqa: SLF001

    def translate(self, schema: T.StructType) -> Any:
        return self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def make_rows(self, fields: Sequence[T.StructField], texts: Sequence[tuple[str | None, ...]]) -> Any:
        """An array of the values of partitions as Spark's own rows, cast by Spark."""
        columns = [f"c{place}" for place, _ in enumerate(fields)]
        made = local_rows(self._spark, dict.fromkeys(columns, "string"), texts)
        kinds = [field.dataType.simpleString() for field in fields]
        casts = [f"cast({name} as {kind}) {name}" for name, kind in zip(columns, kinds, strict=True)]
        return made.selectExpr(*casts)._jdf.queryExecution().executedPlan().executeCollect()  # noqa: SLF001

    def know(self, paths: Sequence[str], sizes: Sequence[int], columns: Any, partitions: Any) -> Any:
        """An index of files that are known to be there; None where Spark has no such way, or a size is not known.

        Spark keeps the files that it once listed below a folder. A folder is made up that nobody can list or refresh,
        and what it keeps of that are our files. Of a file of 0 bytes it would read nothing, and say nothing.
        """
        from py4j.protocol import Py4JError

        if not is_on(self._spark, "files") or min(sizes) <= 0 or (begin := self._find_begin(paths[0])) is None:
            return None
        session = self._spark._jsparkSession  # noqa: SLF001
        folder, kept = self.path(f"{_NOWHERE}/files-{uuid.uuid4().hex}"), self.sources.FileStatusCache
        try:
            cache = kept.getOrCreate(session)
            cache.putLeafFiles(folder, self._describe([begin + path for path in paths], sizes))
            plain = _FLAT if partitions.partitionColumns().isEmpty() else {}
            flat = self.map({**_STRICT, **_NOTHING_THERE, **plain})
            found = self._index([folder], columns, partitions, settings=flat, cache=cache, session=session)
            cache.invalidateAll()
        except Py4JError:
            return None
        return found if found.allFiles().size() == len(paths) else None  # as where Spark is told to keep nothing

    def _describe(self, addresses: Sequence[str], sizes: Sequence[int]) -> Any:
        """What Hadoop knows of files, sent at once: one by one each takes a call or two."""
        entries = map(encode_file_status, addresses, sizes)
        data = b"".join((struct.pack(">i", len(addresses)), *entries))
        kind, count = self._jvm.org.apache.hadoop.fs.FileStatus, len(addresses)
        sent = self._jvm.org.apache.hadoop.io.ArrayWritable(self._jvm.java.lang.Class.forName(_FILE_STATUS))
        sent.readFields(self._jvm.java.io.DataInputStream(self._jvm.java.io.ByteArrayInputStream(data)))
        return self._copy(sent.toArray(), kind, count)

    def index(self, paths: Sequence[str], columns: Any, partitions: Any) -> Any:
        """An index of the files, each of which Spark looks for."""
        none = getattr(self.sources, "NoopCache$").__getattr__("MODULE$")
        roots = [self.path(path) for path in paths]
        return self._index(
            roots, columns, partitions, settings=self.strict, cache=none, session=self._listing_session()
        )

    def _index(
        self, roots: Sequence[Any], columns: Any, partitions: Any, *, settings: Any, cache: Any, session: Any
    ) -> Any:
        option = self._jvm.scala.Option
        listed = self._python.toSeq(self._jvm.java.util.ArrayList(roots))
        given = (listed, settings, option.apply(columns), cache, option.apply(partitions), self.none)
        return self.sources.InMemoryFileIndex(session, *given)

    def read_parquet(self, files: Any, partitions: Any, columns: Any) -> DataFrame:
        """The rows of the files of an index; a file that is damaged or gone fails, whatever the session says."""
        from pyspark.sql import DataFrame

        form, session = self.sources.parquet.ParquetFileFormat(), self._spark._jsparkSession  # noqa: SLF001
        given = (files, partitions, columns, self.none, form, self.strict, session)
        return DataFrame(session.baseRelationToDataFrame(self.sources.HadoopFsRelation(*given)), self._spark)

    def _listing_session(self) -> Any:
        """The user's session is left as it is."""
        session = self._spark._jsparkSession.cloneSession()  # noqa: SLF001
        tasks = self._spark.sparkContext.defaultParallelism * _TASKS_PER_CORE
        session.conf().set(_PARALLELISM, str(min(tasks, int(session.conf().get(_PARALLELISM)))))
        return session


def run_in_workers(rows: DataFrame, task: WorkerTask, columns: T.StructType | str) -> DataFrame:
    """What `task` makes of each partition of `rows`, when the DataFrame is used.

    Args:
        rows: Its input.
        task: Picklable; made on the driver, called on executors.
        columns: Of the batches that it gives.
    """
    spark = rows.sparkSession
    quick = frozenset(name for name in QUICKENING if is_on(spark, name))
    return rows.mapInArrow(lambda batches: run_task(task, batches, quick=quick), columns)
