"""Tables that are made of Parquet files which lie elsewhere, as a bootstrap of JVM Hudi makes them."""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.format import CommitMetadata, Instant, State, WriteStat, avro_schema
from hudi_locks.format.bootstrap_index import BOOTSTRAP_INDEX, source_key
from hudi_locks.format.hfile_writer import encode_hfile
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.storage import LocalStorage, Storage
from hudi_locks.table import Table, TableConfig, add_meta_schema, create_partition_metadata
from hudi_locks.timeline import create_instant

__all__ = ["Source", "bootstrap", "digest", "write_index", "write_source"]

Source = Mapping[str, Sequence[pa.Table]]
"""Files of each folder."""
_COMPLETED = "20200101000000000"


def _record(name: str, *fields: tuple[str, Any]) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


_TEXT = ["null", "string"]
_STATUS = _record(
    "HoodieFileStatus", ("path", ["null", _record("HoodiePath", ("uri", _TEXT))]), ("length", ["null", "long"])
)
_PARTITION = fastavro.parse_schema(
    _record(
        "HoodieBootstrapPartitionMetadata",
        ("bootstrapPartitionPath", _TEXT),
        ("partitionPath", _TEXT),
        ("fileIdToBootstrapFile", ["null", {"type": "map", "values": _STATUS}]),
    )
)


def write_source(folder: Path, source: Source, *, row_group_rows: int = 4) -> None:
    """Parquet as Spark leaves it: without the columns that folders tell."""
    for partition, files in source.items():
        (folder / partition).mkdir(parents=True, exist_ok=True)
        for number, rows in enumerate(files):
            pq.write_table(rows, folder / partition / f"part-{number}.parquet", row_group_size=row_group_rows)


def bootstrap(
    path: Path, folder: Path, source: Source, *, keys: str = "id", partitions: Mapping[str, pa.DataType], **config: Any
) -> Table:
    """A table whose files have meta columns alone, of the source in a folder.

    Args:
        path: Where it is made.
        folder: Of the source, which is written first.
        source: The files of each folder.
        keys: Column of the record key.
        partitions: The partition columns that folders tell, with their types in the table.
        config: Other settings of the table.
    """
    write_source(folder, source)
    fields = [*next(iter(source.values()))[0].schema, *(pa.field(name, kind) for name, kind in partitions.items())]
    extra = {"hoodie.bootstrap.base.path": str(folder), "hoodie.bootstrap.index.type": "HFILE"}
    settings = {"ordering_fields": ("ts",), "hive_style": True, "extra": extra, **config}
    table = Table.create(LocalStorage(str(path)), TableConfig("t", (keys,), tuple(partitions), **settings))
    stats = [
        _write_skeleton(table, partition, number, rows, keys=keys)
        for partition, files in source.items()
        for number, rows in enumerate(files)
    ]
    write_index(table.storage, {part: [f"file:{folder}/{part}/part-{n}.parquet" for n in range(len(files))]
                                for part, files in source.items()})  # fmt: skip
    _complete(table, CommitMetadata.of(stats, "BOOTSTRAP", schema=avro_schema(pa.schema(fields), "t")))
    return table


def write_index(storage: Storage, sources: Mapping[str, Sequence[str]], **told: Any) -> None:
    """The index of a bootstrap, of the addresses of the files of each folder; `told` is another size of all."""
    entries = []
    for partition, addresses in sorted(sources.items()):
        files = {
            _name_group(partition, number): {"path": {"uri": address}, "length": told.get("size", _measure(address))}
            for number, address in enumerate(addresses)
        }
        record = {"bootstrapPartitionPath": partition, "partitionPath": partition, "fileIdToBootstrapFile": files}
        out = io.BytesIO()
        fastavro.writer(out, _PARTITION, [record])
        entries.append((source_key(partition), out.getvalue()))
    storage.replace(BOOTSTRAP_INDEX, encode_hfile(entries))


def _measure(address: str) -> int:
    place = Path(address.removeprefix("file:"))
    return place.stat().st_size if place.exists() else 1


def _name_group(partition: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{partition}/{number}"))


def _write_skeleton(table: Table, partition: str, number: int, rows: pa.Table, *, keys: str) -> WriteStat:
    file_id = _name_group(partition, number)
    name = f"{file_id}_0-1-{number}_{METADATA_BOOTSTRAP}.parquet"
    path, count = f"{partition}/{name}".removeprefix("/"), rows.num_rows
    numbers = [f"{METADATA_BOOTSTRAP}_{number}_{row}" for row in range(count)]
    columns = [[METADATA_BOOTSTRAP] * count, numbers, rows.column(keys).cast(pa.string()).to_pylist()]
    columns += [[partition] * count, [name] * count]
    place = Path(table.storage.address(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    schema = add_meta_schema(pa.schema([]))
    pq.write_table(pa.table([pa.array(one, pa.string()) for one in columns], schema=schema), place, row_group_size=3)
    create_partition_metadata(table.storage, partition, instant=METADATA_BOOTSTRAP)
    size = place.stat().st_size
    return WriteStat(partition, file_id, path, num_writes=count, num_inserts=count, file_size_bytes=size)


def _complete(table: Table, metadata: CommitMetadata) -> None:
    action = "deltacommit" if table.is_merge_on_read else "commit"
    begun = Instant(METADATA_BOOTSTRAP, action, State.REQUESTED)
    for state in (begun, begun.as_inflight()):
        create_instant(table.storage, table.layout, instant=state)
    done = begun.as_inflight().as_completed(_COMPLETED)
    data = metadata.encode(action, layout_version=table.layout.version)
    table.storage.replace(table.layout.path(done), data)


def digest(folder: Path) -> dict[str, str]:
    """What is in each file of a folder, to show that it is untouched."""
    files = sorted(folder.rglob("*.parquet"))
    return {str(file.relative_to(folder)): hashlib.md5(file.read_bytes()).hexdigest() for file in files}
