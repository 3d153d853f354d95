"""Every kind of file that is read, damaged at random: it is read, or refused by its name; nothing else comes out.

`HUDI_LOCKS_DAMAGES=5000` damages each kind that many times.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from damages import DEEP, WAYS
from golden_metadata import read_golden
from slice_files import new_file

from hudi_locks.clock import ManualClock
from hudi_locks.early_conflict import find_reported
from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import (
    ArchiveRow,
    BucketCounts,
    CleanMetadata,
    CleanPartition,
    CleanPlan,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    Instant,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    SavepointMetadata,
    State,
    WriteStat,
    arrow_schema,
    avro_schema,
    decode_manifest,
    decode_properties,
    decode_rows,
    encode_manifest,
    encode_properties,
    encode_rows,
)
from hudi_locks.format.claim import Claim, ClaimKind, Content, FileGroupId, claim_path, decode_claim, encode_claim
from hudi_locks.format.hfile import HFile
from hudi_locks.format.hfile_writer import encode_hfile
from hudi_locks.format.log_block import encode_block
from hudi_locks.format.metadata_record import (
    FileEntry,
    MetadataRecord,
    RecordKind,
    decode_metadata_record,
    encode_metadata_record,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage
from hudi_locks.table import (
    BaseFileFormat,
    BaseFileWriter,
    TableConfig,
    add_meta_schema,
    log_rows,
    read_base_file,
    read_first_key,
)
from hudi_locks.table.partition_path import PARTITION_METADATA, read_partition_metadata
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.timeline.archive import find_archived_completions, list_archived_since
from hudi_locks.timeline.claims import HeadHint
from hudi_locks.timeline.heartbeat import Beating
from hudi_locks.transaction.schemas import find_schema

DAMAGES = int(os.environ.get("HUDI_LOCKS_DAMAGES", "150"))
T = "20231114221320000"
GROUP = "f-0"
USER = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("tags", pa.list_(pa.field("element", pa.string())))])
SCHEMA = add_meta_schema(USER)
AVRO = avro_schema(USER, "t", with_meta_columns=True)
ROWS = pa.Table.from_pylist(
    [{**dict.fromkeys(SCHEMA.names[:5], f"k{n}"), "id": "a", "ts": n} for n in range(50)], SCHEMA
)
Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Kind:
    """A kind of file: what a sound one holds, under which name it is read, and how."""

    name: str
    data: bytes
    path: str
    read: Read


def by_path(decode: Callable[[bytes, str], object]) -> tuple[str, Read]:
    return "the file", lambda data: decode(data, "the file")


def in_folder(folder: Path, name: str, read: Callable[[LocalStorage], object]) -> tuple[str, Read]:
    def write_and_read(data: bytes) -> object:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return read(LocalStorage(str(folder)))

    return name, write_and_read


def read_whole_log(data: bytes) -> object:
    return [entry.whole for entry in log_rows.read_log(data, "the file")]


def read_whole_hfile(data: bytes, path: str) -> object:
    found = HFile(data, path)
    return list(found.entries()), found.get_many([b"k07", b"us", b"x"]), found.meta_blocks


def read_whole_base_file(storage: Storage, path: str) -> object:
    return (
        list(read_base_file(storage, path)),
        list(read_base_file(storage, path, encoded=["id"])),
        read_first_key(storage, path),
    )


def make_base_file(folder: Path) -> bytes:
    writer = BaseFileWriter(new_file(LocalStorage(str(folder)), "sound.parquet"), SCHEMA, BaseFileFormat(AVRO))
    writer.write(ROWS)
    writer.close()
    return (folder / "sound.parquet").read_bytes()


def make_kinds(folder: Path) -> list[Kind]:
    commit = CommitMetadata.of([WriteStat("p", GROUP, f"p/{GROUP}_0-0-0_{T}.parquet")], "UPSERT", schema=AVRO)
    claim = Claim(
        ClaimKind.PUBLISH, T, "commit", T, number=1, writes=frozenset({FileGroupId("p", GROUP)}),
        content=Content.of(f"{T}_{T}.commit", commit.encode("commit", layout_version=2)),
    )  # fmt: skip
    piece = ClusteringSlice("p", GROUP, "/t/p/f", ())
    done = CleanMetadata(T, 5, "", "1", "KEEP_LATEST_COMMITS", {"p": CleanPartition(("b",), ("c",))}, ("2",))
    undone = RollbackMetadata(T, 5, ((T, "commit"),), {"p": RollbackPartition(deleted=("/t/p/f",))})
    restored = RestoreMetadata(T, 1, ((T, "commit"),), {T: (undone,)})
    part = encode_rows([ArchiveRow(T, T, "commit", b"m", b"p")])
    storage = MemoryStorage(ManualClock())

    def read_hint(data: bytes) -> object:
        storage.replace(".hoodie/.hudi_locks/head", data)
        return HeadHint(storage, ManualClock()).read()

    def read_beat(data: bytes) -> object:
        found = Beating.decode(data)
        return found and (found.is_over, f"process {found.pid} on {found.host}")

    part_name = f"{LAYOUT_2.archive}/{T}_{T}_0.parquet"

    def read_part(storage: LocalStorage) -> object:
        since = list_archived_since(storage, LAYOUT_2, completed_after="20231114000000000")
        return since, find_archived_completions(storage, LAYOUT_2, requested=[T])

    base = "damaged.parquet"
    partition = b"#partition metadata\ncommitTime=20231114221320000\npartitionDepth=1\n"
    properties = TableConfig("t", ("id",)).to_properties()
    log = {form: encode_block(log_rows.encode_rows(ROWS, AVRO, instant=T, form=form)) for form in ("parquet", "avro")}
    hfile = encode_hfile([(b"k%02d" % n, b"value") for n in range(30)], block_bytes=200)
    deletes = encode_block(log_rows.encode_deleted(pa.chunked_array([["k1", "k2"]]), "p", instant=T, avro_schema=AVRO))
    return [
        Kind("claim", encode_claim(claim), claim_path(1), lambda data: decode_claim(data, 1)),
        Kind("head hint", b"12\n", "", read_hint),
        Kind("heartbeat", Beating("h", "m", os.getpid(), "1", "i").encode(), "", read_beat),
        Kind("commit", commit.encode("commit", layout_version=2), *by_path(CommitMetadata.decode)),
        Kind("commit of version 6", commit.encode("commit", layout_version=1), *by_path(CommitMetadata.decode)),
        Kind("clean plan", CleanPlan(None, "1", "K", {"p": ("/t/p/b",)}).encode(), *by_path(CleanPlan.decode)),
        Kind("clean", done.encode(), *by_path(CleanMetadata.decode)),
        Kind("clustering plan", ClusteringPlan((ClusteringGroup((piece,)),)).encode(), *by_path(ClusteringPlan.decode)),
        Kind(
            "compaction plan",
            CompactionPlan((CompactionOperation("p", GROUP, T, "", (f".{GROUP}_{T}.log.1_0-0-0",), 5),)).encode(),
            *by_path(CompactionPlan.decode),
        ),
        Kind("restore plan", RestorePlan("1", ((T, "commit"),)).encode(), *by_path(RestorePlan.decode)),
        Kind(
            "restore",
            restored.encode(),
            *by_path(RestoreMetadata.decode),
        ),
        Kind(
            "rollback plan",
            RollbackPlan.of(Instant(T, "commit", State.INFLIGHT), (RollbackRequest("p", ("/t/p/f",)),)).encode(),
            *by_path(RollbackPlan.decode),
        ),
        Kind("rollback", undone.encode(), *by_path(RollbackMetadata.decode)),
        Kind("savepoint", SavepointMetadata("a", 1, "b").encode(), *by_path(SavepointMetadata.decode)),
        Kind("archived part", part, *by_path(decode_rows)),
        Kind("archived part that is searched", part, *in_folder(folder, part_name, read_part)),
        Kind("manifest", encode_manifest({"a": 1}), *by_path(decode_manifest)),
        Kind("bucket counts", BucketCounts(4).encode(), *by_path(BucketCounts.decode)),
        Kind("properties", encode_properties({"a": "b"}), *by_path(decode_properties)),
        Kind(
            "hoodie.properties",
            encode_properties(properties),
            *by_path(lambda data, path: TableConfig.from_properties(decode_properties(data, path), path)),
        ),
        Kind(
            "partition metadata",
            partition,
            *in_folder(folder, f"p/{PARTITION_METADATA}", lambda storage: read_partition_metadata(storage, "p")),
        ),
        Kind("schema", AVRO.encode(), *by_path(lambda data, path: arrow_schema(data.decode("latin-1"), path))),
        Kind(
            "base file",
            make_base_file(folder),
            *in_folder(folder, base, lambda storage: read_whole_base_file(storage, base)),
        ),
        Kind("log of Parquet rows", log["parquet"], "the file", read_whole_log),
        Kind("log of Avro rows", log["avro"], "the file", read_whole_log),
        Kind("log of deletes", deletes, "the file", read_whole_log),
        Kind("HFile", hfile, *by_path(read_whole_hfile)),
        *(
            Kind(f"HFile of the JVM, {path}", data, *by_path(read_whole_hfile))
            for path, data in read_golden("1.0.2").items()
            if path.endswith(".hfile") and "files-" in path
        ),
        Kind(
            "record of the metadata table",
            encode_metadata_record(MetadataRecord(RecordKind.FILES, {"a": FileEntry(7)}), 9),
            *by_path(lambda data, path: decode_metadata_record(data, SCHEMA_TEXTS[9], path)),
        ),
    ]


def judge(kind: Kind, data: bytes) -> str:
    """What came out, or a complaint about it that begins with "!"."""
    try:
        kind.read(data)
    except DamagedTable as error:
        return "refused" if kind.path and kind.path in str(error) else f"! it is not named: {error}"
    except UnsupportedTable as error:
        return "refused" if kind.path in str(error) else f"! it is not named: {error}"
    except BaseException as error:  # the test is about whatever comes out
        return f"! {type(error).__name__}: {str(error)[:200]}"
    return "read"


@pytest.mark.damages
def test_what_is_damaged_is_read_or_refused_by_its_name(tmp_path: Path) -> None:
    complaints: set[str] = set()
    outcomes: dict[str, set[str]] = {}
    for kind in make_kinds(tmp_path):
        rng = random.Random(kind.name)
        assert judge(kind, kind.data) == "read", f"{kind.name}: {judge(kind, kind.data)}"
        damaged = [b"", DEEP, b"{" * 3, b"9" * 5_000, *(rng.choice(WAYS)(rng, kind.data) for _ in range(DAMAGES))]
        found = [judge(kind, data) for data in damaged]
        outcomes[kind.name] = set(found)
        complaints |= {f"{kind.name}: {outcome}" for outcome in found if outcome.startswith("!")}
    assert not complaints, "\n".join(sorted(complaints))
    never_refused = {name for name, found in outcomes.items() if "refused" not in found}
    assert never_refused == {"head hint", "heartbeat"}, "the others could not fail here"


def test_a_claim_that_unpacks_to_more_than_it_promises_is_refused_before_it_does() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))
    content = {"name": "x.commit", "sha256": "0" * 64, "size": 10, "encoding": "gzip+base64"}
    fields = json.loads(encode_claim(Claim(ClaimKind.PUBLISH, T, "commit", T, number=1)))
    fields["content"] = {**content, "data": base64.b64encode(bomb).decode()}
    entry = json.dumps(fields).encode()
    tracemalloc.start()
    try:
        with pytest.raises(DamagedTable, match=re.escape(claim_path(1))):
            decode_claim(entry, 1)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_head_hint_of_any_length_costs_requests_and_nothing_else() -> None:
    storage = MemoryStorage(ManualClock())
    for text in (b"9" * 5_000, b"9" * 21, b"\xb2", b"-3", b""):
        storage.replace(".hoodie/.hudi_locks/head", text)
        assert HeadHint(storage, ManualClock()).read() == 0


@pytest.mark.parametrize(
    "field", [{"pid": "Infinity"}, {"pid": 0}, {"pid": -1}, {"pid": 2**70}, {"id": 3}, {"host": None}, {"started": []}]
)
def test_a_heartbeat_that_no_process_wrote_tells_nothing(field: dict[str, Any]) -> None:
    fields = {"host": "h", "machine": "m", "pid": 7, "started": "1", "id": "i", **field}
    text = json.dumps(fields).replace('"Infinity"', "Infinity")
    assert Beating.decode(text.encode()) is None
    assert Beating.decode(DEEP) is None


def test_word_of_an_early_conflict_that_is_damaged_is_named() -> None:
    storage = MemoryStorage(ManualClock())
    path = f".hoodie/.hudi_locks/staging/{T}/early-conflict.json"
    for text in (b"", DEEP, b"[]", b"{}", b'{"instant": 1e999}'):
        storage.replace(path, text)
        with pytest.raises(DamagedTable, match=re.escape(path)):
            find_reported(storage, T)


@pytest.mark.parametrize("schema", ["[", "[]", '{"fields": 3}', '{"fields": [{}]}', DEEP.decode()])
def test_columns_that_a_commit_declares_in_a_damaged_form_are_named(schema: str) -> None:
    storage = MemoryStorage(ManualClock())
    path = LAYOUT_2.path(Instant(T, "commit", State.INFLIGHT).as_completed(T))
    storage.replace(path, CommitMetadata.of([], "UPSERT", schema=schema).encode("commit", layout_version=2))
    with pytest.raises(DamagedTable, match=re.escape(path)):
        find_schema(storage, Timeline.load(storage, LAYOUT_2))
