"""One writer of the commits benchmark, in a process of its own.

usage: python -m benchmarks.commits_side SIDE KIND FOLDER WRITER SECONDS [ENDPOINT]

SIDE is ours, deltalake or pyiceberg; KIND is `metadata` (a commit that adds a file by name only), `archived` (the same,
and old instants are archived when there are too many) or `rows` (one that writes a hundred rows). With ENDPOINT, an S3
service, the table lies in its bucket under the name of the folder, and so does the lock; the folder keeps pyiceberg's
catalog. It prints `ready`, waits for a line, commits for so many seconds and prints how often.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks import LockManager
from hudi_locks.format import (
    BaseFileName,
    CommitMetadata,
    Instant,
    IOType,
    State,
    WriteStat,
    add_ms,
    avro_schema,
)
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.storage import map_in_threads, open_storage
from hudi_locks.table import Table, TableConfig, add_meta_schema
from hudi_locks.timeline import read_instant
from hudi_locks.transaction import Outcome, Transactions

__all__ = ["LOCK", "SIDES", "Place", "grow", "prepare", "stage_files"]

_BUCKET, _REGION, _KEY = "locks", "us-east-1", "lockstest"
"""Of the S3 service that the conformance kit starts; the secret key is the same."""

ROWS = pa.table({"id": [f"key-{number:05d}" for number in range(100)], "value": list(range(100))})
LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.lock.num_retries": "100000",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.write.lock.wait_time_ms_between_retry": "2",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "20",
}
"""So that writers wait for each other and not for Hudi's default pause of a second."""
_PATIENCE = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "2",
    "commit.retry.max-wait-ms": "20",
    "commit.retry.total-timeout-ms": "600000",
}
"""The same for pyiceberg."""
_KEPT = replace(ArchiveSettings.of({}), min_age_ms=0)
"""So that a table of a minute's life has the timeline of one of months."""
Commit = Callable[[], None]


@dataclass(frozen=True)
class Place:
    """Where a table lies.

    Attributes:
        folder: The table on a local disk; of one on S3 its name, and what pyiceberg keeps of it.
        endpoint: Of an S3 service; "" for a local disk.
    """

    folder: Path
    endpoint: str = ""

    @property
    def base(self) -> str:
        return f"s3://{_BUCKET}/{self.folder.name}" if self.endpoint else str(self.folder)

    @property
    def lock(self) -> dict[str, str]:
        return {"hoodie.write.lock.provider": "storage"} if self.endpoint else {}

    @property
    def service(self) -> dict[str, str]:
        """Our options."""
        keys = {"hoodie.aws.access.key": _KEY, "hoodie.aws.secret.key": _KEY}
        given = {"hudi_locks.storage.endpoint_url": self.endpoint, "hudi_locks.storage.allow_http": "true"}
        return {**keys, **given} if self.endpoint else {}

    @property
    def delta_options(self) -> dict[str, str] | None:
        named = {"ENDPOINT_URL": self.endpoint, "REGION": _REGION, "ACCESS_KEY_ID": _KEY, "SECRET_ACCESS_KEY": _KEY}
        given = {f"AWS_{name}": value for name, value in named.items()}
        return {**given, "AWS_ALLOW_HTTP": "true", "conditional_put": "etag"} if self.endpoint else None

    @property
    def spark_conf(self) -> dict[str, str]:
        """As Spark is told of the service, by which our tables find it too."""
        if not self.endpoint:
            return {}
        named = {"endpoint": self.endpoint, "access.key": _KEY, "secret.key": _KEY, "path.style.access": "true"}
        more = {"connection.ssl.enabled": "false", "directory.marker.retention": "keep"}
        return {f"spark.hadoop.fs.s3a.{key}": value for key, value in {**named, **more}.items()}

    @property
    def iceberg_properties(self) -> dict[str, str]:
        named = {"endpoint": self.endpoint, "region": _REGION, "access-key-id": _KEY, "secret-access-key": _KEY}
        return {f"s3.{name}": value for name, value in named.items()} if self.endpoint else {}


def prepare(side: str, place: Place, *, foreign: bool = False) -> None:
    """Make the table that all writers of a side share."""
    if side == "ours":
        known = {} if foreign else {"hudi_locks.foreign_writers": "false"}
        config = TableConfig(name="commits", record_key_fields=("id",), extra=known)
        Table.create(open_storage(place.base, options=place.service), config)
    elif side == "deltalake":
        import deltalake

        schema = deltalake.Schema.from_arrow(ROWS.schema)
        deltalake.DeltaTable.create(place.base, schema, storage_options=place.delta_options)
    else:
        with _catalog(place) as catalog:
            catalog.create_namespace("n")
            catalog.create_table("n.commits", schema=ROWS.schema, properties=_PATIENCE)


def grow(folder: Path, commits: int, *, archives: bool) -> None:
    """Let one writer of ours make so many commits; if none is archived, most of them by their files alone."""
    if not archives:
        _fill(folder, commits)
        return
    with _ours(Place(folder), "archived", "before") as commit:
        for _ in range(commits):
            commit()


def _fill(folder: Path, commits: int) -> None:
    """A commit, and before it copies of its instant, a second apart."""
    with _ours(Place(folder), "metadata", "before") as commit:
        commit()
    table = Table.load(open_storage(str(folder)))
    [made] = table.timeline().instants
    data = read_instant(table.storage, table.timeline(), instant=made)
    for number in range(1, commits):
        time = add_ms(made.requested, -1000 * number)
        begun = Instant(time, made.action, State.REQUESTED)
        states = {begun: b"", begun.as_inflight(): b"", begun.as_completed(add_ms(time, 500)): data}
        for instant, content in states.items():
            (folder / table.layout.path(instant)).write_bytes(content)


