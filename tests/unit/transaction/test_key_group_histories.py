"""Writers that bring the same partitions at once to a record index by partition, in seeded histories.

`HUDI_LOCKS_HISTORIES=1500` plays more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from history_digest import do_one_step_at_a_time
from key_groups_simulator import KeyGroupsSimulator, play_new_partitions

from hudi_locks.format import TimelineLayout
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.metadata_table import list_fresh_groups, metadata_table
from hudi_locks.metadata_table.record_groups import find_record_groups
from hudi_locks.storage import Storage
from hudi_locks.table import DataFiles
from hudi_locks.transaction import metadata_part
from hudi_locks.transaction.publish import Publish

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "24"))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories
_THREADED = ("metadata_table.delta_commits", "metadata_table.metadata_table", "metadata_table.record_index")


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: Patch) -> None:
    do_one_step_at_a_time(monkeypatch.setattr)

    def map_in_order(call: Callable[[Any], Any], arguments: Iterable[Any], *, threads: int = 1) -> list[Any]:
        del threads
        return [call(argument) for argument in arguments]

    for module in _THREADED:
        monkeypatch.setattr(f"hudi_locks.{module}.map_in_threads", map_in_order)


def test_each_key_is_found_where_the_number_of_file_groups_says() -> None:
    """Without a lock, with clocks that differ, answers that are lost, and deaths."""
    simulators = [play_sound(seed) for seed in range(HISTORIES)]
    assert any("another number of file groups" in reason for reason in list_reasons(simulators))
    assert {count for simulator in simulators for count in simulator.count_groups().values()} >= {2, 3}


def play_sound(seed: int) -> KeyGroupsSimulator:
    simulator = play_new_partitions(seed)
    assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator


def list_reasons(simulators: Iterable[KeyGroupsSimulator]) -> Iterator[str]:
    return (reason for simulator in simulators for reason in simulator.reasons)


# ---- planted breaks: each drops one rule, and must be found ----


def let_counts_differ(patch: Patch) -> None:
    """Publish beside another number of file groups."""

    def list_lacking(known: KeyGroups, there: Iterable[str], partitions: Iterable[str]) -> tuple[str, ...]:
        began = set(there)
        return tuple(one for partition in partitions for one in known.list_ids(partition) if one not in began)

    patch.setattr(metadata_part, "list_fresh_groups", list_lacking)


def begin_those_with_keys_alone(patch: Patch) -> None:
    def list_none(*given: Any) -> tuple[str, ...] | None:
        return None if list_fresh_groups(*given) is None else ()

    patch.setattr(metadata_part, "list_fresh_groups", list_none)


def plan_once(patch: Patch) -> None:
    """Though another write claimed since."""
    plan = Publish._plan_metadata
    patch.setattr(Publish, "_plan_metadata", lambda self, timeline: self._part or plan(self, timeline))


def be_bound_by_what_nobody_completed(patch: Patch) -> None:
    def take_all(storage: Storage, listed: DataFiles, layout: TimelineLayout, *, fresh: int) -> KeyGroups:
        named = KeyGroups.of((file.file_id for file in listed.both), fresh=fresh)
        return named or find_record_groups(storage, listed, layout, fresh=fresh)

    patch.setattr(metadata_table, "find_record_groups", take_all)


@pytest.mark.parametrize(
    ("plant", "likely", "found"),
    [
        (let_counts_differ, 1, "is found by readers at []"),
        (begin_those_with_keys_alone, 0, "is found by readers at []"),
        (plan_once, 11, "is found by readers at []"),
        (be_bound_by_what_nobody_completed, 6, "the last writer is refused"),
    ],
)
def test_each_rule_that_is_dropped_is_found(
    plant: Callable[[Patch], None], likely: int, found: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert any(found in play_new_partitions(seed).wrong() for seed in (likely, *range(300)))
