"""Join two streams in a table that takes the columns of a row from whoever sets them.

usage: join_orders.py FOLDER
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from hudi_locks.spark import HoodieTable

TOGETHER = {
    "hoodie.write.table.version": 9,
    "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": 2,
    "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
}
ORDERS = [
    {"id": 1, "ts": 10, "customer": "Ada", "amount": 12.5},
    {"id": 2, "ts": 11, "customer": "Grace", "amount": 3.0},
    {"id": 3, "ts": 12, "customer": "Edsger", "amount": 8.0},
]
SHIPMENTS = [
    {"id": 3, "ts": 9, "carrier": "ship"},
    {"id": 1, "ts": 30, "carrier": "train"},
]
JOINED = [(1, 30, "Ada", 12.5, "train"), (2, 11, "Grace", 3.0, None), (3, 12, "Edsger", 8.0, "ship")]


def start(spark: SparkSession, folder: Path, name: str, schema: str):
    """Write the events of one stream into the table, each micro-batch exactly once."""
    sink = HoodieTable.load(spark, str(folder / "table"), options=TOGETHER).stream_sink(identifier=name)
    events = spark.readStream.schema(schema).json(str(folder / name))
    writer = events.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    return writer.trigger(availableNow=True).start()


def put(folder: Path, name: str, events: list) -> None:
    (folder / name).mkdir(parents=True)
    for number, event in enumerate(events):
        (folder / name / f"{number}.json").write_text(json.dumps(event))


def join(spark: SparkSession, folder: Path) -> list:
    """The rows of both streams, joined."""
    put(folder, "orders", ORDERS)
    put(folder, "shipments", SHIPMENTS)
    path = str(folder / "table")
    table = HoodieTable.create(
        spark, path, name="joined", record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=TOGETHER
    )
    queries = [
        start(spark, folder, "orders", "id long, ts long, customer string, amount double"),
        start(spark, folder, "shipments", "id long, ts long, carrier string"),
    ]
    for query in queries:
        query.awaitTermination()
    rows = table.read(meta_columns=False).select("id", "ts", "customer", "amount", "carrier").orderBy("id")
    return [tuple(row) for row in rows.collect()]


def main(folder: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # executors run the interpreter that has the packages
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = join(spark, Path(folder))
    for row in rows:
        print(row)
    spark.stop()
    if rows != JOINED:
        sys.exit(f"these should have been {JOINED}")


if __name__ == "__main__":
    main(sys.argv[1])
