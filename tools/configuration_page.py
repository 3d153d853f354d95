"""Write the tables of keys into docs/configuration.md.

python tools/configuration_page.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

from hudi_locks.config import (
    UNUSED_KEYS,
    Key,
    UnusedKeys,
    catalog_keys,
    clustering_keys,
    compaction_keys,
    datasource_keys,
    file_keys,
    index_keys,
    ingest_keys,
    lock_keys,
    metrics_keys,
    read_keys,
    security_keys,
    service_keys,
    table_keys,
    time_partition_keys,
    write_keys,
)

__all__ = ["PAGE", "render_page"]

PAGE: Final = Path(__file__).parents[1] / "docs" / "configuration.md"
_SECTIONS: Final[Mapping[str, tuple[ModuleType, ...]]] = MappingProxyType(
    {
        "Locks and lock services": (lock_keys, security_keys),
        "Concurrent writing": (write_keys,),
        "Table properties": (table_keys,),
        "Clustering": (clustering_keys,),
        "Table services": (service_keys, compaction_keys),
        "Writing and reading rows": (datasource_keys, read_keys, time_partition_keys, file_keys, index_keys),
        "Ingest jobs": (ingest_keys,),
        "Metrics": (metrics_keys,),
        "Catalogs": (catalog_keys,),
    }
)
_UNUSED: Final = "Keys of JVM Hudi that change nothing here"
_UNUSED_HEAD: Final = "| about | keys | why |\n|---|---|---|\n"
_HEAD: Final = "| key | type | default | since | meaning | here |\n|---|---|---|---|---|---|\n"


def render_page(text: str) -> str:
    """The page with its tables as the keys are declared; all else stays."""
    for title, table in _render_tables():
        text, found = re.subn(
            rf"(^## {title}\n(?:(?!^## |^\|).*\n)*)(?:\|.*\n)+", rf"\1{_quote(table)}", text, flags=re.MULTILINE
        )
        if not found:
            raise ValueError(f"{PAGE.name} has no table under {title!r}")
    return text


def _render_tables() -> Iterator[tuple[str, str]]:
    for title, modules in _SECTIONS.items():
        keys = {key.name: key for module in modules for key in vars(module).values() if isinstance(key, Key)}
        yield title, _HEAD + "".join(_render_row(keys[name]) + "\n" for name in sorted(keys))
    yield _UNUSED, _render_unused()


def _render_unused() -> str:
    rows = (f"| {keys.topic} | {', '.join(_name_keys(keys))} | {keys.reason} |\n" for keys in UNUSED_KEYS)
    return _UNUSED_HEAD + "".join(rows)


def _name_keys(keys: UnusedKeys) -> list[str]:
    return [f"`{prefix}*`" for prefix in keys.prefixes] + [f"`{name}`" for name in keys.names]


def _quote(table: str) -> str:
    return table.replace("\\", r"\\")


def _render_row(key: Key[Any]) -> str:
    shown = str(key.default).lower() if isinstance(key.default, bool) else key.default
    default = "" if shown is None else "empty" if shown == "" else f"`{shown}`"
    return f"| `{key.name}` | {key.kind.__name__} | {default} | {key.since} | {_describe(key)} | {_tell_effect(key)} |"


def _describe(key: Key[Any]) -> str:
    parts = [key.doc]
    if key.choices:
        parts.append(f"one of {', '.join(key.choices)}")
    if key.aliases:
        parts.append("also " + ", ".join(f"`{alias}`" for alias in key.aliases))
    return "; ".join([*parts, *(["secret"] if key.secret else [])])


def _tell_effect(key: Key[Any]) -> str:
    why = key.refusal or key.no_effect
    if not why:
        return "honoured"
    but = f" unless {' or '.join(f'`{value}`' for value in key.accepted)}" if key.accepted else ""
    return f"{key.effect}{but}: {why}"


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
