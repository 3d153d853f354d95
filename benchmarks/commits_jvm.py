"""JVM Hudi's side of the commits benchmark: writers as threads of one JVM, each with a client of its own.

usage: python -m benchmarks.commits_jvm JAR FOLDER WRITERS SECONDS     prints how many commits all made together

A commit names no file: no Spark job runs, so what is measured is Hudi's timeline, lock and clock.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.commits_side import LOCK

os.environ["TZ"] = "UTC"

from pyspark.sql import SparkSession

OPTIONS = {
    **LOCK,
    "hoodie.table.name": "commits",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.allow.empty.commit": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.table.timeline.timezone": "UTC",
}
_SCHEMA = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"}]}'


class Hudi:
    """Clients of one table."""

    def __init__(self, jar: str, folder: str) -> None:
        self.spark = _start(jar)
        self.folder = folder
        self.jvm: Any = self.spark._jvm  # noqa: SLF001  # the only way to Hudi's client
        self.jsc: Any = self.spark._jsc  # noqa: SLF001
        self.conf = self.jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(self.jsc.hadoopConfiguration())

    def prepare(self) -> None:
        zone = self.jvm.org.apache.hudi.common.model.HoodieTimelineTimeZone.UTC
        builder = self.jvm.org.apache.hudi.common.table.HoodieTableMetaClient.newTableBuilder()
        builder = builder.setTableType("COPY_ON_WRITE").setTableName("commits").setRecordKeyFields("id")
        builder.setTableVersion(9).setCommitTimezone(zone).initTable(self.conf, self.folder)

    def writer(self) -> Callable[[], None]:
        """What makes one commit."""
        hudi = self.jvm.org.apache.hudi
        client = hudi.client.SparkRDDWriteClient(hudi.client.common.HoodieSparkEngineContext(self.jsc), self._config())
        insert, none = hudi.common.model.WriteOperationType.INSERT, hudi.common.util.Option.empty()
        empty, nothing = self.jsc.emptyRDD(), self.jvm.java.util.HashMap()

        def commit() -> None:
            instant = client.startCommit("commit")
            client.setOperationType(insert)
            meta = hudi.common.table.HoodieTableMetaClient.builder().setConf(self.conf)
            meta = meta.setBasePath(self.folder).build()
            client.preWrite(instant, insert, meta)
            meta.getActiveTimeline().transitionRequestedToInflight("commit", instant)
            assert client.commit(instant, empty, none, "commit", nothing, none)

        return commit

    def _config(self) -> Any:
        properties = self.jvm.java.util.Properties()
        for name, value in OPTIONS.items():
            properties.setProperty(name, value)
        builder = self.jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(self.folder).withProps(properties).withSchema(_SCHEMA).build()


def _start(jar: str) -> SparkSession:
    settings = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def main(jar: str, folder: str, writers: str, seconds: str) -> None:
    hudi = Hudi(jar, folder)
    hudi.prepare()
    commits = [hudi.writer() for _ in range(int(writers))]
    counts = [0] * len(commits)
    for commit in commits:
        commit()
    ends_s = time.perf_counter() + float(seconds)

    def work(number: int) -> None:
        while time.perf_counter() < ends_s:
            commits[number]()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(commits))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(counts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
