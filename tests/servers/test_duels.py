"""Two Spark applications meet on one table: every strategy of early detection, and every lock service."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_locks_conformance.servers import Server
from soak.duels import SERVICES, STRATEGIES, Arena, Duel, lock_options, open_arena

pytestmark = pytest.mark.servers

OVERLAPPING = [Duel(service, strategy, True) for service, strategy in zip(SERVICES, STRATEGIES, strict=True)]
"""Each service and each strategy once; `python -m soak duels` plays all pairs."""
DISJOINT = [
    Duel(service, strategy, False)
    for service, strategy in zip(SERVICES, (*list(STRATEGIES)[1:], *list(STRATEGIES)[:1]), strict=True)
]


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with open_arena(tmp_path_factory.mktemp("duels")) as opened:
        yield opened


@pytest.mark.parametrize(
    "duel",
    [*OVERLAPPING, DISJOINT[0], *(pytest.param(duel, marks=pytest.mark.nightly) for duel in DISJOINT[1:])],
    ids=str,
)
def test_of_two_writers_of_a_file_group_the_later_gives_up_and_others_pass(
    duel: Duel, arena: Arena, request: pytest.FixtureRequest
) -> None:
    server = {} if duel.service == "filesystem" else request.getfixturevalue(duel.service).options
    assert arena.fight(duel, lock_options(duel.service, server)).fault == ""


@pytest.mark.parametrize(
    "duel",
    [Duel("zookeeper", "simple", True), pytest.param(Duel("zookeeper", "async", False), marks=pytest.mark.nightly)],
    ids=str,
)
def test_duels_on_a_table_on_s3_end_the_same_way(
    duel: Duel, arena: Arena, zookeeper: Server, versitygw: Server
) -> None:
    reach = dict(versitygw.options)
    arena = replace(arena, base=f"{reach.pop('hoodie.base.path')}/duels", reach=reach)
    assert arena.fight(duel, lock_options(duel.service, zookeeper.options)).fault == ""


def test_a_duel_without_detection_is_found_out(arena: Arena, tmp_path: Path) -> None:
    blind = {**lock_options("filesystem", {}), "hoodie.write.concurrency.early.conflict.detection.enable": "false"}
    arena = replace(arena, base=str(tmp_path))
    assert "'event': 'committed'" in arena.fight(Duel("filesystem", "simple", True), blind).fault
