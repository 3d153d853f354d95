"""Each key that counts for a writer: its value, where that comes from, what it overruled, and what it does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_locks.cli.options import TABLE_ITSELF, Given, OverruledValue
from hudi_locks.config import (
    Key,
    Options,
    check_options,
    check_writer_options,
    find_key,
    index_keys,
    lock_keys,
    own_name,
    redact,
    table_keys,
    write_keys,
)
from hudi_locks.errors import BadInput, ConfigError, NoEffectWarning, UnknownKeyWarning
from hudi_locks.format.properties import decode_properties
from hudi_locks.lock import Capability, LockProvider
from hudi_locks.redaction import HIDDEN
from hudi_locks.spark.index_options import read_index_type, take_index_of, warn_of_other_indexes
from hudi_locks.spark.table_options import LAYOUT_KEYS, refuse_other_table
from hudi_locks.table import PROPERTIES_PATH, Table
from hudi_locks.transaction.settings import WriterSettings

__all__ = ["ExplainedKey", "explain_keys"]

_HONOURED: Final = "honoured"
_REFUSED: Final = "refused"
_IDLE: Final = "no effect"
_UNKNOWN: Final = "unknown"
_DEFAULT: Final = "default"
_WAITS: Final[tuple[Key[Any], ...]] = (
    *lock_keys.WAIT_KEYS,
    lock_keys.HEARTBEAT_INTERVAL_MS,
)
_OF_REQUESTS: Final[tuple[Key[Any], ...]] = (
    lock_keys.NUM_RETRIES,
    lock_keys.WAIT_TIME_MS_BETWEEN_RETRY,
    lock_keys.MAX_WAIT_TIME_MS_BETWEEN_RETRY,
)
_WRITING: Final[tuple[Key[Any], ...]] = (
    write_keys.CONCURRENCY_MODE,
    write_keys.FAILED_WRITES_CLEANER_POLICY,
    write_keys.NUM_RETRIES_ON_CONFLICT_FAILURES,
    write_keys.EARLY_CONFLICT_DETECTION_ENABLE,
    write_keys.FOREIGN_WRITERS,
    write_keys.HEARTBEAT_INTERVAL_IN_MS,
    write_keys.HEARTBEAT_TOLERABLE_MISSES,
    write_keys.MAX_EXPECTED_CLOCK_SKEW_MS,
    write_keys.MAX_CLOCK_DRIFT_MS,
    write_keys.MARKERS_TYPE,
    lock_keys.CONFLICT_RESOLUTION_STRATEGY,
    index_keys.INDEX_TYPE,
)
"""With the waits above, the keys whose defaults decide how writers of one table get along."""
_OF_TABLE: Final[tuple[Key[Any], ...]] = (
    *LAYOUT_KEYS,
    write_keys.FOREIGN_WRITERS,
    table_keys.TABLE_NAME,
    table_keys.TABLE_TYPE,
    table_keys.TABLE_VERSION,
    table_keys.RECORDKEY_FIELDS,
    table_keys.ORDERING_FIELDS,
    table_keys.METADATA_PARTITIONS,
)
"""What a table remembers that all of its writers must go by; `hudi-locks table` shows the rest of it."""
_BY_WRITER: Final[tuple[Key[Any], ...]] = (index_keys.INDEX_TYPE, table_keys.METADATA_ENABLE)
"""Options that count beside what the table says, unless they are refused."""


@dataclass(frozen=True)
class ExplainedKey:
    """A key that was given somewhere, or whose default matters for locks and concurrent writes.

    Attributes:
        key: By its own name.
        value: What counts; hidden if it is a secret.
        origin: Where it was given, and as which alias; `default` if nowhere.
        effect: `honoured`, `no effect`, `refused`, or `unknown`, as a writer takes it.
        note: Why, and the way out; "" where nothing has to be said.
        overruled: What other places said, the one with the least weight first.
    """

    key: str
    value: str
    origin: str
    effect: str
    note: str
    overruled: tuple[OverruledValue, ...]


def explain_keys(given: Given, provider: LockProvider | None, table: Table | None) -> tuple[ExplainedKey, ...]:
    """All keys that count, by their names.

    Args:
        given: What the user gave.
        provider: That of the options; None if they name none, or it refuses them.
        table: The table that is there; None for none.

    Raises:
        DamagedTable: The table's properties cannot be read.
        StorageError: The store failed.
    """
    rows = {row.key: row for row in _explain_given(given, provider, table)}
    if table is not None:
        for own, (value, origin) in _read_properties(table, rows).items():
            rows[own] = _settle(rows.get(own), own, value, origin)
    for key, value, origin in _list_defaults(given, provider, table):
        rows.setdefault(key.name, ExplainedKey(key.name, value, origin, _HONOURED, "", ()))
    idle = dict(_list_idle(given, provider, table))
    return tuple(_mark_idle(rows[name], idle.get(name, "")) for name in sorted(rows))


def _explain_given(given: Given, provider: LockProvider | None, table: Table | None) -> Iterator[ExplainedKey]:
    declared = () if provider is None else (*provider.short_options.values(), *provider.secret_options)
    secret = () if provider is None else provider.secret_options
    for name, shown in redact(given.options).items():
        own = own_name(name)
        effect, note = _judge(name, given.options[name], declared, table)
        origin = given.origins[name] if name == own else f"{given.origins[name]}, as {name}"
        lost = tuple(_veil(one, secret) for one in given.overruled if own_name(one.name) == own)
        yield ExplainedKey(own, HIDDEN if name in secret else shown, origin, effect, note, lost)


def _veil(one: OverruledValue, secret: Collection[str]) -> OverruledValue:
    return replace(one, value=HIDDEN) if one.name in secret else one


def _judge(name: str, value: str, declared: Collection[str], table: Table | None) -> tuple[str, str]:
    """What a writer makes of one option alone, and why."""
    single = Options({name: value})

    def check() -> None:
        check_options(single, known=declared, is_writer=False)
        check_writer_options(single)
        read_index_type(single)
        if table is not None:
            refuse_other_table(single, table.config, table.storage.base)
            take_index_of(table.config, single)

    refusal, heard = _try(check)
    if refusal:
        return _REFUSED, refusal
    for category, effect in ((NoEffectWarning, _IDLE), (UnknownKeyWarning, _UNKNOWN)):
        if found := next((str(one.message) for one in heard if issubclass(one.category, category)), ""):
            return effect, found
    if find_key(name) is None and name not in declared:
        return _UNKNOWN, f"{name} is no key of Hudi's or of this package's"
    return _HONOURED, ""


def _try(check: Callable[[], object]) -> tuple[str, list[warnings.WarningMessage]]:
    """What a check refuses, "" if nothing, and what it warns of."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            check()
        except (ConfigError, BadInput) as error:
            return str(error), heard
    return "", heard


