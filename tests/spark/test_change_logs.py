"""Tables with change data capture: every write leaves what it changed, as JVM Hudi's CDC queries look for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paused_writes import paused

from hudi_locks.errors import BadInput, ConfigError
from hudi_locks.markers import read_markers
from hudi_locks.spark import HoodieTable, write
from hudi_locks.table import read_changes, read_commit
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

WRITE = "hoodie.datasource.write."
CDC = {"hoodie.table.cdc.enabled": "true"}
NINE = {"hoodie.write.table.version": "9"}
MODE = "hoodie.table.cdc.supplemental.logging.mode"
ROWS = [("a", "jan", 1, 1.0), ("b", "jan", 1, 2.0), ("c", "feb", 1, 3.0)]
Change = tuple[Any, ...]


def changes_of(table: HoodieTable, requested: str) -> list[Change]:
    """Op, what it was and what it is of all changes that a write tells of, by what its commit names."""
    storage, timeline = table.table.storage, table.table.timeline()
    found: list[Change] = []
    for log in read_commit(storage, timeline, requested=requested).change_logs:
        data = storage.read(log.path) or b""
        assert len(data) == log.size_bytes
        for instant, changes in read_changes(data, log.path):
            assert instant == requested
            found += [(one["op"], *map(shorten, (one.get("before"), one.get("after")))) for one in changes]
    return sorted(found, key=repr)


def shorten(row: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if row is None else tuple(row.values())


def test_in_version_6_the_marker_of_the_base_file_speaks_for_its_change_log(create: Any, frame: Any) -> None:
    table = create(options={**CDC, "hoodie.write.table.version": "6"})
    table.upsert(frame(ROWS))
    with paused(table, StopPoint.PUBLISH_CHECKED, lambda: table.upsert(frame([("a", "jan", 2, 1.0)]))):
        [instant] = table.table.timeline().pending()
        [name] = read_markers(table.table.storage, instant.requested).names
    assert name.data_path.endswith(f"{instant.requested}.parquet")
    assert len(list(Path(table.path).rglob("*.cdc"))) == 1
    assert verify_table(table.table.storage).damages == ()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_into_a_file_group_tells_what_each_row_was_and_is(create: Any, frame: Any, table_type: str) -> None:
    table = create(options=CDC, table_type=table_type)
    first = table.upsert(frame(ROWS))
    second = table.upsert(frame([("a", "jan", 2, 11.0), ("b", "jan", 0, 0.0), ("d", "jan", 1, 4.0)]))
    assert changes_of(table, first.instant) == []
    assert changes_of(table, second.instant) == [
        ("i", None, ("d", "jan", 1, 4.0)),
        ("u", ("a", "jan", 1, 1.0), ("a", "jan", 2, 11.0)),
    ]
    third = table.delete(frame([("b", "jan", 1, 0.0), ("x", "jan", 1, 0.0)]))
    told = [] if table_type == "MERGE_ON_READ" else [("d", ("b", "jan", 1, 2.0), None)]
    assert changes_of(table, third.instant) == told  # a log of deletes tells it itself
    assert table.read().count() == 3
    assert verify_table(table.table.storage).checked["change logs"] == (1 if table_type == "MERGE_ON_READ" else 2)
    assert verify_table(table.table.storage).damages == ()


@pytest.mark.parametrize(("mode", "width"), [("OP_KEY_ONLY", 0), ("data_before", 1), ("DATA_BEFORE_AFTER", 2)])
def test_the_mode_says_how_much_is_told(create: Any, frame: Any, mode: str, width: int) -> None:
    table = create(options={**CDC, "hoodie.table.cdc.supplemental.logging.mode": mode})
    table.upsert(frame(ROWS))
    again = table.upsert(frame([("a", "jan", 2, 11.0)]))
    was, now = ("a", "jan", 1, 1.0), ("a", "jan", 2, 11.0)
    assert changes_of(table, again.instant) == [("u", was if width else None, now if width > 1 else None)]


def test_rows_that_are_marked_as_deleted_or_filled_are_told_as_they_become(create: Any, frame: Any) -> None:
    table = create(options={**CDC, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", **NINE})
    table.upsert(frame(ROWS))
    filled = table.upsert(frame([("a", "jan", 2, None)]))
    assert changes_of(table, filled.instant) == [("u", ("a", "jan", 1, 1.0), ("a", "jan", 2, 1.0))]
    schema = "id string, month string, ts long, value double, _hoodie_is_deleted boolean"
    marked = table.upsert(frame([("b", "jan", 3, None, True)], schema))
    assert changes_of(table, marked.instant) == [("d", ("b", "jan", 1, 2.0, None), None)]


def test_a_row_that_moves_is_deleted_in_one_partition_and_new_in_the_other(create: Any, frame: Any) -> None:
    table = create(options={**CDC, "hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(frame(ROWS))
    moved = table.upsert(frame([("a", "feb", 2, 11.0)]))
    assert changes_of(table, moved.instant) == [
        ("d", ("a", "jan", 1, 1.0), None),
        ("i", None, ("a", "feb", 2, 11.0)),
    ]


def test_services_and_overwrites_tell_no_change_and_a_clean_leaves_no_change_log(create: Any, frame: Any) -> None:
    table = create(options={**CDC, "hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"})
    table.upsert(frame(ROWS))
    table.upsert(frame([("a", "jan", 2, 11.0)]))
    clustered = table.clustering.run(sort_by=["ts"])
    assert clustered is not None
    overwritten = table.insert_overwrite(frame([("z", "jan", 1, 0.0)]))
    for service in (clustered.instant, overwritten.instant):
        assert changes_of(table, service) == []
    table.upsert(frame([("n", "mar", 1, 0.0)]))
    assert table.services.clean().deleted
    assert list(Path(table.path).rglob("*.cdc")) == []
    assert verify_table(table.table.storage).damages == ()


def test_a_change_log_that_is_lost_is_damage_and_hides_no_row(create: Any, frame: Any) -> None:
    table = create(options=CDC)
    table.upsert(frame(ROWS))
    table.upsert(frame([("a", "jan", 2, 11.0)]))
    (log,) = Path(table.path).rglob("*.cdc")
    log.unlink()
    (damage,) = verify_table(table.table.storage).damages
    assert damage.path == str(log.relative_to(table.path))
    assert table.read().count() == 3


def test_options_of_a_job_make_such_a_table_and_no_other_one_becomes_one(
    spark: Any, frame: Callable[..., Any], path: str
) -> None:
    options = {
        "hoodie.table.name": "t",
        WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "month",
        "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    }
    with pytest.raises(ConfigError, match=r"logging\.mode"):
        write(frame(ROWS), path, {**options, **CDC, MODE: "ALL"})
    write(frame(ROWS), path, {**options, **CDC})
    told = dict(HoodieTable.load(spark, path).table.config.extra)
    assert (told["hoodie.table.cdc.enabled"], told[MODE]) == ("true", "DATA_BEFORE_AFTER")
    with pytest.raises(BadInput, match=r"logging\.mode=OP_KEY_ONLY, but the table"):
        write(frame(ROWS), path, {**options, MODE: "OP_KEY_ONLY"}, mode="append")
    write(frame(ROWS), f"{path}-2", options)
    with pytest.raises(BadInput, match=r"cdc\.enabled=true, but the table"):
        write(frame(ROWS), f"{path}-2", {**options, **CDC}, mode="append")
