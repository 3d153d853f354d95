"""Checks that a planted fault fails besides those that are named for it, each with the reason why it must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["COMPANIONS"]

_TAKEOVER: Final = ("E3", "I1", "I3", "I4")
"""The checks that let all renewals fail and wait for a contender to enter."""
_RENEWAL: Final = ("C5", "E5", "E6", "E8a", "E14", "I2")
"""The checks that expect a renewal to be refused."""
_LIFE: Final = ("E2", "E12", "E13", "I1", "I3", "I4")
"""The checks that let a holder live for longer than a lease."""


def _because(reason: str, *ids: str) -> dict[str, str]:
    return dict.fromkeys(ids, reason)


COMPANIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "BelievesAfterRestart": {
        **_because("it renews what is over, gone or another's", *_RENEWAL, "E17", "H6", "H10", "H11", "N1"),
        **_because("it writes no sign of life", *_LIFE),
    },
    "BelievesTooLong": _because("a longer lease than others go by is missed by each bound", "E1", "E11", "I3", "N1"),
    "ClaimsClockFree": _because("a wall clock decides, and jumps there by an hour", "D11"),
    "ClaimsReentrant": _because("a second lease that is not counted is no second lease to the reference lock", "N1"),
    "ClosesForAll": _because("its next close frees what others hold", "A4", "B12", "C4", "C5", "C9", "H8", "N1"),
    "DiesWithItsThread": _because("the next holder acquires on a thread that ends", "B13", "E17", "E18"),
    "ExpiresEarly": _because("half a lease is before the end of any lease", "E11", *_TAKEOVER),
    "ExpiresNever": _because("what never ends cannot be taken over", "E11", "E17", "J1", *_TAKEOVER),
    "ForgetsFailedReleases": {
        **_because("a release that failed is never made up for", "C4", "H9c", "H14", "H15"),
        **_because("it looks, and then removes by name, whoever asks", "B13", "C9"),
    },
    "GrantsAlways": {
        **_because(
            "a taken lock is granted", "A2", "A8", "A11", "B2", "B3", "B10", "B12", "C1", "C3", "C9", "D2", "D11", "L8"
        ),
        **_because("a taken lock is granted, also over a record", "G6", "H8", "I5", "J5", "L1", "L2", "L3", "N1", "N2"),
        **_because("an ordinary life meets a refusal", "L8"),
        **_because("it keeps no record and asks nobody", "A4", "A7", "C7", "C8", "E15", "H1", "H2", "H5", "H11", "H13"),
        **_because("it renews whatever it is given", "C5", "E6", "E8a", "H6", "H10", "H14", "I2"),
    },
    "GrantsToGhosts": _because("who gave up in one round holds in the next", "D10a", "D10b", "D10c", "D11", "G6"),
    "GrantsTwice": _because("the reference lock refuses a second acquire", "N1"),
    "HalfMade": _because("any failure of an acquire leaves its name behind", "H9c", "H15"),
    "HasOneHold": _because("what it forgot it neither releases nor frees at its close", "A6", "A8", "B1"),
    "KeepsTokensAtTakeover": _because(
        "a robber's hold is a takeover too, and it writes its record by name", "E18", "I2", "N1", "N2"
    ),
    "LeaksThread": _because("its threads outlive clients and managers too", "A6", "E7"),
    "LeavesOutTokens": _because("the table's own lock is among those whose tokens must grow", "F2a"),
    "LiesAboutWaiting": _because(
        "the manager does not poll who claims to wait", "D4", "D6", "D7", "D8", "D10c", "D11", "G5"
    ),
    "LosesAnswers": _because("an answer may be lost at any call", "H15"),
    "LosesRepeats": _because("it does not look at whose the record is, and removes by name", "H2", "H4", "H15"),
    "NamesNobody": _because("it names nobody either where another takes over", "B13", "E17", "E18"),
    "NeverReleases": {
        **_because("a released lock is not free", "A3", "A4", "A5", "A6", "A8", "B1", "B3", "B12", "C1", "C4", "C7"),
        **_because("a released lock is not free either", "C8", "D1", "D4", "D5", "D6", "D7", "D8", "D9", "D10a"),
        **_because("no more is one that was waited for", "D10b", "D10c", "E6", "E7", "E12", "G2", "G5", "G6", "H1"),
        **_because("nor one whose request failed", "H2", "H13", "H14", "J6", "L1", "L4", "N2"),
        **_because("it forgets its own hold, whoever asks for a release", "C9"),
    },
    "NotAtomic": {
        **_because("two that are inside have no order", "B8", "E16"),
        **_because("it looks, and then writes over what another one has made meanwhile", "E18"),
        **_because("it makes no link, so that no failure of one can be planted", "H1"),
    },
    "OneLockForAll": _because(
        "a check that holds two locks holds one",
        "A6",
        "A9",
        "B11",
        "B12",
        "E5",
        "E11",
        "E16",
        "E17",
        "G6",
        "H9c",
        "H13",
        "H15",
        "I5",
        "J1",
    ),
    "PunishesWaiting": _because(
        "whoever was refused is kept away", "B3", "B12", "D1", "D4", "D7", "E1", "E11", "G5", "I1", "J1"
    ),
    "RaisesRuntimeError": _because("an unexpected error comes out wherever one is planted", "H1", "H5", "H9c", "N1"),
    "RefusesWhenBusy": _because("a failure that would pass ends all waits", "H1", "H2", "H9c", "H13", "N1"),
    "ReadsTheClockOnce": {
        **_because("its record is over although it was made or renewed a moment ago", *_LIFE, "N1"),
        **_because("whatever it takes over is over already", "B13", "E16", "E17", "E18"),
    },
    "ReleasesAnything": _because("it deletes by name whatever the lease says", "B13", "C4", "C9", "H11", "H13", "H14"),
    "ReleasesWhatItReads": _because("it reads the record, and then removes by name", "B13"),
    "ReleasesTwiceBadly": {
        **_because("it deletes by name", "A4", "A6", "B13", "C3", "C4", "C5", "C9", "E17", "E18"),
        **_because("a close after a loss fails", "E1", "E8a", "E11", "E14", "E15", "E16", "F7", "I2", *_TAKEOVER),
        **_because("a release after a failure fails", "H9c", "H10", "H11", "H13", "H14", "H15", "N1"),
    },
    "RemembersTaken": _because("a lock that was refused is free by now", "B12", "D1", "D7", "E1", "E11", "G2"),
    "RenewsBlindly": _because("nobody tells a holder whose record is gone, or another's", "E8a", "E17", "H10", "H11"),
    "RenewsForAnybody": _because("it looks at no deadline either", "E5", "E17"),
    "RenewsNothing": {
        **_because("it renews what is over, gone or another's as well", *_RENEWAL, "E17", "H6", "N1"),
        **_because("its record ends although it was renewed", *_LIFE),
    },
    "RenewsOnce": _because("a living holder loses the lock at the second renewal", "E6", "E7", "H9c", "L9", *_LIFE),
    "RestartsTokens": _because("another client begins at one", "F2c", "F2e", "F4", "F8", "I2", "N2"),
    "ReusesTokens": {
        **_because("holds of one second have one token", "F2c", "F4", "N1", "N2"),
        **_because("its tokens are the time of a wall clock", "F8"),
    },
    "RevivesLost": {
        **_because("it renews what is over, gone or another's", *_RENEWAL, "E17", "H6", "H11", "N1"),
        **_because("it renews for a second, less than the manager's interval", *_LIFE, "C4", "E4", "E7"),
        **_because("a hold that was verified is lost at once", "L1", "L2", "L3", "L5", "L8"),
    },
    "RevivesRemoved": _because("its record is never gone", "H10"),
    "SharesAmongThreads": _because("it gives its hold to any other owner", "C9"),
    "ServesTheLast": _because("an earlier waiter starves", "D7", "G4"),
    "SparesOtherProcesses": _because("the manager's owner names this process, the contender another one", *_TAKEOVER),
    "StaysInLine": _because("whoever gave up stands before the others", "D6", "D7", "D8"),
    "StealsGarbage": _because("what is being made looks like garbage", "B2", "B3", "B8", "B10"),
    "TakesOverByName": _because(
        "it takes a lock over while its holder, sure that nobody can, removes or renews it", "B13", "E17"
    ),
    "TriesForEver": _because("it never says that a request failed", "H1", "H9c", "H15", "N1"),
    "Unreachable": {
        **_because("nobody can be asked who holds", "A3", "C7", "C8", "H13", "H14", "I5"),
        **_because("an ordinary life asks who holds", "L1", "L2", "L3", "L5", "L8"),
        **_because("nobody can be asked whose the lock is that was taken over", "B13", "E17", "E18"),
    },
    "WaitsWhenClosed": _because("a waiter that nobody wakes waits to its end, and those behind it as long", "D7", "D8"),
    "WaitsOnAndOn": _because("it waits longer than it was given", "D2", "D3", "D4", "D8", "D10c", "D11", "G2"),
    "WaitsTooLong": _because("it waits longer than it was given", "D3", "D4", "D10c", "D11", "G2", "G6"),
    "WakesAll": _because("of those who are woken together the quickest looks first", "D6", "D7", "D8", "G1"),
}
"""By name of the faulty class: check id and reason. `tests/kit` runs every quick check against every faulty class."""
