"""JVM Hudi in a process of its own: one bundle, one Spark session, commands as lines of JSON.

    python jvm_agent.py JAR [SETTINGS]

SETTINGS is a JSON object of settings of the Spark session, beside the usual ones; more jars are in its `jars`.

Each request has an `id` and an `op`; each answer has the `id` and `result`, or `error` with the class names from the
outermost exception to the root. Requests run side by side.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TZ"] = "UTC"

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from quick_spark import quicken_session

from hudi_locks.clock import SystemClock

QUIET = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}
_OPENED = "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
"""What Hudi's bloom index needs on Java 17 where it goes by the metadata table."""
_ROOMY = "-Xms2g -Xmn900m -XX:MetaspaceSize=256m"
"""Hudi takes 48 MB for each log and HFile of a metadata table that it opens. So eight upserts collected memory 579
times, and all of it 56 times; with this 89 times, and never all of it: a quarter of the processor's time."""


_ALONE = "-Djol.skipHotspotSAAttach=true"
"""Hudi asks how large its objects are, and starts four more JVMs for it, two and a half seconds of the processor."""


class Agent:
    """Answers requests."""

    def __init__(self, jar: str, answers: Any, more: dict[str, str]) -> None:
        self._answers = answers
        self._answering = threading.Lock()
        self._held: dict[str, Any] = {}
        self._is_old = "-0." in Path(jar).name
        self.spark = _start(jar, more)
        # First of all: once another class holds the schema of its records, bundle 1.2.0 fails on every commit of a
        # table with a metadata table until the process ends (ArrayIndexOutOfBoundsException).
        self.spark._jvm.java.lang.Class.forName("org.apache.hudi.metadata.HoodieMetadataPayload")

    def serve(self) -> None:
        self._answer({"id": "started", "result": self.spark.version})
        for line in sys.stdin:
            threading.Thread(target=self._run, args=(json.loads(line),), daemon=True).start()

    def _run(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": request.pop("id")}
        try:
            answer["result"] = getattr(self, request.pop("op"))(**request)
        except BaseException as error:
            answer |= {"error": _chain(error), "message": _shorten(str(error))}
        self._answer(answer)

    def _answer(self, answer: dict[str, Any]) -> None:
        with self._answering:
            self._answers.write(json.dumps(answer) + "\n")
            self._answers.flush()

    def show_threads(self) -> None:
        """Have Java print the stack of each of its threads to its standard output."""
        os.kill(self.spark._sc._gateway.proc.pid, signal.SIGQUIT)
        SystemClock().sleep(2)  # real time: Java does not tell when it has printed all

    def write(self, path: str, rows: list[list[Any]], schema: str, options: dict[str, str], gate: str) -> None:
        frame = self.spark.createDataFrame([tuple(row) for row in rows], schema).coalesce(1)
        if gate:
            wait = F.udf(_make_wait(gate), "string")
            frame = frame.withColumn(frame.columns[0], wait(frame.columns[0]))
        frame.write.format("hudi").options(**{**QUIET, **options}).mode("append").save(path)

    def write_query(self, path: str, query: str, options: dict[str, str]) -> None:
        """Write what a query gives: rows of types that JSON has not."""
        frame = self.spark.sql(query).coalesce(1)
        frame.write.format("hudi").options(**{**QUIET, **options}).mode("append").save(path)

    def bootstrap(self, path: str, options: dict[str, str]) -> None:
        """Make a table of the Parquet files that the options name; Hudi asks for rows without columns beside them."""
        nothing = self.spark.createDataFrame([], "struct<>")
        given = {**QUIET, **options, "hoodie.datasource.write.operation": "bootstrap"}
        nothing.write.format("hudi").options(**given).mode("append").save(path)

    def write_avro(self, path: str, rows: list[str], schema: str, options: dict[str, str]) -> str:
        """Write by Hudi's own client, as its streamers do; rows are JSON of a schema that Spark need not know."""
        jvm, records = self.spark._jvm, []
        hudi, avro = jvm.org.apache.hudi, jvm.org.apache.avro
        parsed = avro.Schema.Parser().parse(schema)
        for row in rows:
            decoder = avro.io.DecoderFactory.get().jsonDecoder(parsed, row)
            record = avro.generic.GenericDatumReader(parsed).read(None, decoder)
            payload = hudi.common.model.OverwriteWithLatestAvroPayload(hudi.common.util.Option.of(record))
            key = hudi.common.model.HoodieKey(str(record.get("id")), str(record.get("region")))
            records.append(hudi.common.model.HoodieAvroRecord(key, payload))
        properties = jvm.java.util.Properties()
        properties.putAll({**QUIET, "hoodie.auto.commit": "false", **options})
        config = hudi.config.HoodieWriteConfig.newBuilder().withPath(path).withSchema(schema).withProperties(properties)
        context = hudi.client.common.HoodieSparkEngineContext(self.spark._jsc)
        client = hudi.client.SparkRDDWriteClient(context, config.build())
        try:
            instant = client.startCommit()
            client.commit(instant, client.upsert(self.spark._jsc.parallelize(records, 1), instant))
        finally:
            client.close()
        return str(instant)

    def sync(self, path: str, options: dict[str, str]) -> None:
        """Bring a Hive Metastore up to date, as a job of its own."""
        jvm = self.spark._jvm
        properties = jvm.java.util.Properties()
        properties.putAll({**options, "hoodie.datasource.meta.sync.base.path": path})
        tool = jvm.org.apache.hudi.hive.HiveSyncTool(properties, self.spark._jsc.hadoopConfiguration())
        tool.syncHoodieTable()
        tool.close()

    def read(self, path: str, options: dict[str, str], columns: list[str], where: str = "true") -> list[list[Any]]:
        rows = self.spark.read.format("hudi").options(**options).load(path).where(where)
        return [list(row) for row in rows.selectExpr(*columns).collect()]

    def sql(self, statement: str) -> list[list[Any]]:
        return [list(row) for row in self.spark.sql(statement).collect()]

    def call(self, statement: str, options: dict[str, str]) -> list[list[Any]]:
        """Run a procedure in a session that has these options, as a user has who says SET first."""
        settings = {**QUIET, **options}
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        try:
            return self.sql(statement)
        finally:
            for key in settings:
                self.spark.conf.unset(key)

    def live_in(self, zone: str) -> None:
        """Let the JVM have this zone for its own."""
        self.spark._jvm.java.util.TimeZone.setDefault(self.spark._jvm.java.util.TimeZone.getTimeZone(zone))

    def archived(self, path: str) -> list[list[str]]:
        """Requested time, completion time and action of every instant that the history tells of."""
        jvm = self.spark._jvm
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.spark._jsc.hadoopConfiguration())
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        client = builder.setConf(conf).setBasePath(path).build()
        found = client.getArchivedTimeline().filterCompletedInstants().getInstants()
        if self._is_old:
            return [[i.getTimestamp(), i.getStateTransitionTime(), i.getAction()] for i in found]
        return [[i.requestedTime(), i.getCompletionTime(), i.getAction()] for i in found]

    def expected_skew(self, options: dict[str, str]) -> int:
        """How long, in ms, a writer with these options waits for the clocks of others."""
        jvm = self.spark._jvm
        properties = jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        builder = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath("/none").withProperties(properties)
        return int(builder.build().getTimeGeneratorConfig().getMaxExpectedClockSkewMs())

    def option_file(self, path: str) -> dict[str, str]:
        """The options of a file."""
        hudi = self.spark._jvm.org.apache.hudi
        place = hudi.storage.StoragePath(f"file://{path}")
        found = hudi.common.config.DFSPropertiesConfiguration(self.spark._jsc.hadoopConfiguration(), place).getProps()
        return {str(name): str(found.getProperty(name)) for name in found.stringPropertyNames()}

    def time_paths(self, options: dict[str, str], kind: str, values: list[str | None]) -> list[str | None]:
        """Folders of values of a column, as Hudi's key generator of times names them; null for what it refuses."""
        jvm = self.spark._jvm
        properties = jvm.org.apache.hudi.common.config.TypedProperties()
        columns = {f"hoodie.datasource.write.{name}.field": name for name in ("recordkey", "partitionpath")}
        for key, value in {**columns, **options}.items():
            properties.setProperty(key, value)
        maker = jvm.org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator(properties)
        return [_name_folder(maker, _to_java(jvm, kind, value)) for value in values]

    def may_hold(self, kind: str, text: str, keys: list[str]) -> list[bool]:
        """What the bloom filter of a footer says of some keys."""
        filter_of_keys = self.spark._jvm.org.apache.hudi.common.bloom.BloomFilterFactory.fromString(text, kind)
        return [bool(filter_of_keys.mightContain(key)) for key in keys]

    def mark(self, path: str, requested: str, port: int, names: list[list[str]], early: bool = False) -> dict[str, Any]:
        """Make markers by Hudi's own client of a timeline server: whether each was made, and what the server lists."""
        hudi = self.spark._jvm.org.apache.hudi
        markers = self._open_markers(path, requested, port)
        made = []
        for partition, file, kind in names:
            io_type = hudi.common.model.IOType.valueOf(kind)
            if early:
                config = hudi.config.HoodieWriteConfig.newBuilder().withPath(path).build()
                asked = (partition, file, io_type, False, config, file.split("_")[0], None)
                made.append(markers.createWithEarlyConflictDetection(*asked).isPresent())
            else:
                made.append(markers.create(partition, file, io_type).isPresent())
        data_files = markers.createdAndMergedDataPaths(None, 1)
        return {"made": made, "all": sorted(markers.allMarkerFilePaths()), "data_files": sorted(data_files)}

    def unmark(self, path: str, requested: str, port: int) -> list[bool]:
        """Remove a marker folder by Hudi's own client: whether it was there before, was removed, and is there now."""
        markers = self._open_markers(path, requested, port)
        return [markers.doesMarkerDirExist(), markers.deleteMarkerDir(None, 1), markers.doesMarkerDirExist()]

    def _open_markers(self, path: str, requested: str, port: int) -> Any:
        """The client's constructor without a table is for Hudi's own package alone."""
        jvm = self.spark._jvm
        view = jvm.org.apache.hudi.common.table.view.FileSystemViewStorageConfig
        config = view.newBuilder().withRemoteServerHost("127.0.0.1").withRemoteServerPort(port).build()
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        names = ["java.lang.String"] * 3 + ["org.apache.hudi.common.table.view.FileSystemViewStorageConfig"]
        kind = jvm.java.lang.Class.forName("org.apache.hudi.table.marker.TimelineServerBasedWriteMarkers", True, loader)
        gateway = self.spark.sparkContext._gateway
        types = gateway.new_array(jvm.java.lang.Class, len(names))
        for place, name in enumerate(names):
            types[place] = jvm.java.lang.Class.forName(name, True, loader)
        maker = kind.getDeclaredConstructor(types)
        maker.setAccessible(True)
        given = gateway.new_array(jvm.java.lang.Object, len(names))
        for place, value in enumerate([path, f"{path}/.hoodie/.temp/{requested}", requested, config]):
            given[place] = value
        return maker.newInstance(given)

    def lock(self, path: str) -> bool:
        """Take the file system lock as a JVM writer does."""
        jvm = self.spark._jvm
        properties = jvm.org.apache.hudi.common.config.TypedProperties()
        for key, value in {
            "hoodie.base.path": path,
            "hoodie.write.lock.filesystem.path": f"{path}/.hoodie",
            "hoodie.write.lock.filesystem.expire": "0",
        }.items():
            properties.setProperty(key, value)
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.spark._jsc.hadoopConfiguration())
        configuration = jvm.org.apache.hudi.common.config.LockConfiguration(properties)
        provider = jvm.org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider(configuration, conf)
        self._held[path] = provider
        return bool(provider.tryLock(1, jvm.java.util.concurrent.TimeUnit.SECONDS))

    def unlock(self, path: str) -> None:
        provider = self._held.pop(path)
        provider.unlock()
        provider.close()


