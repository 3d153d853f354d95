"""What a write only looked at decides what it does not write: it must not have changed either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
RETRIED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
STORED = [("a", "1", 5, 5.0), ("b", "1", 5, 5.0)]
KEY = "id string, month string"


@pytest.fixture(params=["SIMPLE", "BUCKET"])
def options(request: pytest.FixtureRequest) -> dict[str, str]:
    return {**RETRIED, **shared_table.BY_INDEX[request.param]}


def test_an_upsert_that_loses_everywhere_notices_that_its_key_was_deleted(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], options: dict[str, str]
) -> None:
    """In the order of completion, delete and upsert, there was nothing left to lose against."""
    ours = create(options=options)
    ours.bulk_insert(frame(STORED))
    after_job(lambda: load(options).delete(frame([("a", "1")], KEY)))
    result = ours.upsert(frame([("a", "1", 3, 3.0)]))
    assert [conflict.is_read for conflict in result.conflicts + result.avoided] == [True]
    assert rows_of(ours, "id", "ts") == [("a", 3), ("b", 5)]


def test_a_delete_takes_out_what_was_inserted_while_it_found_nothing(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], options: dict[str, str]
) -> None:
    ours = create(options=options)
    after_job(lambda: load(options).upsert(frame([("n", "9", 1, 1.0), ("m", "9", 1, 1.0)])))
    assert ours.delete(frame([("n", "9")], KEY)).retries == 1
    assert rows_of(ours, "id") == [("m",)]


def test_an_insert_brings_a_row_whose_duplicate_was_deleted(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], options: dict[str, str]
) -> None:
    dropping = {**options, "hoodie.datasource.write.insert.drop.duplicates": "true"}
    ours = create(options=dropping)
    ours.bulk_insert(frame(STORED))
    after_job(lambda: load(options).delete(frame([("a", "1")], KEY)))
    result = ours.insert(frame([("a", "1", 7, 7.0)]))
    assert len(result.conflicts + result.avoided) == 1
    assert rows_of(ours, "id", "ts") == [("a", 7), ("b", 5)]


def test_what_changes_elsewhere_disturbs_neither(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    """A lost row and a key that is nowhere, beside an upsert of another partition and an insert of another key."""
    ours = create(options=RETRIED)
    ours.bulk_insert(frame(STORED))
    after_job(lambda: load(RETRIED).upsert(frame([("c", "2", 1, 1.0)])))
    assert ours.upsert(frame([("a", "1", 3, 3.0)])).retries == 0
    after_job(lambda: load(RETRIED).upsert(frame([("d", "2", 1, 1.0)])))
    assert ours.delete(frame([("n", "2")], KEY)).retries == 0
    assert rows_of(ours, "id") == [("a",), ("b",), ("c",), ("d",)]
