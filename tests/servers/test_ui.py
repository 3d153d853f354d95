"""The live page in a real browser, while two writers are at work: what it shows is what is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Browser, need_browser
from waiting import until

from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager, LockScope, Owner
from hudi_locks.services.activity import list_activity
from hudi_locks.services.met_conflicts import describe_conflict, leave_conflicts
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Conflict, Transactions

pytestmark = pytest.mark.servers
LOCK = {"hoodie.write.lock.provider": "filesystem"}
LAST = 12
PICTURES = os.environ.get("HUDI_LOCKS_SCREENSHOTS", "")
"""A folder, as docs/pictures; pictures for the documents go there."""
SHOWN = os.environ.get("HUDI_LOCKS_SCREENSHOTS_OF", "")
"""A folder that is not there yet, as /data/trips: the table that they show."""
INSTANTS = "return [...document.querySelectorAll('#t0-timeline tbody tr')].map(row => row.cells[0].textContent)"
LANES = "return [...document.querySelectorAll('#t0-timeline h2')].map(lane => lane.textContent)"
TEXT = "return document.getElementById('t0-{}').innerText"

NEWEST = (
    "return [...document.querySelectorAll('#t0-conflicts table:last-of-type tbody tr:first-child td')]"
    ".slice(-7).map(cell => cell.textContent).join('\\t')"
)
WHERE = ["backfill (pid 4 on b)", "month=1/f-0", "early", "gave up"]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(open_storage(SHOWN or str(tmp_path / "trips")), TableConfig("trips", ("id",)))


@pytest.fixture
def address(table: Table) -> Iterator[str]:
    """Of the page, with its token."""
    code = "import sys; from hudi_locks.cli import main; main(sys.argv[1:])"
    words = ("ui", table.storage.base, "-p", "filesystem", "--port", "0", "--interval", "0.1", "-n", f"{LAST}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().split()[-1]
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    need_browser()
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@contextmanager
def two_writers(table: Table, *, rounds: int) -> Iterator[None]:
    """At work meanwhile: in each round both commit once, whoever gets the lock first."""
    together = threading.Barrier(2)

    def write(job: str) -> None:
        options = {"hoodie.base.path": table.storage.base, **LOCK, "hoodie.write.lock.wait_time_ms": "60000"}
        with LockManager.from_options(options) as locks:
            owner = Owner(job, host="vm", pid=os.getpid(), application=job)
            writer = Transactions(table, locks, options=options, owner=owner)
            for _ in range(rounds):
                together.wait(60)
                tx = writer.begin("commit", "UPSERT")
                assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed

    writers = [threading.Thread(target=write, args=(job,)) for job in ("nightly etl", "backfill")]
    for writer in writers:
        writer.start()
    yield
    for writer in writers:
        writer.join(120)
        assert not writer.is_alive()


def leave_a_conflict(table: Table, service: str | None = None) -> None:
    """Of a write that gave up, or of a table service that gave way."""
    groups = (FileGroupId("month=1", "f-0"),)
    met = Conflict("20260101000000002", groups, "20260101000000001", "commit", "backfill (pid 4 on b)", 9, "wait")
    noted = [describe_conflict(replace(met, is_early=True), lost_ms=700, met_ms=1_767_225_600_000)]
    instant = f"2026010100000000{2 + (service is not None)}"
    leave_conflicts(table.storage, instant, met=noted, writer="nightly etl (pid 7 on a)", service=service)


def test_it_follows_two_writers_without_reloading(browser: Browser, table: Table, address: str) -> None:
    browser.imitate(width=1400, theme="light")
    browser.show(address)
    assert until(lambda: browser.run("return document.getElementById('state').textContent") == "live")
    assert browser.run("return location.search + document.cookie") == "", "the token is out of sight"
    assert browser.run(INSTANTS) == []
    with two_writers(table, rounds=LAST):
        assert until(lambda: len(browser.run(INSTANTS)) >= LAST // 2), "it goes on by itself"
    found = list_activity(table, last=LAST)
    assert until(lambda: browser.run(INSTANTS) == [one.requested for one in found])
    writers = sorted({one.writer for one in found})
    assert len(writers) == 2
    assert until(lambda: sorted(browser.run(LANES)) == writers), "the last one is shown as pending before"
    assert browser.run("return performance.getEntriesByType('navigation').length") == 1
    own = browser.run("return performance.getEntriesByType('resource').every(one => one.name.startsWith(origin))")
    assert own, "nothing comes from elsewhere"


def test_locks_and_what_is_under_way_are_shown_as_long_as_they_are(
    browser: Browser, table: Table, address: str
) -> None:
    browser.show(address)
    options = {"hoodie.base.path": table.storage.base, **LOCK}
    with LockManager.from_options(options) as locks:
        with locks.lock(LockScope.table()) as held:
            assert until(lambda: str(held.lease.owner.pid) in browser.run(TEXT.format("locks")))
        assert until(lambda: browser.run(TEXT.format("locks")) == "Nobody holds a lock.")
        tx = Transactions(table, locks, options=options).begin("commit", "UPSERT")
        assert until(lambda: tx.instant in browser.run(TEXT.format("pending")))
        assert re.search(r"0:00:\d\d ago, 1[012]\d s left", browser.run(TEXT.format("pending")))
        tx.abort("tried enough")
        assert until(lambda: browser.run(TEXT.format("pending")) == "Nothing.")


def test_a_write_that_gave_up_appears_by_itself(browser: Browser, table: Table, address: str) -> None:
    browser.show(address)
    assert until(lambda: "nothing gave up" in browser.run(TEXT.format("conflicts")))
    leave_a_conflict(table)
    assert until(lambda: "gave up" in browser.run(NEWEST))
    shown = browser.run(NEWEST).split("\t")
    assert shown[1:] == ["nightly etl (pid 7 on a)", "commit 20260101000000001", *WHERE]
    assert browser.run("return performance.getEntriesByType('navigation').length") == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_it_can_be_read_on_a_phone_and_in_the_dark(
    browser: Browser, table: Table, address: str, width: int, theme: str
) -> None:
    with two_writers(table, rounds=LAST // 2):
        pass
    leave_a_conflict(table)
    leave_a_conflict(table, service="clustering")
    browser.imitate(width=width, theme=theme)
    browser.show(address)
    assert until(lambda: len(browser.run(INSTANTS)) == LAST)
    assert until(lambda: browser.run(NEWEST).endswith("clustering gave up"))
    assert browser.run("return innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") <= width, "nobody has to push it sideways"
    ground, text = (
        sum(map(int, re.findall(r"\d+", browser.run(f"return getComputedStyle(document.body).{name}"))[:3]))
        for name in ("backgroundColor", "color")
    )
    assert abs(ground - text) > 3 * 150, "it stands out"
    assert (ground > text) == (theme == "light")
    picture = browser.take_picture()
    assert picture.startswith(b"\x89PNG")
    if PICTURES:
        Path(PICTURES, f"ui-{width}-{theme}.png").write_bytes(picture)