def _read_properties(table: Table, given: Collection[str]) -> Mapping[str, tuple[str, str]]:
    """What the table says of itself, and where, of keys that decide how writers get along, or that were given."""
    data, origin = table.storage.read(PROPERTIES_PATH), f"{table.storage.base}/{PROPERTIES_PATH}"
    found = table.properties if data is None else decode_properties(data, PROPERTIES_PATH)
    said = {own_name(name): (value, origin) for name, value in redact(found).items()}
    foreign = write_keys.FOREIGN_WRITERS
    said.setdefault(foreign.name, (_show_default(foreign), f"{origin}, by its default"))
    return {name: said[name] for name in said if name in given or find_key(name) in _OF_TABLE}


def _settle(row: ExplainedKey | None, own: str, value: str, origin: str) -> ExplainedKey:
    """Which of the two counts, the option of a writer or what the table says of itself."""
    if row is None or row.origin == TABLE_ITSELF:
        return ExplainedKey(own, value, origin, _HONOURED, "", () if row is None else row.overruled)
    if row.effect == _REFUSED or find_key(own) in _BY_WRITER:
        return replace(row, overruled=(OverruledValue(origin, own, value), *row.overruled))
    overruled = (*row.overruled, OverruledValue(row.origin, own, row.value))
    return ExplainedKey(own, value, origin, row.effect, row.note, overruled)


def _list_defaults(
    given: Given, provider: LockProvider | None, table: Table | None
) -> Iterator[tuple[Key[Any], str, str]]:
    """Keys with a default that counts, the value, and what that default rests on."""
    settings = _read_settings(given, table)
    for key in _WRITING:
        if key.default is None:
            continue
        value = "" if settings is None else str(settings.get(key.name, ""))
        is_usual = value.lower() in ("", str(key.default).lower())
        yield key, value or _show_default(key), _DEFAULT if is_usual else f"{_DEFAULT} for this writer"
    if provider is None:
        return
    named = filter(None, map(find_key, provider.short_options.values()))
    for key in (*_WAITS, *(key for key in named if key.default is not None)):
        yield key, _show_default(key), _DEFAULT


def _show_default(key: Key[Any]) -> str:
    return str(key.default).lower() if key.kind is bool else str(key.default)


def _read_settings(given: Given, table: Table | None) -> Mapping[str, object] | None:
    """Where a default follows from other options: what a writer goes by. None if the options cannot be used."""
    properties = {} if table is None else table.config.extra
    try:
        found = WriterSettings.of(given.options, properties)
    except ConfigError:
        return None
    return {
        write_keys.FAILED_WRITES_CLEANER_POLICY.name: found.failed_writes_policy,
        write_keys.MAX_EXPECTED_CLOCK_SKEW_MS.name: found.skew_ms,
    }


def _list_idle(given: Given, provider: LockProvider | None, table: Table | None) -> Iterator[tuple[str, str]]:
    """Keys that do not count beside the others, each with the reason."""
    options = Options(given.options)

    def check() -> None:
        warn_of_other_indexes(options, options if table is None else take_index_of(table.config, options))

    for one in _try(check)[1]:
        yield own_name(str(one.message).partition(" ")[0]), str(one.message)
    if provider is None:
        return
    if Capability.TIMED_WAIT in provider.capabilities:
        yield from ((key.name, "the lock provider waits at the service itself") for key in _OF_REQUESTS)
    if (renewal_s := provider.renewal_interval_s) is not None:
        yield lock_keys.HEARTBEAT_INTERVAL_MS.name, f"the lock provider renews a hold every {renewal_s:g} s"


def _mark_idle(row: ExplainedKey, why: str) -> ExplainedKey:
    return replace(row, effect=_IDLE, note=why) if why and row.effect == _HONOURED else row
