"""ST: staged files and their tickets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from hudi_locks.errors import StorageError
from hudi_locks.storage import MOST_TICKET_BYTES, map_in_threads
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.storages.check import StorageBench, race, require, storage_check

_TURNS: Final = 8
_FEW: Final = 6
_LARGE: Final = 12_000_000
"""More than one part of an upload."""
_PATIENCE_S: Final = 1.0
"""How long a late request is waited for."""

ticket_check: partial[Callable[[Callable[[StorageBench], None]], Callable[[StorageBench], None]]] = partial(
    storage_check, needs="tickets"
)


@ticket_check("ST1", "staged-is-unseen", why="Readers take each base file whose instant is completed.")
def staged_is_unseen(bench: StorageBench) -> None:
    """What is staged, sealed or not, has no name that readers list, and its own name stays free."""
    staged = bench.stage()
    require(not bench.names(), f"a staged file shows as {bench.names()}")
    ticket = staged.seal()
    require(not bench.names(), f"a sealed file shows as {bench.names()}")
    require(0 < len(ticket.encode()) <= MOST_TICKET_BYTES, f"a ticket has {len(ticket.encode())} bytes")
    require(bench.storage.stat(bench.target()) is None, "the name of a staged file is taken")


@ticket_check("ST2", "redeemed-whole", why="A base file that lacks bytes is a lost file.")
def redeemed_whole(bench: StorageBench) -> None:
    """A redeemed file has its name and all its bytes, whatever its size, by the time the names are flushed."""
    for name, data in {"empty": b"", "small": b"rows", "large": b"0123456789ab" * (_LARGE // 12)}.items():
        target = bench.target(name)
        require(bench.storage.redeem(bench.ticket(data, target=target), target), f"the {name} file was not redeemed")
        bench.storage.flush([target])
        require(bench.storage.read(target) == data, f"the {name} file has other bytes than were staged")
    require(len(bench.names()) == 3, f"redeeming three files made {bench.names()}")


@ticket_check("ST3", "used-up", why="A file that was cleaned or undone would come back, and its rows with it.")
def used_up(bench: StorageBench) -> None:
    """A ticket names its file once: after the file was deleted it names nothing."""
    ticket, target = bench.ticket(), bench.target()
    require(bench.storage.redeem(ticket, target), "a good ticket was not redeemed")
    bench.storage.redeem(ticket, target)
    require(bench.storage.read(target) == b"rows", "a second redeem changed the file")
    bench.storage.delete(target)
    _refuse(bench, lambda: bench.storage.redeem(ticket, target), "a ticket was redeemed twice")


@ticket_check("ST4", "a-name-stays", why="A late attempt of a task would replace the file that a commit names.")
def a_name_stays(bench: StorageBench) -> None:
    """A ticket does not take a name that is taken, and leaves the file under it as it is."""
    first, second, target = bench.ticket(b"first"), bench.ticket(b"second"), bench.target()
    require(bench.storage.redeem(first, target), "a good ticket was not redeemed")
    require(not bench.storage.redeem(second, target), "redeem() of a taken name returned True")
    require(bench.storage.read(target) == b"first", "redeem() of a taken name replaced the file")
    bench.storage.create_if_absent(bench.target("made"), b"made")
    other = bench.ticket(b"other", target=bench.target("made"))
    require(not bench.storage.redeem(other, bench.target("made")), "redeem() of a taken name returned True")
    require(bench.storage.read(bench.target("made")) == b"made", "redeem() of a taken name replaced the file")


@ticket_check("ST5", "cancelled-for-ever", why="A write that was undone would come back while readers look.")
def cancelled_for_ever(bench: StorageBench) -> None:
    """A cancelled ticket is never redeemed; to cancel it again is quiet, and leaves other tickets of the name."""
    cancelled, kept, target = bench.ticket(b"cancelled"), bench.ticket(b"kept"), bench.target("kept")
    bench.storage.cancel(cancelled, bench.target())
    bench.storage.cancel(cancelled, bench.target())
    _refuse(bench, lambda: bench.storage.redeem(cancelled, bench.target()), "a cancelled ticket was redeemed")
    kept = bench.ticket(b"kept", target=target)
    bench.storage.cancel(bench.ticket(b"other", target=bench.target("other")), bench.target("other"))
    require(bench.storage.redeem(kept, target), "a ticket is gone since another was cancelled")


@ticket_check("ST6", "one-ticket-wins", why="Of two attempts of one task exactly one may be in a commit.")
def one_ticket_wins(bench: StorageBench) -> None:
    """Of many tickets for one name that are redeemed at the same time one is, and the file has its bytes."""
    for turn in range(_TURNS):
        target = bench.target(str(turn))
        tickets = [bench.ticket(b"%d" % number, target=target) for number in range(4)]
        won = race(*[partial(bench.storage.redeem, ticket, target) for ticket in tickets])
        require(won.count(True) == 1, f"{won.count(True)} of 4 tickets for one name were redeemed")
        found = bench.storage.read(target)
        require(found == b"%d" % won.index(True), f"ticket {won.index(True)} was redeemed; the file has {found!r}")


@ticket_check("ST7", "helpers-agree", why="A writer and its helpers redeem the same ticket at the same time.")
def helpers_agree(bench: StorageBench) -> None:
    """One ticket that many redeem at the same time names one whole file."""
    for turn in range(_TURNS):
        target = bench.target(str(turn))
        ticket = bench.ticket(target=target)
        won = race(*[partial(bench.storage.redeem, ticket, target)] * 4)
        require(any(won), "many redeemed one ticket, and none was told so")
        require(bench.storage.read(target) == b"rows", "many redeemed one ticket, and the file has other bytes")


@ticket_check("ST8", "redeem-or-cancel", why="A helper that sleeps in a redeem would bring back what was undone.")
def redeem_or_cancel(bench: StorageBench) -> None:
    """Of redeem() and cancel() at the same time one wins; once the name was taken away after that it stays free."""
    for turn in range(_TURNS * 2):
        target = bench.target(str(turn))
        ticket = bench.ticket(target=target)
        won, _ = race(partial(_redeem, bench, ticket, target), partial(_cancel, bench, ticket, target))
        require(not (won is False and bench.storage.exists(target)), "redeem() returned False, and the file is there")
        bench.storage.delete(target)
        _refuse(bench, partial(bench.storage.redeem, ticket, target), "it came back", target)


def _redeem(bench: StorageBench, ticket: str, target: str) -> bool | None:
    try:
        return bench.storage.redeem(ticket, target)
    except StorageError:
        return None  # no answer: it may have been done


def _cancel(bench: StorageBench, ticket: str, target: str) -> None:
    bench.storage.cancel(ticket, target)


def _refuse(bench: StorageBench, redeem: Callable[[], bool], what: str, target: str = "") -> None:
    """Redeem in vain.

    Raises:
        Violation: It was redeemed, or the name is there.
    """
    try:
        won = redeem()
    except StorageError as error:
        raise Violation(f"redeem() of a ticket that is gone raised {type(error).__name__}: {error}") from error
    require(not won, f"{what}: redeem() returned True")
    require(not bench.storage.exists(target or bench.target()), f"{what}: the file is there")


@ticket_check("ST9", "nothing-late", why="A request that lands behind a cancellation brings back what was undone.")
def nothing_late(bench: StorageBench) -> None:
    """A second after cancel() returned, nothing that was asked before has landed."""
    targets = [bench.target(str(turn)) for turn in range(_TURNS)]
    tickets = [bench.ticket(target=target) for target in targets]
    pairs = list(zip(tickets, targets, strict=True))
    for turn, (ticket, target) in enumerate(pairs):
        calls = partial(_redeem, bench, ticket, target), partial(_cancel, bench, ticket, target)
        if turn % 2:
            race(*calls)
        else:
            calls[0]()
            calls[1]()
        bench.storage.delete(target)
    bench.clock.sleep(_PATIENCE_S)
    require(not bench.names(), f"{len(bench.names())} files came back after their tickets were cancelled")


@ticket_check("ST10", "discarded-and-late", why="A task that was given up may go on, and seal what nobody wants.")
def discarded_and_late(bench: StorageBench) -> None:
    """A file that its task discards, or that was cancelled while it is sent to the store, is not redeemed.

    S3 lets a part that is on its way when an upload is cancelled arrive after that, and an upload may be there again by
    it. No claim names such a file, so one of a few must be refused, not each.
    """
    staged = bench.stage()
    ticket = staged.seal()
    staged.discard()
    staged.discard()
    _refuse(bench, lambda: bench.storage.redeem(ticket, bench.target()), "a discarded file was redeemed")
    redeemed = all(_redeem_cancelled(bench, bench.target(f"late-{turn}")) for turn in range(_FEW))
    require(not redeemed, "a file cancelled as it was written: redeem() returned True")


def _redeem_cancelled(bench: StorageBench, target: str) -> bool:
    """Whether a file is redeemed that was cancelled as it was written."""
    late = bench.storage.stage(target, instant=bench.instant)
    out = late.open()
    out.write(b"0" * _LARGE)  # a store may begin with the first full part
    bench.storage.cancel_staged({bench.instant})
    try:
        out.close()
        return bench.storage.redeem(late.seal(), target)
    except (StorageError, OSError):
        return False  # it says so itself


@ticket_check("ST11", "swept-by-instant", why="Staged files of dead writers must go, and those of live ones must stay.")
def swept_by_instant(bench: StorageBench) -> None:
    """list_staged() names the instants that have staged something; cancel_staged() cancels what theirs is alone."""
    target = bench.target("kept").replace(bench.instant, bench.other_instant)
    gone, kept = bench.ticket(), bench.ticket(target=target, instant=bench.other_instant)
    both = {bench.instant, bench.other_instant}
    found = bench.storage.list_staged() & both
    require(found == both, f"list_staged() names {len(found)} of two instants")
    bench.storage.cancel_staged({bench.instant})
    require(bench.instant not in bench.storage.list_staged(), "list_staged() names an instant that was cancelled")
    _refuse(bench, lambda: bench.storage.redeem(gone, bench.target()), "a ticket of a cancelled instant was redeemed")
    require(bench.storage.redeem(kept, target), "a ticket of another instant is gone too")


@ticket_check("ST12", "copies-seal", why="Tasks stage by a pickled copy; the driver redeems.")
def copies_seal(bench: StorageBench) -> None:
    """A ticket that a pickled copy gave is redeemed and cancelled by the storage."""
    copy = bench.copy()
    first, second = bench.target("1"), bench.target("2")
    tickets = []
    for target in (first, second):
        staged = copy.stage(target, instant=bench.instant)
        with staged.open() as out:
            out.write(b"rows")
        tickets.append(staged.seal())
    require(bench.storage.redeem(tickets[0], first), "the ticket of a pickled copy was not redeemed")
    require(bench.storage.read(first) == b"rows", "the file of a pickled copy has other bytes")
    bench.storage.cancel(tickets[1], second)
    _refuse(bench, lambda: bench.storage.redeem(tickets[1], second), "the cancelled ticket of a copy", second)


@ticket_check("ST13", "written-anew", why="A writer that fails half-way opens its file once more.")
def written_anew(bench: StorageBench) -> None:
    """A staged file that is opened again is written from its beginning."""
    staged = bench.stage(b"a longer text than the second")
    with staged.open() as out:
        out.write(b"short")
    require(bench.storage.redeem(staged.seal(), bench.target()), "a file that was written twice was not redeemed")
    found = bench.storage.read(bench.target())
    require(found == b"short", f"a file that was written twice has {found!r}")


@ticket_check("ST14", "many-at-once", why="Names are given under the lock, for hundreds of files.")
def many_at_once(bench: StorageBench) -> None:
    """A hundred tickets are redeemed side by side, each for its own name."""
    targets = [bench.target(f"{number:03}") for number in range(100)]
    tickets = map_in_threads(lambda target: bench.ticket(target.encode(), target=target), targets)
    pairs = list(zip(tickets, targets, strict=True))
    won = map_in_threads(lambda pair: bench.storage.redeem(*pair), pairs)
    require(all(won), f"{won.count(False)} of 100 tickets were not redeemed")
    read = map_in_threads(bench.storage.read, targets)
    require(read == [target.encode() for target in targets], "a file has the bytes of another")