def _to_java(jvm: Any, kind: str, value: str | None) -> Any:
    """A value as an Avro record has it."""
    if value is None or kind == "string":
        return value
    if kind == "date":
        return jvm.java.time.LocalDate.parse(value)
    if kind == "double":
        return float(value)
    return jvm.java.math.BigDecimal(value) if kind.startswith("decimal") else jvm.java.lang.Long.valueOf(value)


def _name_folder(maker: Any, value: Any) -> str | None:
    try:
        return str(maker.getPartitionPath(maker.getDefaultPartitionVal() if value is None else value))
    except (Py4JJavaError, PySparkException):
        return None


def _make_wait(gate: str) -> Callable[[str], str]:
    """A function that waits until the named pipe `gate` was opened and closed; from then on it does not."""

    def wait(value: str) -> str:
        if not Path(f"{gate}.passed").exists():
            with Path(gate).open() as pipe:
                pipe.read()
        return value

    return wait


def _start(jar: str, more: dict[str, str]) -> Any:
    builder = SparkSession.builder.master("local[2]").appName("JVM Hudi")
    settings = {
        # Not `spark.jars`: those have a loader of their own, and Spark's Avro looks for the classes of records by that
        # of the thread. Once it has not found one, bundle 1.0.2 fails on every delete block (ClassCastException).
        "spark.driver.extraClassPath": os.pathsep.join(filter(None, (jar, *more.pop("jars", "").split(",")))),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {_OPENED} {_ROOMY} {_ALONE}",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.log.level": "OFF",
        "spark.pyspark.python": sys.executable,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **quicken_session(),
        **more,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _shorten(text: str) -> str:
    """Its beginning, and the stack of the first cause."""
    cause = text.rfind("Caused by:")
    return text[:2000] if cause < 2000 else f"{text[:2000]}\n...\n{text[cause : cause + 2000]}"


def _chain(error: BaseException) -> list[str]:
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    names = [type(error).__name__]
    while origin is not None:
        names.append(origin.getClass().getName())
        origin = origin.getCause()
    return names


if __name__ == "__main__":
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the bundle prints does not get between the answers
    Agent(sys.argv[1], out, json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}).serve()