@contextlib.contextmanager
def _ours(place: Place, kind: str, writer: str) -> Iterator[Commit]:
    options = {"hoodie.base.path": place.base, **LOCK, **place.lock, **place.service}
    table = Table.load(open_storage(place.base, options=options), for_writing=True)
    schema = avro_schema(ROWS.schema, table.config.name)
    counter = iter(range(sys.maxsize))
    with LockManager.from_options(options) as locks:
        transactions = Transactions(table, locks, options=options)
        archiver = Archiver(transactions.coordinator, _KEPT, clean_settings=CleanSettings.of({}))

        def commit() -> None:
            with transactions.begin("commit", "INSERT") as transaction:
                name = BaseFileName(f"{writer}-{next(counter)}", transaction.instant)
                ticket = _write_file(transaction, str(name)) if kind == "rows" else None
                rows = ROWS.num_rows
                stat = WriteStat("", name.file_id, str(name), num_writes=rows, num_inserts=rows, ticket=ticket)
                done = transaction.publish(CommitMetadata.of([stat], "INSERT", schema=schema))
                assert done.outcome is Outcome.COMMITTED, done
            if kind == "archived" and archiver.is_due(transactions.coordinator.peek().timeline):
                archiver.run()

        yield commit


def _write_file(transaction: Any, name: str) -> str:
    staged = transaction.files.start("", name, io_type=IOType.CREATE)
    meta = add_meta_schema(ROWS.schema)
    empty = [pa.nulls(ROWS.num_rows, pa.string()) for _ in range(len(meta) - len(ROWS.schema))]
    with staged.open() as sink:
        pq.write_table(pa.table([*empty, *ROWS.columns], schema=meta), sink, compression="zstd")
    return str(transaction.files.seal(staged))


def stage_files(transaction: Any, count: int, table: Table, *, named_before: bool) -> tuple[list[WriteStat], str]:
    """Files of a hundred rows each, as tasks stage them, with the schema of the table.

    Args:
        transaction: The write.
        count: How many.
        table: It goes to.
        named_before: Whether they get their names now, and not by the claim.
    """
    names = [BaseFileName(f"{transaction.instant}-{number}", transaction.instant) for number in range(count)]
    tickets = map_in_threads(lambda name: _write_file(transaction, str(name)), names, threads=32)
    if named_before:
        pairs = list(zip(tickets, names, strict=True))
        map_in_threads(lambda pair: table.storage.redeem(pair[0], str(pair[1])), pairs, threads=32)
    rows = ROWS.num_rows
    stats = [
        WriteStat(
            "", name.file_id, str(name), num_writes=rows, num_inserts=rows, ticket=None if named_before else ticket
        )
        for name, ticket in zip(names, tickets, strict=True)
    ]
    return stats, avro_schema(ROWS.schema, table.config.name)


@contextlib.contextmanager
def _deltalake(place: Place, kind: str, writer: str) -> Iterator[Commit]:
    import deltalake
    from deltalake.transaction import AddAction

    counter = iter(range(sys.maxsize))
    patience = deltalake.CommitProperties(max_commit_retries=1_000)

    def commit() -> None:
        if kind == "rows":
            deltalake.write_deltalake(
                place.base, ROWS, mode="append", commit_properties=patience, storage_options=place.delta_options
            )
            return
        table = deltalake.DeltaTable(place.base, storage_options=place.delta_options)
        add = AddAction(f"{writer}-{next(counter)}.parquet", 1000, {}, 0, True, "{}")
        table.create_write_transaction([add], mode="append", schema=table.schema(), commit_properties=patience)

    yield commit


@contextlib.contextmanager
def _catalog(place: Place) -> Iterator[Any]:
    from pyiceberg.catalog.sql import SqlCatalog

    place.folder.mkdir(parents=True, exist_ok=True)
    warehouse = place.base if place.endpoint else f"file://{place.folder}/warehouse"
    uri = f"sqlite:///{place.folder}/catalog.db"
    catalog = SqlCatalog("bench", uri=uri, warehouse=warehouse, **place.iceberg_properties)
    yield catalog
    catalog.engine.dispose()


@contextlib.contextmanager
def _pyiceberg(place: Place, kind: str, writer: str) -> Iterator[Commit]:
    from pyiceberg.exceptions import CommitFailedException
    from sqlalchemy.exc import OperationalError

    counter = iter(range(sys.maxsize))
    with _catalog(place) as catalog:

        def commit() -> None:
            while True:
                table = catalog.load_table("n.commits")
                with contextlib.suppress(CommitFailedException, OperationalError):
                    if kind == "rows":
                        table.append(ROWS)
                    else:
                        with table.transaction() as transaction:
                            transaction.set_properties({f"last-{writer}": str(next(counter))})
                    return

        yield commit


SIDES: dict[str, Callable[[Place, str, str], contextlib.AbstractContextManager[Commit]]] = {
    "ours": _ours,
    "deltalake": _deltalake,
    "pyiceberg": _pyiceberg,
}


def main(side: str, kind: str, folder: str, writer: str, seconds: str, endpoint: str = "") -> None:
    with SIDES[side](Place(Path(folder), endpoint), kind, writer) as commit:
        commit()
        print("ready", flush=True)
        sys.stdin.readline()
        ends_s, count = time.perf_counter() + float(seconds), 0
        while time.perf_counter() < ends_s:
            commit()
            count += 1
        print(count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
