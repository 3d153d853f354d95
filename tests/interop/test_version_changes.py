"""Tables that this package upgrades and downgrades, and what JVM Hudi of each version and hudi-rs show of them then."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import ServerUnavailable
from metadata_turns import BY_BUCKET, BY_KEY, Shared
from other_readers import DEADLINE_S, SCHEMA, Jvm
from table_lives import collect

from hudi_locks.errors import TableError
from hudi_locks.format import decode_properties
from hudi_locks.services import downgrade_table, upgrade_table
from hudi_locks.services.metadata_properties import NAMED
from hudi_locks.spark import HoodieTable
from hudi_locks.table import PROPERTIES_PATH
from hudi_locks.timeline.archive import list_archived_times

NEWEST = ("1.2.0", 9)
pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", [NEWEST], indirect=True, ids=["1.2.0-v9"]),
]
ALSO = ("COPY_ON_WRITE", BY_BUCKET)
"""In the nightly run; a merge-on-read table of looked-up keys has files of both."""
KINDS = (BY_KEY, *ALSO)
LOCK = {"hoodie.write.lock.provider": "filesystem"}
OTHER = "of version 6 when it was opened, and is of version 9 now: open it anew"
MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.datasource.write.payload.class"
CUSTOM = "org.apache.hudi.keygen.CustomKeyGenerator"
FIRST = (("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))
UNTOLD = {
    *NAMED,
    "hoodie.table.index.defs.path",  # of the metadata table
    "hoodie.archivelog.folder",
    "hoodie.timeline.history.path",  # which has that value where it is not said
    "hoodie.compaction.record.merger.strategy",  # an old name of a key that the JVM takes away under its new one alone
}


@pytest.fixture(scope="module")
def jvm_0_15() -> Iterator[Jvm]:
    """Of the last release that knows no later version than 6."""
    yield from _start("0.15.0", 6)


@pytest.fixture(scope="module")
def jvm_1_0() -> Iterator[Jvm]:
    """Of the releases that know no later one than 8."""
    yield from _start("1.0.2", 8)


def _start(release: str, version: int) -> Iterator[Jvm]:
    try:
        agent = Jvm(release, version)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent
    agent.close()


@contextmanager
def writing(jvm: Jvm, version: int) -> Iterator[None]:
    """Let a JVM that knows several versions write another one."""
    before, jvm.table_version = jvm.table_version, version
    try:
        yield
    finally:
        jvm.table_version = before


def make(maker: Jvm, spark: Any, path: str, kind: str) -> Shared:
    """A table of version 6 with writes of both, logs among them, and its metadata table."""
    table = Shared(maker, spark, path, kind)
    with writing(maker, 6):
        table.theirs(*FIRST)
        table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"))
        table.theirs(("b", "eu", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"))
    return table


def go_on(table: Shared, ts: int) -> None:
    """Both write: keys that were there before, and new ones."""
    table.ours(("b", "eu", ts, 1.5, "ours"), (f"q{ts}", "us", ts, 1.0, "ours"))
    table.theirs(("a", "eu", ts + 1, 9.5, "theirs"), (f"r{ts}", "us", ts + 1, 1.0, "theirs"))


def compact(table: Shared) -> None:
    opened = table.open()
    if opened.table.is_merge_on_read:
        opened.compaction.run()
        table.check()


@pytest.mark.parametrize("kind", [BY_KEY, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ALSO)])
def test_both_write_on_after_an_upgrade_and_back_at_version_6(spark: Any, jvm: Jvm, path: str, kind: str) -> None:
    table = make(jvm, spark, path, kind)
    told = upgrade_table(path, LOCK)
    assert (told.before, told.after, told.instants) == (6, 9, 3)
    assert "files" in told.made
    table.check()
    assert jvm.read_path(path) == table.expected
    compact(table)  # logs that are named as in version 6
    go_on(table, 4)
    compact(table)
    assert downgrade_table(path, LOCK, to=6).after == 6
    with writing(jvm, 6):
        table.check()
        go_on(table, 8)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [(8, 9, 6), (9, 8, 6)], ids=["by 8", "from 9 by 8"])
def test_a_table_of_hudi_0_15_is_written_by_the_jvm_of_each_version(
    spark: Any, jvm: Jvm, jvm_0_15: Jvm, jvm_1_0: Jvm, path: str, kind: str, steps: tuple[int, ...]
) -> None:
    table, makers = make(jvm_0_15, spark, path, kind), {6: jvm_0_15, 8: jvm_1_0, 9: jvm}
    version, ts = 6, 4
    for to in steps:
        if to == 6:
            compact(table)
        told = (upgrade_table if to > version else downgrade_table)(path, LOCK, to=to)
        assert (told.before, told.after) == (version, to)
        table.jvm, version = makers[to], to
        table.check()
        go_on(table, ts)
        ts += 2


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("COPY_ON_WRITE", {}),
        ("COPY_ON_WRITE", {PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload"}),
        ("MERGE_ON_READ", {}),
        ("MERGE_ON_READ", {PAYLOAD: f"{MODEL}DefaultHoodieRecordPayload"}),
        ("MERGE_ON_READ", {PAYLOAD: f"{MODEL}PartialUpdateAvroPayload"}),
        ("COPY_ON_WRITE", {PAYLOAD: f"{MODEL}AWSDmsAvroPayload"}),
        (
            "COPY_ON_WRITE",
            {
                "hoodie.datasource.write.keygenerator.class": CUSTOM,
                "hoodie.datasource.write.partitionpath.field": "region:SIMPLE",
            },
        ),
    ],
    ids=["default", "by time", "logged", "logged by time", "partial", "dms", "custom keys"],
)
def test_an_upgraded_table_says_of_itself_what_it_says_after_one_of_the_jvm(
    jvm: Jvm, path: str, kind: str, told: dict[str, str]
) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        **told,
    }

    def write(place: str, *rows: tuple[Any, ...], **more: str) -> None:
        given = {**options, **{key.replace("__", "."): value for key, value in more.items()}}
        told = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": given, "gate": ""}
        jvm.ask("write", path=place, **told).result(DEADLINE_S)

    write(path, *FIRST, hoodie__write__table__version="6")
    theirs = shutil.copytree(path, f"{path}-theirs")
    write(str(theirs), ("a", "eu", 1, 1.0, "theirs"), hoodie__write__auto__upgrade="true")
    upgrade_table(path, {**LOCK, **told})
    ours, wanted = (
        decode_properties(Path(place, PROPERTIES_PATH).read_bytes(), PROPERTIES_PATH) for place in (path, theirs)
    )
    assert {k: v for k, v in ours.items() if k not in UNTOLD} == {k: v for k, v in wanted.items() if k not in UNTOLD}


@pytest.mark.nightly
def test_what_the_jvm_archived_is_known_in_every_version(
    spark: Any, jvm: Jvm, jvm_0_15: Jvm, jvm_1_0: Jvm, path: str
) -> None:
    table = Shared(jvm_0_15, spark, path, "COPY_ON_WRITE")
    keep = {"hoodie__keep__min__commits": "2", "hoodie__keep__max__commits": "3"}
    for ts in range(1, 9):
        table.theirs(
            ("a", "eu", ts, float(ts), "theirs"),
            **{**keep, "hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "1"},
        )
    before = _list_archived(table)
    assert before, "the JVM archived nothing"
    upgrade_table(path, LOCK)
    assert _list_archived(table) >= before
    shown = [row[0] for row in jvm.archived(table.open())]
    assert set(shown) >= before, "the JVM sees them too"
    table.jvm = jvm
    table.theirs(("a", "eu", 9, 9.0, "theirs"))
    downgrade_table(path, LOCK, to=6)
    assert _list_archived(table) >= before
    table.jvm = jvm_0_15
    for ts in range(10, 14):
        table.theirs(("a", "eu", ts, float(ts), "theirs"), **keep)


def _list_archived(table: Shared) -> frozenset[str]:
    loaded = table.open().table
    return list_archived_times(loaded.storage, loaded.layout, completed_after="19800101000000000")


def test_a_reader_and_a_writer_that_go_on_are_told(spark: Any, jvm: Jvm, path: str) -> None:
    table = make(jvm, spark, path, "COPY_ON_WRITE")
    early, late = table.open(), table.open()
    assert collect(early.read()) == table.expected
    early.upsert(table.frame(("a", "eu", 4, 1.0, "ours")))
    upgrade_table(path, LOCK)
    for opened in (early, late):
        with pytest.raises(TableError, match=OTHER):
            opened.read()
        with pytest.raises(TableError, match=OTHER):
            opened.upsert(table.frame(("b", "eu", 5, 1.0, "ours")))
    assert HoodieTable.load(spark, path).read().count() == len(table.expected)
