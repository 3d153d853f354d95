"""The live page: what it shows of tables, what it tells of changes, and whom it lets in."""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from waiting import until

from hudi_locks.cli.ui.app import make_ui
from hudi_locks.cli.ui.looker import MOMENT, Looker, name_place
from hudi_locks.cli.ui.panels import PANELS, WatchedTable
from hudi_locks.clock import ManualClock, SystemClock
from hudi_locks.errors import StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager, LockScope, Owner, load_provider_class
from hudi_locks.services.met_conflicts import describe_conflict, leave_conflicts
from hudi_locks.services.overview import TableOverview, look_over
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.transaction import Conflict, Transactions

Run = Callable[..., tuple[int, str, str]]
LOCK = {"hoodie.write.lock.provider": "filesystem"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(open_storage(str(tmp_path / "table <1>")), TableConfig("t", ("id",)))


def begin(table: Table, locks: LockManager, job: str) -> Any:
    options = {"hoodie.base.path": table.storage.base, **LOCK}
    owner = Owner(job, host="a", pid=7, application=job)
    return Transactions(table, locks, options=options, owner=owner).begin("commit", "UPSERT")


@pytest.fixture
def locks(table: Table) -> Iterator[LockManager]:
    with LockManager.from_options({"hoodie.base.path": table.storage.base, **LOCK}) as manager:
        yield manager


def commit(table: Table, locks: LockManager, job: str) -> str:
    tx = begin(table, locks, job)
    assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed
    requested: str = tx.instant
    return requested


@pytest.fixture
def watched(table: Table) -> Iterator[WatchedTable]:
    options = {"hoodie.base.path": table.storage.base, **LOCK}
    with load_provider_class("filesystem")(options, clock=SystemClock(), on_lost=lambda *_: None) as provider:
        yield WatchedTable(Table.load(table.storage), options, provider, last=3)


def text(html: str) -> str:
    """What a browser shows of it."""
    parser = Texts()
    parser.feed(html)
    return " ".join(" ".join(parser.found).split())


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def test_each_panel_tells_what_is_there(table: Table, watched: WatchedTable, locks: LockManager) -> None:
    empty = {panel: text(html) for panel, html in watched.look(0).items()}
    assert list(empty) == list(PANELS)
    assert empty["locks"] == "Nobody holds a lock."
    assert empty["pending"] == "Nothing."
    assert empty["timeline"] == "No instants."
    assert empty["conflicts"] == "None of the newest 0 commits met one, and nothing gave up."
    assert "record key id" in empty["table"]
    assert "last write none" in empty["table"]

    first, tx = commit(table, locks, "etl <b>"), begin(table, locks, "backfill")
    with locks.lock(LockScope.table()):
        seen = {panel: text(html) for panel, html in watched.look(SystemClock().wall_ms()).items()}
    assert re.search(r"table .*pid \d+ .* never by itself", seen["locks"])
    assert f"{tx.instant} commit inflight 0:00:0" in seen["pending"]
    assert re.search(r"0:00:0\d ago, 1\d\d s left$", seen["pending"])
    assert first in seen["timeline"]
    assert "etl <b> (pid 7 on a)" in seen["timeline"]
    assert "last write none" not in seen["table"]
    tx.abort("tried enough")


def test_what_was_taken_back_goes_and_what_is_old_too(table: Table, watched: WatchedTable, locks: LockManager) -> None:
    tx = begin(table, locks, "backfill")
    assert tx.instant in watched.look(0)["timeline"]
    tx.abort("tried enough")
    assert f"commit-{tx.instant}" not in watched.look(0)["timeline"]
    commits = [commit(table, locks, "etl") for _ in range(4)]
    shown = watched.look(0)["timeline"]
    assert [one in shown for one in commits] == [False, True, True, True]


def test_files_are_listed_again_only_when_a_write_was_completed(
    table: Table, watched: WatchedTable, locks: LockManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Table] = []

    def look_over_counted(table: Table, options: Any) -> TableOverview:
        looks.append(table)
        return look_over(table, options)

    monkeypatch.setattr("hudi_locks.cli.ui.panels.look_over", look_over_counted)
    for _ in range(3):
        watched.look(0)
    commit(table, locks, "etl")
    for _ in range(3):
        watched.look(0)
    assert len(looks) == 2


def test_a_write_that_gave_up_is_shown_with_whom_it_met_and_where(table: Table, watched: WatchedTable) -> None:
    watched.look(0)
    met = Conflict(
        "20260101000000002",
        (FileGroupId("eu", "f-<0>"),),
        "20260101000000001",
        "commit",
        "backfill (pid 4 on b)",
        1500,
        "try again",
        is_early=True,
    )
    noted = [describe_conflict(met, lost_ms=700, met_ms=1_767_225_600_000)]
    leave_conflicts(table.storage, met.instant, met=noted, writer="etl (pid 7 on a)")
    shown = text(watched.look(0)["conflicts"])
    assert "etl backfill 1 1 0 1 0.7 s" in shown
    found = "2026-01-01 00:00:00+00:00 etl (pid 7 on a) commit 20260101000000001 backfill (pid 4 on b) eu/f-<0> early"
    assert f"{found} gave up" in shown


def test_a_table_that_cannot_be_read_says_why_and_shows_what_was_known(
    table: Table, watched: WatchedTable, locks: LockManager
) -> None:
    requested = commit(table, locks, "etl")
    watched.look(0)
    [completed] = [one.name for one in table.storage.list(".hoodie/timeline") if one.name.endswith(".commit")]
    sound = table.storage.read(f".hoodie/timeline/{completed}") or b""
    other = completed.replace(requested, f"{int(requested) + 1}")
    table.storage.create_if_absent(f".hoodie/timeline/{other}", b"{")
    shown = watched.look(0)["table"]
    assert 'class="trouble"' in shown
    assert other in text(shown)
    assert "record key id" in text(shown)
    table.storage.replace(f".hoodie/timeline/{other}", sound)
    assert 'class="trouble"' not in watched.look(0)["table"]


@pytest.mark.parametrize(
    ("error", "said"),
    [(StorageError("no answer", path=""), "no answer"), (ValueError("<odd>"), "ValueError: &lt;odd&gt;")],
)
def test_what_could_not_be_looked_at_is_said_and_looked_at_again(
    table: Table,
    watched: WatchedTable,
    locks: LockManager,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    said: str,
) -> None:
    before = watched.look(0)["table"]
    commit(table, locks, "etl")

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as failing:
        failing.setattr("hudi_locks.cli.ui.panels.look_over", fail)
        assert watched.look(0)["table"] == f'<p class="trouble">{said}</p>{before}'
    assert "last write none" not in text(watched.look(0)["table"])


def test_a_watcher_is_told_what_changed_and_no_more(table: Table, watched: WatchedTable, locks: LockManager) -> None:
    looker = Looker([watched], ManualClock(), interval_s=1)
    looker.look()
    with looker.watch() as watcher:
        watcher.tell()
        assert set(watcher.wait(0)) == {MOMENT, *(name_place(0, panel) for panel in PANELS)}
        looker.look()
        assert watcher.wait(0) == {}
        commit(table, locks, "etl")
        looker.look()
        assert set(watcher.wait(0)) == {name_place(0, panel) for panel in ("table", "conflicts", "timeline")}


def test_nobody_looks_while_no_page_is_open(watched: WatchedTable) -> None:
    with Looker([watched], SystemClock(), interval_s=0.01) as looker:
        assert looker.drawn == {}
        with looker.watch() as watcher:
            assert watcher.wait(60)
    assert looker.has_ended


@pytest.fixture
def served(watched: WatchedTable) -> Iterator[TimelineServer]:
    looker = Looker([watched], SystemClock(), interval_s=0.05)
    looker.look()
    with TimelineServer(lambda token: make_ui(looker, token)) as server, looker:
        yield server


def ask(server: TimelineServer, path: str, **headers: str) -> http.client.HTTPResponse:
    link = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    link.request("GET", path, headers=headers)
    return link.getresponse()


def test_the_token_of_the_first_address_becomes_a_cookie(served: TimelineServer, table: Table) -> None:
    came = ask(served, f"/?token={served.token}")
    assert (came.status, came.getheader("location")) == (303, ".")
    cookie = came.getheader("set-cookie") or ""
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    page = ask(served, "/", Cookie=cookie.split(";")[0])
    assert page.status == 200
    policy, shown = page.getheader("content-security-policy") or "", page.read().decode()
    assert served.token not in shown
    assert "table &lt;1&gt;" in shown
    assert table.storage.base not in shown, "it is escaped"
    [nonce] = re.findall(r"'nonce-([^']+)'", policy)
    assert f'<script nonce="{nonce}">' in shown
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", shown), "nothing is loaded from elsewhere"


@pytest.mark.parametrize("path", ["/", "/events"])
@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({}, 401, "open the address that `hudi-locks ui` printed"),
        ({"Cookie": "hudi_locks_ui=guess"}, 401, "open the address"),
        ({"Cookie": "hudi_locks_ui=ü"}, 401, "open the address"),
        ({"Host": "evil.example"}, 403, "does not go by that host"),
        ({"Origin": "http://evil.example"}, 403, "answers no other pages"),
    ],
)
def test_others_are_turned_away(
    served: TimelineServer, path: str, headers: dict[str, str], status: int, says: str
) -> None:
    if "Cookie" not in headers and headers:
        headers = {**headers, "Cookie": f"hudi_locks_ui={served.token}"}
    came = ask(served, path, **headers)
    assert came.status == status
    assert says in came.read().decode()
    assert ask(served, "/?token=guess").status == 401


