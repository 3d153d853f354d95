"""A renamed public name stays for a while, and says so."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from hudi_locks import LockManager
from hudi_locks.deprecation import RenamedMember, forward_renamed

RENAMED = {"Old": "New", "Moved": "hudi_locks:LockManager"}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One that has renamed a name of its own and moved another."""
    made = ModuleType("renaming")
    vars(made).update(New=int, __getattr__=forward_renamed("renaming", RENAMED, removed_in="0.3.0"))
    monkeypatch.setitem(sys.modules, "renaming", made)
    return made


@pytest.mark.parametrize(
    ("old", "new", "found"), [("Old", "renaming.New", int), ("Moved", "hudi_locks.LockManager", LockManager)]
)
def test_an_old_name_warns_and_gives_what_the_new_one_is(module: ModuleType, old: str, new: str, found: object) -> None:
    text = rf"^renaming\.{old} is now {new}; the old name goes in 0\.3\.0$"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert getattr(module, old) is found
    assert caught[0].filename == __file__


def test_the_new_name_warns_of_nothing(module: ModuleType) -> None:
    assert module.New is int


def test_a_name_that_never_was_is_missing_as_everywhere(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'renaming' has no attribute 'Other'"):
        _ = module.Other


class Renaming:
    """Has a method under two names."""

    old = RenamedMember("double", removed_in="0.3.0")

    def double(self, number: int) -> int:
        """Twice the number."""
        return 2 * number


def test_an_old_member_warns_where_it_is_used_and_does_what_the_new_one_does() -> None:
    with pytest.warns(DeprecationWarning, match=r"^Renaming\.old is now Renaming\.double; .* in 0\.3\.0$") as caught:
        assert Renaming().old(4) == 8
    assert caught[0].filename == __file__


def test_a_member_that_the_class_never_had_is_missing() -> None:
    with pytest.warns(DeprecationWarning, match="nothing"), pytest.raises(AttributeError, match="nothing"):
        _ = type("Renaming", (), {"old": RenamedMember("nothing", removed_in="0.3.0")})().old
