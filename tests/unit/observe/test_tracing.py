"""Spans of writers and locks: what they tell, how a waiter finds the holder, and nothing where they are off."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting
from hudi_locks_providers._wire import dynamodb_item, hive_lock, lock_file, storage_lock, zookeeper
from spans import EndedSpans, keep_spans, name_of, told

from hudi_locks import AcquireTimeout, ConfigError, Holder, LockManager, Owner
from hudi_locks.config import Options
from hudi_locks.observe import LOCK_LOST, Metrics, SpanName
from hudi_locks.observe import open_telemetry as ours

ON = {"hudi_locks.tracing": "true", "hoodie.table.name": "trips"}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "hunter2-p4ss"
MARKED = Owner("7", "host", 12, "main", "nightly", PARENT)
DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


@pytest.fixture
def spans() -> Iterator[EndedSpans]:
    with keep_spans() as kept:
        yield kept


def fail_to_lock(manager: LockManager) -> None:
    with pytest.raises(AcquireTimeout):
        manager.lock(timeout_s=0)


def lock_options(tmp_path: Path, provider: str) -> dict[str, object]:
    given = {"hoodie.base.path": str(tmp_path), "hoodie.write.lock.provider": provider, **ON}
    return {**given, "hoodie.write.lock.wait_time_ms_between_retry": 10, "hoodie.write.lock.wait_time_ms": 60_000}


def hold_and_wait(tmp_path: Path, provider: str) -> None:
    """One manager holds the lock until another one has asked for it."""
    options = lock_options(tmp_path, provider)
    with (
        LockManager.from_options(options, application="first") as first,
        LockManager.from_options(options, application="second") as second,
    ):
        held = first.lock()
        waiter = threading.Thread(target=lambda: second.lock().release())
        waiter.start()
        assert waiting.until(lambda: has_met(second))
        held.release()
        waiter.join()


def has_met(manager: LockManager) -> bool:
    return getattr(manager, "met", False)


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager says once it has seen the holder."""
    asked = LockManager._ask

    def ask(self: LockManager, acquisition: Any, on_lost: Any) -> Any:
        meet = acquisition.trace.meet

        def note(*given: Any) -> None:
            meet(*given)
            self.met = True  # type: ignore[attr-defined]

        acquisition.trace.meet = note
        return asked(self, acquisition, on_lost)

    monkeypatch.setattr(LockManager, "_ask", ask)


@pytest.mark.parametrize("provider", ["filesystem", "in_process"])
@pytest.mark.usefixtures("met")
def test_the_span_of_a_waiter_links_to_that_of_the_holder(provider: str, tmp_path: Path, spans: EndedSpans) -> None:
    """By a provider that is asked again and again, and by one that waits itself."""
    hold_and_wait(tmp_path, provider)
    holder, waiter = spans.named(SpanName.LOCK)
    waited = [span for span in spans.named(SpanName.LOCK_ACQUIRE) if span.links]
    assert len(waited) == 1
    assert name_of(waited[0].links[0].context) == name_of(holder.get_span_context())
    assert name_of(waited[0].parent) == name_of(waiter.get_span_context())
    assert "first" in told(waited[0])["hudi.lock_holder"]
    assert told(waited[0])["hudi.lock_holder_token"]


def test_threads_of_one_manager_find_each_other_without_asking(tmp_path: Path, spans: EndedSpans) -> None:
    with LockManager.from_options(lock_options(tmp_path, "filesystem")) as manager, manager.lock():
        thread = threading.Thread(target=fail_to_lock, args=(manager,))
        thread.start()
        thread.join()
    failed, held = spans.named(SpanName.LOCK)
    waited = next(span for span in spans.named(SpanName.LOCK_ACQUIRE) if span.links)
    assert name_of(waited.links[0].context) == name_of(held.get_span_context())
    assert told(failed)["hudi.lock_outcome"] == told(waited)["hudi.lock_outcome"] == "not acquired"


def test_a_lock_tells_how_it_went(tmp_path: Path, spans: EndedSpans) -> None:
    with LockManager.from_options(lock_options(tmp_path, "filesystem")) as manager, manager.lock() as held:
        token = held.token
    (whole,) = spans.named(SpanName.LOCK)
    assert told(whole) == {
        "hudi.table": "trips",
        "hudi.path": str(tmp_path),
        "hudi.lock_scopes": ("table",),
        "hudi.lock_provider": "filesystem",
        "hudi.lock_attempts": 1,
        "hudi.lock_requests": 1,
        "hudi.lock_tokens": (str(token),),
        "hudi.lock_outcome": "released",
    }


def test_locks_that_were_taken_together_are_one_span(tmp_path: Path, spans: EndedSpans) -> None:
    from hudi_locks import LockScope

    scopes = [LockScope.file_group("p", f"f{number}") for number in range(3)]
    with LockManager.from_options(lock_options(tmp_path, "filesystem")) as manager, manager.lock_many(scopes):
        assert spans.named(SpanName.LOCK) == []
    (whole,) = spans.named(SpanName.LOCK)
    assert told(whole)["hudi.lock_scopes"] == ("p/f0", "p/f1", "p/f2")