def test_an_open_page_is_told_of_each_change(served: TimelineServer, table: Table, locks: LockManager) -> None:
    came = ask(served, "/events", Cookie=f"hudi_locks_ui={served.token}", Origin=served.url)
    assert (came.status, came.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
    requested, told = commit(table, locks, "etl"), dict[str, str]()

    def read_on() -> bool:
        line = came.readline().decode()
        if line.startswith("data: "):
            change = json.loads(line.removeprefix("data: "))
            told[change["place"]] = change["html"]
        return requested in told.get(name_place(0, "timeline"), "")

    assert until(read_on, 60)
    came.close()


def test_the_command_prints_the_address_and_ends_at_a_signal(table: Table, start: Callable[..., Any]) -> None:
    code = "import sys; from hudi_locks.cli import main; main(sys.argv[1:])"
    process = start(code, "ui", table.storage.base, "--port", "0", "-p", "filesystem")
    said = process.stdout.readline()
    url, token = re.fullmatch(r"open (http://127\.0\.0\.1:\d+)/\?token=(\S+)\n", said).groups()  # type: ignore[union-attr]
    link = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    link.request("GET", "/events", headers={"Cookie": f"hudi_locks_ui={token}"})
    stream = link.getresponse()
    assert stream.readline().startswith(b"data: ")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "stopped\n")


def test_without_a_lock_provider_the_page_says_what_to_give(table: Table) -> None:
    shown = WatchedTable(Table.load(table.storage), {}, None, last=3).look(0)["locks"]
    assert text(shown) == "Which lock the table has was not said: give --provider and its options."


def test_a_folder_that_is_no_table_is_refused(hudi_locks: Run, tmp_path: Path) -> None:
    status, out, err = hudi_locks("ui", str(tmp_path))
    assert (status, out) == (1, "")
    assert str(tmp_path) in err
    assert "Traceback" not in err
