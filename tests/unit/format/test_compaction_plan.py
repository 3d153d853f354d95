"""Compaction plans, beside one that JVM Hudi 1.0.2 made."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from fastavro.schema import to_parsing_canonical_form

from hudi_locks.errors import DamagedTable
from hudi_locks.format import CompactionOperation, CompactionPlan
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.storage import LocalStorage


def test_a_compaction_plan_is_that_of_the_jvm(golden: Callable[[str], LocalStorage]) -> None:
    storage = golden("v8_mor_compacted")
    [path] = [p for p, _ in storage.walk(".hoodie") if p.endswith(".compaction.requested")]
    data = storage.read(path) or b""
    theirs = CompactionPlan.decode(data, path)
    assert [len(operation.log_names) for operation in theirs.groups] == [2, 1, 1]
    assert theirs.file_groups == compacted_file_groups(data, path)
    assert all(
        storage.exists(f"{op.partition}/{name}") for op in theirs.groups for name in (op.base_name, *op.log_names)
    )
    ours = theirs.encode()
    assert CompactionPlan.decode(ours, "ours") == theirs
    forms = [to_parsing_canonical_form(fastavro.reader(io.BytesIO(one)).writer_schema) for one in (data, ours)]
    assert forms[0] == forms[1]
    records: Any = [next(iter(fastavro.reader(io.BytesIO(one)))) for one in (data, ours)]
    assert records[1] == {**records[0], "preserveHoodieMetadata": True}


def test_a_plan_names_the_class_by_which_a_jvm_runs_it() -> None:
    operation = CompactionOperation("", "f", "1", "", (".f_1.log.1_0-0-0",), 5)
    plan = CompactionPlan((operation,), "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper")
    assert CompactionPlan.decode(plan.encode(), "x") == plan
    assert plan.without([("", "f")]) == CompactionPlan((), plan.compactor)
    record: Any = next(iter(fastavro.reader(io.BytesIO(plan.encode()))))
    assert record["strategy"]["compactorClassName"] == plan.compactor


def test_an_empty_compaction_plan_merges_nothing_and_a_damaged_one_is_named() -> None:
    assert CompactionPlan.decode(b"", "x") == CompactionPlan(())
    with pytest.raises(DamagedTable, match="x"):
        CompactionPlan.decode(b"rubbish", "x")


def test_an_operation_without_base_file_has_none_for_the_jvm() -> None:
    operation = CompactionOperation("", "f", "1", "", (".f_1.log.1_0-0-0",), 5)
    assert CompactionPlan.decode(CompactionPlan((operation,)).encode(), "x").groups == (operation,)
    record: Any = next(iter(fastavro.reader(io.BytesIO(CompactionPlan((operation,)).encode()))))
    assert record["operations"][0]["dataFilePath"] is None
