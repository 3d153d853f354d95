"""Writers, an overwriter and a clusterer in seeded histories: what is visible in the end is what a serial replay gives.

`tox -e search` plays 100 of them, and `HUDI_LOCKS_HISTORIES=5000` as many as you like.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from replacing_breaks import forget_what_is_replaced, let_clustering_win_always
from rows_simulator import LoggedRowsSimulator, RowsSimulator, play_replacing

from hudi_locks.format import ClusteringSlice
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.transaction import ConcurrentOperation
from hudi_locks.transaction.operations import drop_void

HISTORIES = max(100, int(os.environ.get("HUDI_LOCKS_HISTORIES", "0")))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


@pytest.mark.parametrize(
    ("kind", "actions"),
    [(RowsSimulator, {"commit"}), (LoggedRowsSimulator, {"deltacommit", "compaction"})],
    ids=["base files", "logs"],
)
def test_histories_of_replaced_file_groups_end_as_a_serial_replay_and_meet_what_they_are_for(
    kind: type[RowsSimulator], actions: set[str]
) -> None:
    done: list[Claim] = []
    for seed in range(HISTORIES):
        simulator = play_replacing(seed, kind)
        assert simulator.wrong() == "", f"seed {seed}:\n" + "\n".join(simulator.trail)
        done += drop_void(simulator.claims())
    published = {claim.action for claim in done if claim.kind is ClaimKind.PUBLISH}
    rolled_back = {claim.action for claim in done if claim.kind is ClaimKind.ROLLBACK}
    assert published == {"replacecommit", "clustering", *actions}
    assert rolled_back >= {"clustering", *actions}


def let_the_unseen_stay(patch: Patch) -> None:
    patch.setattr(ConcurrentOperation, "find_unseen", lambda *_: frozenset())


def leave_logs_out(patch: Patch) -> None:
    patch.setattr(ClusteringSlice, "relative_paths", property(lambda piece: frozenset({piece.relative_path})))


@pytest.mark.parametrize(
    ("plant", "likely", "kind"),
    [
        (let_the_unseen_stay, 309, RowsSimulator),
        (forget_what_is_replaced, 7, RowsSimulator),
        (let_clustering_win_always, 7, RowsSimulator),
        (forget_what_is_replaced, 13, LoggedRowsSimulator),
        (let_clustering_win_always, 0, LoggedRowsSimulator),
        (leave_logs_out, 1, LoggedRowsSimulator),
    ],
)
def test_each_rule_that_is_dropped_is_found(
    plant: Callable[[Patch], None], likely: int, kind: type[RowsSimulator], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert any(play_replacing(seed, kind).wrong() for seed in (likely, *range(200)))
