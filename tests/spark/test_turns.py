"""A write that others were quicker than goes on from there, and writes only the file groups again that they touched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import shared_table
from paused_writes import paused

from hudi_locks.spark import HoodieTable
from hudi_locks.transaction import StopPoint

pytestmark = pytest.mark.spark
STAGING = ".hoodie/.hudi_locks/staging"

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
SHARED = {**shared_table.SHARED, "hoodie.clean.failed.writes.policy": "LAZY", RETRIES: "2"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
DROPPING = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0), ("d", "3", 1, 1.0)]
KEYS = "id string, month string"
Change = Callable[[HoodieTable, Any], Any]


def upsert(*rows: tuple[Any, ...]) -> Change:
    return lambda table, frame: table.upsert(frame(rows))


def insert(*rows: tuple[Any, ...]) -> Change:
    return lambda table, frame: table.insert(frame(rows))


def delete(*keys: tuple[str, str]) -> Change:
    return lambda table, frame: table.delete(frame(keys, KEYS))


UPDATE = upsert(("a", "1", 5, 5.0), ("c", "2", 5, 5.0), ("d", "3", 5, 5.0), ("n", "9", 5, 5.0))
UPDATED = [("a", 5), ("c", 5), ("d", 5), ("n", 5)]


@pytest.mark.parametrize(
    ("options", "theirs", "ours", "rewritten", "kept", "rows"),
    [
        pytest.param({}, upsert(("b", "1", 2, 2.0)), UPDATE, 1, "239", [("b", 2), *UPDATED], id="a row beside"),
        pytest.param({}, delete(("c", "2")), UPDATE, 1, "139", [("b", 1), *UPDATED], id="a row that is gone"),
        pytest.param({}, insert(("n", "9", 2, 2.0)), UPDATE, 1, "123", [("b", 1), *UPDATED], id="a row that is new"),
        pytest.param({}, delete(("a", "1"), ("b", "1")), UPDATE, 1, "239", UPDATED, id="a file that is empty"),
        pytest.param(BUCKETS, upsert(("b", "1", 2, 2.0)), UPDATE, 1, "239", [("b", 2), *UPDATED], id="a bucket"),
        pytest.param(BUCKETS, insert(("m", "9", 2, 2.0)), UPDATE, 1, "123", [("b", 1), ("m", 2), *UPDATED], id="new"),
        pytest.param(
            {}, insert(("k", "9", 2, 2.0)), delete(("k", "9"), ("a", "1"), ("d", "3")), 1, "13",
            [("b", 1), ("c", 1)], id="delete",
        ),
        pytest.param(
            DROPPING, insert(("k", "9", 2, 2.0)), insert(("k", "9", 3, 3.0), ("m", "9", 3, 3.0), ("x", "8", 3, 3.0)),
            1, "8", [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("k", 2), ("m", 3), ("x", 3)], id="no duplicates",
        ),
    ],
)  # fmt: skip
def test_only_what_an_earlier_write_touched_is_written_again(
    create: Create,
    load: Load,
    frame: Callable[..., Any],
    rows_of: Callable[..., Any],
    after_job: Callable[..., None],
    path: str,
    *,
    options: dict[str, str],
    theirs: Change,
    ours: Change,
    rewritten: int,
    kept: str,
    rows: list[Any],
) -> None:
    """Theirs begins first and is published when the tasks of ours are done."""
    table = create(options={**SHARED, **options})
    table.bulk_insert(frame(FIRST))
    other = load({**SHARED, **options})
    written: list[set[int]] = []
    with paused(other, StopPoint.BEGIN_INFLIGHT, lambda: theirs(other, frame)) as pause:

        def be_quicker() -> None:
            written.append({file.stat().st_ino for file in Path(path, STAGING).rglob("*") if file.is_file()})
            pause.finish()

        after_job(be_quicker)
        result = ours(table, frame)
    assert pause.error is None
    assert pause.result.instant < result.instant
    assert (result.retries, [conflict.other for conflict in result.avoided]) == (0, [pause.result.instant])
    assert result.attempts[-1].rewritten == rewritten
    stay = [file for file in Path(path).glob(f"[0-9]/*{result.instant}*") if file.stat().st_ino in written[0]]
    assert "".join(sorted(file.parent.name for file in stay)) == kept
    assert rows_of(table, "id", "ts") == sorted(rows)
    ours_alone = table.read().where(f"_hoodie_commit_time = '{result.instant}'")
    assert rows_of(table.incremental(begin=pause.result.completion_time), "id") == rows_of(ours_alone, "id")


def test_one_write_after_the_other_is_gone_on_from_and_a_later_one_is_not(
    create: Create,
    load: Load,
    frame: Callable[..., Any],
    rows_of: Callable[..., Any],
    after_job: Callable[..., None],
) -> None:
    """Two writes that began before ours cost a turn each; one that began after it a new beginning."""
    table = create(options={**SHARED, RETRIES: "3"})
    table.bulk_insert(frame(FIRST))
    first, second = load(SHARED), load(SHARED)
    with ExitStack() as stack:
        one = stack.enter_context(
            paused(first, StopPoint.BEGIN_INFLIGHT, lambda: upsert(("b", "1", 2, 2.0))(first, frame))
        )
        two = stack.enter_context(paused(second, StopPoint.BEGIN_INFLIGHT, lambda: delete(("d", "3"))(second, frame)))
        later: list[Callable[[], Any]] = [
            lambda: load(SHARED).upsert(frame([("c", "2", 3, 3.0)])),
            two.finish,
            one.finish,
        ]

        def be_quicker() -> None:
            later.pop()()
            if later:
                after_job(be_quicker)

        after_job(be_quicker)
        result = UPDATE(table, frame)
    aborted, done = result.attempts
    assert [conflict.other for conflict in aborted.avoided] == [one.result.instant, two.result.instant]
    assert aborted.rewritten == 2
    assert result.conflicts[0].other > aborted.instant
    assert (done.avoided, done.rewritten) == ((), 0)
    assert rows_of(table, "id", "ts") == sorted([("b", 2), *UPDATED])
