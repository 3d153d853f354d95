"""A process whose clock is wrong leaves nothing, and what one of an older release left stops nobody."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from service_harness import ServiceHarness
from transaction_harness import HarnessClock

from hudi_locks.errors import ClockRefused
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import PRIVATE_FOLDER, ClaimKind
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, Restorer, Savepoints, TableServices
from hudi_locks.storage import Storage
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.transaction import Transactions
from hudi_locks.transaction.context import TableContext

YEAR_MS = 365 * 24 * 3_600_000
OFF_MS = [YEAR_MS, -YEAR_MS, 11_000]
Act = Callable[[ServiceHarness, str], object]
ACTS: dict[str, Act] = {
    "begin": lambda harness, _: harness.open().begin("commit", "UPSERT"),
    "roll back": lambda harness, _: harness.open().roll_back_failed(),
    "resolve": lambda harness, dead: harness.open().resolve(dead),
    "clean": lambda harness, _: harness.cleaner(commits__retained=1).run(),
    "sweep": lambda harness, _: TableServices(harness.open(), {}).sweep(),
    "archive": lambda harness, _: Archiver(
        harness.open().coordinator,
        ArchiveSettings.of({"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}),
        clean_settings=CleanSettings.of({"hoodie.clean.commits.retained": 1}),
    ).run(),
    "savepoint": lambda harness, _: Savepoints(harness.open().coordinator).create(
        harness.timeline().completed()[0].requested
    ),
    "restore": lambda harness, _: Restorer(harness.open().coordinator).run(harness.timeline().completed()[0].requested),
}


def look(storage: Storage) -> dict[str, bytes | None]:
    """Everything in a table, but what was half written."""
    return {path: storage.read(path) for path, _ in storage.walk("") if f"{PRIVATE_FOLDER}/tmp" not in path}


@pytest.fixture(params=[False, True], ids=["native", "foreign"])
def used(harness: ServiceHarness, request: pytest.FixtureRequest) -> tuple[ServiceHarness, str]:
    """A table with some commits and a write whose process died, and the time of that."""
    harness.foreign = request.param
    for _ in range(6):
        harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    harness.rewrite(tx, "p/h-0")
    tx._state.heartbeat.pause()
    harness.clock.advance(7200)
    return harness, tx.instant


@pytest.mark.parametrize("off_ms", OFF_MS)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_process_with_a_wrong_clock_leaves_nothing(used: tuple[ServiceHarness, str], act: Act, off_ms: int) -> None:
    harness, dead = used
    before = look(harness.storage)
    harness.clock = HarnessClock(harness.clock.wall_ms() + off_ms)  # of this process; the store keeps its own
    with pytest.raises(ClockRefused):
        act(harness, dead)
    assert look(harness.storage) == before


def make_claim_of_next_year(harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What older releases did before they looked at the clock: roll back a dead writer."""
    with monkeypatch.context() as patch:
        patch.setattr(TableContext, "check_clock", lambda *_: None)
        right, harness.clock = harness.clock, HarnessClock(harness.clock.wall_ms() + YEAR_MS)
        with contextlib.suppress(ClockRefused):
            assert harness.open().roll_back_failed()
        harness.clock = right
    assert harness.claims()[-1].kind is ClaimKind.ROLLBACK
    assert harness.claims()[-1].time[:4] == "2024"


def test_good_writers_get_on_by_themselves(used: tuple[ServiceHarness, str], monkeypatch: pytest.MonkeyPatch) -> None:
    harness, _ = used
    make_claim_of_next_year(harness, monkeypatch)
    harness.storage.create_if_absent(heartbeat_path("20250101000000000"), b"")
    first = [harness.put("p/g-0") for _ in range(3)]
    again = harness.open().begin("commit", "UPSERT")
    again._state.heartbeat.pause()
    harness.clock.advance(7200)
    make_claim_of_next_year(harness, monkeypatch)
    second = [harness.put("p/g-0", "p/h-0") for _ in range(3)]
    assert harness.cleaner(commits__retained=2).run().deleted
    good = [claim for claim in harness.claims() if claim.time[:4] == "2023"]
    assert [claim.time for claim in good] == sorted({claim.time for claim in good})
    assert {instant[:4] for instant in (*first, *second)} == {"2023"}
    assert harness.open().resolve(again.instant).value == "ABORTED"
    assert harness.open().resolve(second[0]).value == "COMMITTED"


def test_a_time_that_orders_writes_is_accepted_by_an_operator_alone(
    used: tuple[ServiceHarness, str],
) -> None:
    harness, _ = used
    transactions: Transactions = harness.open()
    assert transactions.accept_times() is None
    requested, completion = "20250101000000000", "20250101000000001"
    harness.foreign_instant(requested, "commit", completion, b"{}")
    for _ in range(2):
        with pytest.raises(ClockRefused, match="accept-times"):
            harness.open().begin("commit", "UPSERT")
    if harness.foreign:
        with pytest.raises(ClockRefused, match="JVM writers"):
            transactions.accept_times()
        return
    assert transactions.accept_times() == completion
    for _ in range(20):
        assert harness.put("p/g-0") > completion
    again = Instant("20270101000000000", "commit", State.REQUESTED)
    harness.foreign_instant(again.requested, "commit", "20270101000000001", b"{}")
    with pytest.raises(ClockRefused):
        harness.open().begin("commit", "UPSERT")
