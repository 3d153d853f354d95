"""Lifecycle rules of an S3 bucket: which of them remove a lock, and which end uploads that nobody completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["ABORT_DAYS", "find_abort_days", "find_harmful", "make_abort_rule", "say_abort_rule"]

ABORT_DAYS: Final = 7
"""Longer than any write takes: one whose upload is ended is rolled back."""
_ABORT: Final = "AbortIncompleteMultipartUpload"
_DAYS: Final = "DaysAfterInitiation"
_Rule = Mapping[str, Any]


def find_harmful(rules: Sequence[_Rule], kept: Sequence[str]) -> str:
    """The name of a rule that removes one of these keys by its age; "" if none does.

    A rule for tagged objects is none: ours have no tags.
    """
    for rule in _list_enabled(rules):
        if _expires(rule) and not _is_tagged(rule) and any(key.startswith(_prefix(rule)) for key in kept):
            return str(rule.get("ID") or f"for {_prefix(rule) or 'all objects'}")
    return ""


def find_abort_days(rules: Sequence[_Rule], prefix: str) -> int | None:
    """After how many days uploads below `prefix` are ended that nobody completed; None if they never are."""
    days = [
        int(rule[_ABORT][_DAYS])
        for rule in _list_enabled(rules)
        if rule.get(_ABORT) and f"{prefix}/".startswith(_prefix(rule))
    ]
    return min(days, default=None)


def make_abort_rule(prefix: str) -> dict[str, Any]:
    """A rule that ends uploads below `prefix` which nobody completed."""
    return {
        "ID": f"hudi-locks: uploads of {prefix or 'all'} that nobody completed"[:255],
        "Status": "Enabled",
        "Filter": {"Prefix": f"{prefix}/" if prefix else ""},
        _ABORT: {_DAYS: ABORT_DAYS},
    }


def say_abort_rule(days: int) -> str:
    """What the rule does, for a person."""
    return f"{_ABORT} after {days} days"


def _list_enabled(rules: Sequence[_Rule]) -> list[_Rule]:
    return [rule for rule in rules if rule.get("Status") == "Enabled"]


def _expires(rule: _Rule) -> bool:
    expiry = rule.get("Expiration") or {}
    return bool(expiry.get("Days") or expiry.get("Date"))


def _limits(rule: _Rule) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = rule.get("Filter") or {}
    joined: Mapping[str, Any] | None = limits.get("And")
    return limits if joined is None else joined


def _prefix(rule: _Rule) -> str:
    """Of the keys that it is for; old rules have it outside the filter."""
    return str(_limits(rule).get("Prefix") or rule.get("Prefix") or "")


def _is_tagged(rule: _Rule) -> bool:
    return bool(_limits(rule).get("Tag") or _limits(rule).get("Tags"))