def test_a_holder_without_a_trace_is_named_by_attributes(spans: EndedSpans) -> None:
    """As one of JVM Hudi, or of the Hive Metastore, whose records have no room."""
    from hudi_locks import LockScope
    from hudi_locks.lock.lock_trace import LockTrace

    metrics = Metrics()
    metrics.trace_by(Options(ON))
    found = LockTrace.start(metrics, [LockScope.table()], "hive_metastore")
    with found:
        found.meet(Owner("jvm", "host-2", trace="no trace"), "41")
    (waited,) = spans.named(SpanName.LOCK_ACQUIRE)
    assert not waited.links
    assert told(waited)["hudi.lock_holder"] == str(Owner("jvm", "host-2"))
    assert told(waited)["hudi.lock_holder_token"] == "41"


@pytest.mark.parametrize(
    "read_back",
    [
        lambda owner: (
            lock_file.decode_lock_file(
                lock_file.encode_lock_file(
                    lock_file.encode_constant(owner, "table"), hold="h", since_ms=1, lease_ms=1, trace=owner.trace
                )
            ).owner
        ),
        lambda owner: zookeeper.decode_payload(zookeeper.encode_payload(owner)),
        lambda owner: storage_lock.decode_named(storage_lock.encode_named("h", owner, 1)).owner,
        lambda owner: (
            dynamodb_item.decode_item(
                dynamodb_item.encode_item("k", owner, owner_name="o", version="v", lease_ms=1, token=1, since_ms=1)
            ).owner
        ),
    ],
    ids=["filesystem", "zookeeper", "storage", "dynamodb"],
)
def test_records_with_room_tell_the_trace_and_nothing_where_there_is_none(
    read_back: Callable[[Owner], Owner],
) -> None:
    assert read_back(MARKED).trace == PARENT
    bare = Owner("7", "host", 12, "main", "nightly")
    assert read_back(MARKED) == read_back(bare) == bare
    assert read_back(bare).trace == ""


def test_a_record_of_the_metastore_has_no_room_for_a_trace() -> None:
    bare = Owner("7", "host", 12, "main", "nightly")
    assert hive_lock.encode_agent(MARKED, "r") == hive_lock.encode_agent(bare, "r")


def test_a_trace_is_shown_of_a_holder() -> None:
    assert ("trace", PARENT) in Holder("key", MARKED).describe()


def test_what_is_counted_and_shown_is_seen_in_the_present_span(spans: EndedSpans) -> None:
    metrics = Metrics()
    metrics.trace_by(Options(ON))
    with metrics.span(SpanName.CLEAN, policy=None, commits=3):
        metrics.count(LOCK_LOST)
        metrics.show("clean", {"numFilesDeleted": 2})
    (span,) = spans.named(SpanName.CLEAN)
    assert [event.name for event in span.events] == [LOCK_LOST]
    assert told(span) == {"hudi.table": "trips", "hudi.commits": 3, "hudi.clean.numFilesDeleted": 2}
    assert metrics.counter(LOCK_LOST) == 1


def test_an_error_is_told_without_secrets_and_without_its_stack(spans: EndedSpans) -> None:
    metrics = Metrics()
    metrics.trace_by(Options(ON))
    with pytest.raises(OSError, match="cannot"), metrics.span(SpanName.CLEAN, at=f"s3://u:{SECRET}@b"):
        raise OSError(f"thrift://etl:{SECRET}@one cannot be reached")
    (span,) = spans.named(SpanName.CLEAN)
    assert not span.status.is_ok
    assert SECRET not in span.to_json()
    assert "thrift://etl:***@one cannot be reached" in span.to_json()
    assert [sorted(event.attributes or {}) for event in span.events] == [["exception.message", "exception.type"]]


def test_a_process_without_an_sdk_marks_no_record(tmp_path: Path) -> None:
    with LockManager.from_options(lock_options(tmp_path, "filesystem")) as manager, manager.lock():
        holder = manager.holder()
    assert holder is not None
    assert '"trace"' not in holder.raw


def test_without_the_package_the_option_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, ours.__name__, None)
    with pytest.raises(ConfigError, match=r"pip install 'hudi-locks\[tracing\]'"):
        Metrics().trace_by(Options(ON))


def test_nothing_is_imported_or_called_where_they_are_off(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom hudi_locks import LockManager\n"
        f"with LockManager('filesystem', {{'hoodie.base.path': {str(tmp_path)!r}}}) as manager, manager.lock(): pass\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "assert 'hudi_locks.observe.open_telemetry' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_span_stands_in_the_documentation() -> None:
    text = DOCUMENT.read_text()
    assert [name.value for name in SpanName if f"`{name.value}`" not in text] == []
