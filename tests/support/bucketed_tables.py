"""Small merge-on-read tables of two buckets, whose writers do not block each other, ours and those of the JVM."""

from __future__ import annotations

from typing import Any

from hudi_locks.spark import HoodieTable

__all__ = ["KEYS", "MODE", "THEIRS", "TOGETHER", "in_order", "rows", "run_compaction"]

Row = tuple[Any, ...]
MODE = "NON_BLOCKING_CONCURRENCY_CONTROL"
TOGETHER = {
    "hoodie.write.concurrency.mode": MODE,
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
THEIRS = {
    **{key.replace(".", "__"): value for key, value in TOGETHER.items()},
    "hoodie__datasource__write__table__type": "MERGE_ON_READ",
    "hoodie__compact__inline": "false",
    "hoodie__datasource__compaction__async__enable": "false",
}
KEYS = [f"{text}{number}" for number in range(4) for text in ("k", "ключ", "😀")]


def rows(keys: list[str], ts: int, label: str, region: str = "eu") -> list[Row]:
    return [(key, region, ts, float(ts), label) for key in keys]


def in_order(found: Any) -> list[Row]:
    return sorted((tuple(row) for row in found), key=repr)


def run_compaction(jvm: Any, table: HoodieTable, op: str) -> None:
    options = "hoodie.datasource.write.recordkey.field=id,hoodie.compact.inline.max.delta.commits=1"
    jvm.sql(f"call run_compaction(path => '{table.path}', op => '{op}', options => '{options}')")
