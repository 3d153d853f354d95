"""Group A, the names of scopes: two that differ in any way are two locks."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from hudi_locks import AlreadyHeld, Lease, LockError, LockProvider, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Violation, check

_LONG: Final = 300
"""Longer than a name of a file, of a node or of a key may be in most places."""
_COMPOSED: Final = unicodedata.normalize("NFC", "größe")
_DECOMPOSED: Final = unicodedata.normalize("NFD", "größe")


@dataclass(frozen=True)
class _Granted:
    client: LockProvider
    lease: Lease


@check("A9", "odd-names", why="two file groups whose names meet share a lock, and their writers queue for each other")
def odd_names(bench: Bench) -> None:
    """Scopes that differ by a slash, case, ending, accent or partition are refused, or are locks of their own.

    Each is asked for as an owner of its own, by two clients in turn, while all others are held.
    """
    granted, clients = list[_Granted](), [bench.provider(), bench.provider()]
    for number, scope in enumerate(_odd_scopes(bench.scope().file_id or "")):
        made = _ask(bench, clients[number % 2], scope, number)
        if made == "taken":
            raise Violation(f"{_shorten(scope)} is one lock with {_find_twin(bench, scope, granted)}")
        granted += [made] if isinstance(made, _Granted) else []
    bench.expect(granted, "every name was refused, the plain ones among them")
    for one in granted:
        one.client.release(one.lease)


def _ask(bench: Bench, client: LockProvider, scope: LockScope, number: int) -> _Granted | str:
    """The hold, or how it was denied: `taken` or `refused`."""
    try:
        lease = client.try_acquire(scope, bench.owner(f"name-{number}"), 0.0)
    except AlreadyHeld:
        return "taken"
    except (LockError, ValueError) as error:
        bench.note(f"refuses {_shorten(scope)}: {error}"[:200])
        return "refused"
    return "taken" if lease is None else _Granted(client, lease)


def _find_twin(bench: Bench, scope: LockScope, granted: list[_Granted]) -> str:
    """The scope that has to be let go of before this one is granted."""
    client = bench.provider()
    for one in granted:
        one.client.release(one.lease)
        if isinstance(_ask(bench, client, scope, -1), _Granted):
            return _shorten(one.lease.scope)
    return "one that nobody holds"


def _shorten(scope: LockScope) -> str:
    names = [name if len(name) < _LONG else f"{name[:8]}…{name[-40:]} ({len(name)} letters)" for name in _names(scope)]
    return f"({', '.join(map(ascii, names))})"


def _names(scope: LockScope) -> tuple[str, str]:
    return scope.partition or "", scope.file_id or ""


def _odd_scopes(tail: str) -> list[LockScope]:
    """Each differs from another one in one way only, which something might overlook."""
    long = "x" * _LONG
    pairs = [
        *[("plain", f"b-{tail}"), ("Plain", f"b-{tail}"), ("plain", f"B-{tail}")],  # case
        *[("other", f"b-{tail}"), ("", f"b-{tail}")],  # the file id alone
        *[("a/b", tail), ("a", f"b/{tail}"), ("", f"a/b/{tail}"), ("a/b/", tail), ("/a/b", tail), ("a//b", tail)],
        *[("a-b", tail), ("a_b", tail), ("a.b", tail), ("a:b", tail), ("a|b", tail), ("ab", tail)],  # separators
        *[("a", f"b-{tail}"), ("a-b-", tail), ("a", f"b_{tail}"), ("a", f"b:{tail}")],  # joined otherwise
        *[("a b", tail), ("a%20b", tail), ("a+b", tail), ("a%2Fb", tail), ("a\\b", tail)],  # escapes
        *[("a%b", tail), ("a_%", tail), ("a*b", tail), ("'a", tail), ("a;b", tail)],  # patterns and quotes
        *[(f"{_COMPOSED}=1", tail), (f"{_DECOMPOSED}=1", tail), ("日本", tail), ("日木", tail)],  # forms of Unicode
        *[("strasse", tail), ("straße", tail), ("ﬁ", tail), ("fi", tail)],  # folding
        *[(f"{long}a", tail), (f"{long}b", tail), (f"a{long}", tail), (f"b{long}", tail)],  # cut at either end
        *[("p", f"{long}{tail}a"), ("p", f"{long}{tail}b"), ("p", f"a{long}{tail}"), ("p", f"b{long}{tail}")],
        *[("x" * 1000, tail), ("..", tail), (".", tail), ("end ", tail), ("end", tail), ("end.", tail), (" end", tail)],
        *[("d=2024-01-01", tail), ("d=2024-01-1", tail), ("0", tail), ("00", tail), ("None", tail), ("null", tail)],
    ]
    return [LockScope.file_group(partition, file_id) for partition, file_id in pairs]
