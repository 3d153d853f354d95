"""The metadata table of a table of version 6 that this package made, read and kept up to date by JVM Hudi."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from metadata_turns import BY_BUCKET, BY_KEY, Shared
from old_turns import BY_RECORD, FIRST, OLD, THEIRS, begin, compact, let_time_pass, open_several
from paused_writes import paused
from table_lives import merge

from hudi_locks.metadata_table import OLD_METADATA_LAYOUT
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", OLD, indirect=True, ids=["0.15.0-v6", "1.2.0-v6"]),
]

KINDS = ("COPY_ON_WRITE", BY_KEY, pytest.param(BY_BUCKET, marks=pytest.mark.nightly))
WITHOUT = {**THEIRS, "hoodie__metadata__enable": "false"}
FILES_ALONE = {**THEIRS, "hoodie__metadata__index__column__stats__enable": "false"}
LOGS = {"hoodie__compact__inline": "false"}
SOON = {"hoodie__metadata__compact__max__delta__commits": "2"}


def begin_without(jvm: Any, spark: Any, path: str, kind: str) -> Shared:
    """A table of the JVM that has no metadata table, with logs if it can have some."""
    table = Shared(jvm, spark, path, kind)
    with table.unwatched():
        table.theirs(*FIRST, **WITHOUT)
        table.theirs(("a", "eu", 2, 5000.0, "theirs"), ("y", "new", 2, 1.0, None), **LOGS, **WITHOUT)
        table.ours(("b", "eu", 3, -7.5, "ours"), ("m", "us", 3, None, None))
    return table


def list_own(table: Shared, action: str) -> list[str]:
    own = Timeline.load(table.open().table.storage, OLD_METADATA_LAYOUT)
    return [one.requested for one in own.completed((action,))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_jvm_goes_by_one_that_we_made_and_keeps_it(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin_without(jvm, spark, path, kind)
    last = table.open().table.timeline().completed()[-1].requested
    made = table.open().services.make_metadata_table()
    assert made is not None
    assert made.parts == ("files",)
    for _ in range(2):
        table.check()
    table.theirs(("b", "eu", 4, 6000.0, "theirs"), ("n", "new", 4, -1.0, "theirs"), **LOGS, **FILES_ALONE)
    assert f"{last}010" in list_own(table, "deltacommit"), "the JVM made none of its own"
    table.ours(("a", "eu", 5, -1.0, None), ("z", "last", 5, 4000.5, "ours"))
    if kind != "COPY_ON_WRITE":
        compact(table, "schedule")
        compact(table, "execute")
        table.check()
    for ts in range(6, 11):  # so many that both compact the metadata table
        with table.unwatched():
            table.theirs(("z", "last", ts, 1.0, "theirs"), **FILES_ALONE)
            table.open(**SOON).upsert(table.frame(("n", "new", ts, 2.0, "ours")))
            table.expected = merge(table.expected, (("n", "new", ts, 2.0, "ours"),))
    assert list_own(table, "commit")
    for file in Path(path, ".hoodie/metadata/files").iterdir():
        file.write_bytes(b"no metadata" * 50)
    assert table.open().services.make_metadata_table(anew=True) is not None
    table.check()
    clean = {"hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "1"}
    table.theirs(("q", "us", 12, 9000.0, "theirs"), **clean, **THEIRS)
    table.ours(("q", "us", 13, 3.0, "ours"))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY])
def test_both_find_keys_by_the_record_index_that_it_has(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin_without(jvm, spark, path, kind)
    ours = {"hoodie__index__type": "RECORD_INDEX", **BY_RECORD, **THEIRS}
    keyed = {key: value for key, value in BY_RECORD.items() if key != "hoodie__index__type"}
    made = table.open(**keyed).services.make_metadata_table()
    assert made is not None
    assert (made.parts, made.keys) == (("files", "record_index"), len(table.expected))
    theirs = {**BY_RECORD, **FILES_ALONE}
    table.theirs(("b", "eu", 4, 6000.0, "theirs"), ("n", "new", 4, -1.0, "theirs"), **theirs)
    mine = (("a", "eu", 5, 1.5, "ours"), ("n", "new", 5, None, "ours"), ("p", "us", 5, None, "ours"))
    table.open(**ours).upsert(table.frame(*mine))
    table.expected = merge(table.expected, mine)
    table.check()
    gone = [row for row in table.expected if row[0] in ("p", "c")]
    table.open(**ours).delete(table.frame(*((*row[:2], 6, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    table.theirs(("p", "us", 7, 2.0, "again"), ("m", "us", 7, 2.0, "theirs"), **theirs)
    assert table.open(**ours).services.make_metadata_table(anew=True) is not None
    table.theirs(("y", "new", 8, 2.0, "theirs"), **theirs)
    assert verify_table(table.open().table.storage, reads_keys=True).damages == ()


DEATHS = (StopPoint.SERVICE_STAGED, StopPoint.SERVICE_PLANNED, StopPoint.SERVICE_CLAIMED)


@pytest.mark.nightly
@pytest.mark.parametrize("point", DEATHS, ids=lambda point: point.value)
@pytest.mark.parametrize("anew", [False, True])
def test_where_its_maker_died_either_goes_on(spark: Any, jvm: Any, path: str, point: StopPoint, anew: bool) -> None:
    table = begin(jvm, spark, path, BY_KEY) if anew else begin_without(jvm, spark, path, BY_KEY)
    service = open_several(table)
    for goes_on in ("jvm", "we"):
        dead = Shared(jvm, spark, f"{path}-{goes_on}", BY_KEY, expected=table.expected)
        with paused(service, point, lambda: service.services.make_metadata_table(anew=True)):
            shutil.copytree(path, dead.path)
        let_time_pass(dead.path)
        if goes_on == "jvm":
            dead.theirs(("a", "eu", 9, 6.0, "theirs"), ("x", "x", 9, 6.0, "theirs"), **THEIRS)
        assert dead.open().services.make_metadata_table(anew=True) is not None
        dead.check()
        dead.theirs(("b", "eu", 10, 6.0, "theirs"), **THEIRS)
        dead.ours(("b", "eu", 11, 6.0, "ours"))
