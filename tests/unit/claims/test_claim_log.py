from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.clock import ManualClock
from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format.claim import INLINE_LIMIT, Claim, ClaimKind, Content, claim_path
from hudi_locks.storage import Entry, MemoryStorage
from hudi_locks.timeline.claims import START, ClaimEntry, ClaimLog, find_last

HINT = ".hoodie/.hudi_locks/head"


Maker = Callable[..., Claim]


class CountingStorage(MemoryStorage):
    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.calls: list[str] = []

    def read(self, path: str) -> bytes | None:
        self.calls.append(f"read {path}")
        return super().read(path)

    def stat(self, path: str) -> Entry | None:
        self.calls.append(f"stat {path}")
        return super().stat(path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> CountingStorage:
    return CountingStorage(clock)


@pytest.fixture
def claim() -> Callable[..., Claim]:
    def make(content: Content | None = None, time: int = 1) -> Claim:
        return Claim(ClaimKind.PUBLISH, "20231114221320000", "commit", f"20231114221320{time:03d}", content=content)

    return make


def grow(log: ClaimLog, make: Callable[..., Claim], count: int) -> ClaimEntry:
    for number in range(count):
        assert log.append(log.draft(log.read_head(), make(time=number))) is not None
    return log.read_head()


def test_entries_are_numbered_and_chained(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    log = ClaimLog(storage, clock)
    assert log.read_head() == START
    head = grow(log, claim, 3)
    claims = log.since(0, head)
    assert [found.number for found in claims] == [1, 2, 3]
    assert claims[0].previous == ""
    assert claims[2].previous != claims[1].previous
    assert ClaimLog(storage, clock).read_head() == head


def test_a_taken_number_changes_nothing(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    one, two = ClaimLog(storage, clock), ClaimLog(storage, clock)
    first, second = one.draft(START, claim()), two.draft(START, claim())
    assert one.append(first) is not None
    before = storage.read(claim_path(1))
    assert two.append(second) is None
    assert storage.read(claim_path(1)) == before
    assert two.read_head().number == 1


def test_an_own_entry_is_known_again(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    log = ClaimLog(storage, clock)
    draft = log.draft(START, claim())
    assert log.append(draft) == log.append(draft)


def test_a_read_between_two_commits_is_one_request(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    log = ClaimLog(storage, clock)
    grow(log, claim, 5)
    storage.calls.clear()
    log.read_head()
    assert storage.calls == [f"read {claim_path(6)}"]


def test_a_cold_start_gallops_from_the_hint(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    log = ClaimLog(storage, clock)
    grow(log, claim, 90)
    log.write_hint()
    grow(log, claim, 10)
    storage.calls.clear()
    assert ClaimLog(storage, clock).read_head().number == 100
    assert len(storage.calls) < 15


@pytest.mark.parametrize("hint", [b"", b"nonsense", b"7000", b"-1"])
def test_a_wrong_hint_only_costs_requests(
    storage: CountingStorage, clock: ManualClock, claim: Maker, hint: bytes
) -> None:
    grow(ClaimLog(storage, clock), claim, 9)
    storage.replace(HINT, hint)
    assert ClaimLog(storage, clock).read_head().number == 9


def test_the_hint_is_written_once_a_second(
    storage: CountingStorage, clock: ManualClock, claim: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ClaimLog(storage, clock)
    for _ in range(3):
        grow(log, claim, 1)
        log.write_hint()
    assert storage.read(HINT) == b"1\n"
    clock.advance(1.5)
    log.write_hint()
    assert storage.read(HINT) == b"3\n"

    def fail(path: str, data: bytes) -> None:
        raise StorageError("too many requests", path=path)

    monkeypatch.setattr(storage, "replace", fail)
    clock.advance(1.5)
    log.write_hint()
    assert storage.read(HINT) == b"3\n"


@given(last=st.integers(0, 3000), start=st.integers(0, 6000))
def test_the_end_is_found_from_anywhere(last: int, start: int) -> None:
    asked: list[int] = []

    def is_there(number: int) -> bool:
        asked.append(number)
        return 1 <= number <= last

    assert find_last(is_there, start) == last
    assert len(asked) <= 28


def test_a_changed_entry_breaks_the_chain(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    reader = ClaimLog(storage, clock)
    grow(ClaimLog(storage, clock), claim, 1)
    reader.read_head()
    data = storage.read(claim_path(1)) or b""
    storage.replace(claim_path(1), data.replace(b'"owner":""', b'"owner":"me"'))
    grow(ClaimLog(storage, clock), claim, 1)
    with pytest.raises(DamagedTable, match=r"00000000000000000002.json is not chained"):
        reader.read_head()


def test_an_unreadable_entry_is_named(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    grow(ClaimLog(storage, clock), claim, 2)
    storage.replace(claim_path(2), b"{")
    with pytest.raises(DamagedTable, match=r"00000000000000000002.json"):
        ClaimLog(storage, clock).read_head()


def test_a_missing_entry_is_named(storage: CountingStorage, clock: ManualClock, claim: Maker) -> None:
    head = grow(ClaimLog(storage, clock), claim, 3)
    storage.delete(claim_path(2))
    with pytest.raises(DamagedTable, match=r"00000000000000000002.json is missing"):
        ClaimLog(storage, clock).since(0, head)


def test_large_content_is_staged_until_the_next_entry(
    storage: CountingStorage, clock: ManualClock, claim: Maker
) -> None:
    log = ClaimLog(storage, clock)
    data = b"x" * (INLINE_LIMIT + 1)
    log.append(log.draft(START, claim(Content.of("t_c.commit", data))))
    other = ClaimLog(storage, clock)
    head = other.read_head()
    assert head.claim is not None
    assert other.read_content(head.claim) == data
    grow(other, claim, 1)
    assert storage.list(".hoodie/.hudi_locks/staged") == []
    assert ClaimLog(storage, clock).read_content(head.claim) is None


def test_staged_content_that_is_missing_too_early_is_named(
    storage: CountingStorage, clock: ManualClock, claim: Maker
) -> None:
    log = ClaimLog(storage, clock)
    content = Content.of("t_c.commit", b"x" * (INLINE_LIMIT + 1))
    log.append(log.draft(START, claim(content)))
    storage.delete(f".hoodie/.hudi_locks/staged/{content.sha256}")
    head = ClaimLog(storage, clock).read_head()
    assert head.claim is not None
    with pytest.raises(DamagedTable, match=content.sha256):
        log.read_content(head.claim)
