"""The secrets among a provider's options: those of Hudi's keys, those that it declares, and passwords within values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hudi_locks.config import redact

__all__ = ["find_secrets", "hide_secrets", "show_options"]

_HIDDEN: Final = "***"


def show_options(options: Mapping[str, object], declared: Collection[str]) -> dict[str, str]:
    """The options as they may be shown; of those that are `declared` as secrets, nothing is."""
    return {name: _HIDDEN if name in declared else shown for name, shown in redact(options).items()}


def find_secrets(options: Mapping[str, object], declared: Collection[str]) -> frozenset[str]:
    """The texts that no error, log or report may contain: what `show_options` hides."""
    shown = show_options(options, declared)
    return frozenset(text for name, value in options.items() for text in _compare(str(value), shown[name]) if text)


def _compare(value: str, shown: str) -> Iterable[str]:
    """What stands in the value where the shown one has stars."""
    hidden = re.fullmatch("(.+?)".join(map(re.escape, shown.split(_HIDDEN))), value, re.DOTALL)
    return hidden.groups() if hidden else ()


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text without them."""
    for found in sorted(secrets, key=len, reverse=True):
        text = text.replace(found, _HIDDEN)
    return text
