"""Bundle 1.1.1, which the nightly run puts every question to, judges our logs in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bucketed_tables import KEYS, THEIRS, TOGETHER, in_order, rows

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[tuple[Any, ...]]]


@pytest.mark.parametrize("jvm", [("1.1.1", 9)], indirect=True, ids=["1.1.1-v9"])
def test_it_reads_and_writes_our_logs(jvm: Any, create: Create, frame: Frame, all_read: AllRead) -> None:
    table = create(table_type="MERGE_ON_READ", options=TOGETHER)
    table.upsert(frame(rows(KEYS, 1, "ours")))
    jvm.write(table, [*rows(KEYS[:2], 2, "theirs"), *rows(["new"], 2, "theirs"), *rows(KEYS[2:3], 0, "late")], **THEIRS)
    table.upsert(frame(rows(KEYS[3:4], 3, "ours again")))
    table.delete(frame(rows(KEYS[4:5], 0, "")))
    state = [*rows([*KEYS[:2], "new"], 2, "theirs"), *rows(KEYS[3:4], 3, "ours again")]
    assert all_read(table) == in_order([*state, *rows(KEYS[2:3], 1, "ours"), *rows(KEYS[5:], 1, "ours")])
