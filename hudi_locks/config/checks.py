"""What is looked at before anything starts: misspelt keys, contradictions, secrets."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from hudi_locks.config import datasource_keys, index_keys, lock_keys, metrics_keys, table_keys, write_keys
from hudi_locks.config.key import Key
from hudi_locks.config.options import Options
from hudi_locks.config.registry import KEYS, find_key, nearest_key, strip_member
from hudi_locks.config.unused_keys import find_unused
from hudi_locks.errors import ConfigError, NoEffectWarning, UnknownKeyWarning

__all__ = [
    "check_options",
    "check_writer_options",
    "has_buckets",
    "is_lock_local",
    "list_contradictions",
    "redact",
    "refuse_contradictions",
    "refuse_options",
]

_PREFIXES: Final = ("hoodie.", "hudi_locks.")
_IN_PROCESS: Final = ("in_process", "inprocesslockprovider")
_LOCAL: Final = ("", *_IN_PROCESS)


def check_options(options: Mapping[str, object], *, known: Collection[str] = (), is_writer: bool = True) -> Options:
    """Check every key and value that a user gave, and return them.

    A slip of the pen in a key raises; a key that is merely unknown only warns, since Hudi has more than this package
    reads. Contradictions raise.

    Args:
        options: Keys as the user wrote them.
        known: Further names that are no slips: those that a provider of somebody else's declares.
        is_writer: Whether they are to do for a writer; what contradicts itself there does not concern a reader.

    Raises:
        ConfigError: With the key at fault, or the nearest known one.
    """
    checked = options if isinstance(options, Options) else Options(options)
    for name in checked:
        if name not in known:
            _check_name(strip_member(name))
    for key in map(find_key, checked):
        if key is not None:
            checked.find(key)
    if is_writer:
        refuse_contradictions(checked)
    return checked


def _check_name(name: str) -> None:
    if find_key(name) or not name.lower().startswith(_PREFIXES):
        return
    nearest, unused = nearest_key(name), find_unused(name)
    if nearest and nearest[1] and not (unused and name in unused.names):
        raise ConfigError(f"{name} is no known key; did you mean {nearest[0]}?", key=name, nearest=nearest[0])
    if unused:
        warnings.warn(f"{name} has no effect here: {unused.reason}", NoEffectWarning, stacklevel=3)
        return
    hint = f"; the nearest known one is {nearest[0]}" if nearest else ""
    warnings.warn(f"{name} is not read by this package{hint}", UnknownKeyWarning, stacklevel=3)


def redact(options: Mapping[str, object]) -> dict[str, str]:
    """The options as they may be shown; see `Options.redacted`."""
    return Options(options).redacted()


def check_writer_options(options: Options) -> None:
    """Refuse what a writer cannot do, and warn of what changes nothing: no option is passed over in silence.

    Raises:
        ConfigError: Naming the key, and the way out.
    """
    refuse_options(options, KEYS.values())
    for key in KEYS.values():
        if key.no_effect and (given := _find_other(options, key)) is not None:
            warnings.warn(f"{given} has no effect here: {key.no_effect}", NoEffectWarning, stacklevel=4)


def refuse_options(options: Options, keys: Iterable[Key[Any]]) -> None:
    """Refuse those of the keys that ask for what is not offered.

    Raises:
        ConfigError: Naming the key, and the way out.
    """
    for key in keys:
        if key.refusal and (given := _find_other(options, key)) is not None:
            message = f"{given}={options[given]} is not offered: {key.refusal}"
            raise ConfigError(message, key=given, value=options[given])


def _find_other(options: Options, key: Key[Any]) -> str | None:
    """The name under which a key was given with another value than those that ask for what happens anyway."""
    given = options.name_used(key)
    is_usual = given is None or options[given].strip().lower() in {value.lower() for value in key.accepted}
    return None if is_usual else given


def refuse_contradictions(options: Options) -> None:
    """Refuse keys that cannot hold together (most as Hudi's write config does when it is built).

    Raises:
        ConfigError: Naming both sides and the way out.
    """
    for check in _CONTRADICTIONS:
        check(options)


def list_contradictions(options: Options) -> tuple[str, ...]:
    """All that `refuse_contradictions` would refuse one after the other, in words."""
    return tuple(dict.fromkeys(filter(None, (_try(check, options) for check in _CONTRADICTIONS))))


def _try(check: Callable[[Options], None], options: Options) -> str:
    try:
        check(options)
    except ConfigError as error:
        return str(error)
    return ""


def _mode(options: Options) -> str:
    return options.get_value(write_keys.CONCURRENCY_MODE).upper()


def _refuse(message: str, *keys: Key[Any]) -> None:
    raise ConfigError(message, keys=tuple(key.name for key in keys))


def _check_two_names(options: Options) -> None:
    for key in filter(None, map(find_key, options)):
        given = {name: options[name].strip() for name in (key.name, *key.aliases) if name in options}
        if len({value.lower() for value in given.values()}) > 1:
            names = " and ".join(given)
            _refuse(f"{names} are names of one key and were given different values; keep {key.name}", key)


def _check_cleaning(options: Options) -> None:
    policy = write_keys.FAILED_WRITES_CLEANER_POLICY
    given = options.name_used(policy)
    if _mode(options) in write_keys.MULTI_WRITER_MODES and given and options.get_value(policy).upper() != "LAZY":
        _refuse(
            f"{given}={options[given]} would remove files of living writers, while"
            f" {write_keys.CONCURRENCY_MODE.name}={_mode(options)} lets several write; set it to LAZY",
            policy,
            write_keys.CONCURRENCY_MODE,
        )


def _check_provider_given(options: Options) -> None:
    if _mode(options) in write_keys.MULTI_WRITER_MODES and not options.find(lock_keys.PROVIDER):
        _refuse(
            f"{write_keys.CONCURRENCY_MODE.name}={_mode(options)} needs a lock and no {lock_keys.PROVIDER.name} is"
            " given; there is no default, choose one such as 'filesystem' or 'zookeeper'",
            write_keys.CONCURRENCY_MODE,
            lock_keys.PROVIDER,
        )


def is_lock_local(options: Options) -> bool:
    """Whether no lock keeps out writers of other processes: a single writer without one, or one of this process."""
    return _name_provider(options) in (_IN_PROCESS if _mode(options) in write_keys.MULTI_WRITER_MODES else _LOCAL)


def has_buckets(*given: Options) -> bool:
    """Whether the file group of a key follows from its bucket; then two writes of one bucket meet, whatever their ids.

    Not with consistent hashing, where all writers of a bucket know the one id of its file group.

    Args:
        given: Options of a writer and of a table, in the order in which they count: the first that names an index says.
    """
    naming = next((options for options in given if options.has(index_keys.INDEX_TYPE)), Options())
    is_simple = naming.get_value(index_keys.BUCKET_INDEX_ENGINE).upper() == "SIMPLE"
    return naming.get_value(index_keys.INDEX_TYPE).upper() == "BUCKET" and is_simple


def _name_provider(options: Options) -> str:
    """Short name or class of the lock provider, lower case, without its module; empty if none is given."""
    return re.split("[.:]", options.find(lock_keys.PROVIDER) or "")[-1].lower()


def _check_provider_excludes(options: Options) -> None:
    provider = _name_provider(options)
    if provider in ("noop", "nooplockprovider") and _mode(options) in write_keys.MULTI_WRITER_MODES:
        _refuse(
            f"{lock_keys.PROVIDER.name}={options[lock_keys.PROVIDER.name]} excludes nobody, while"
            f" {write_keys.CONCURRENCY_MODE.name}={_mode(options)} lets several write; choose a real provider",
            lock_keys.PROVIDER,
            write_keys.CONCURRENCY_MODE,
        )
    foreign = options.has(write_keys.FOREIGN_WRITERS) and options.get_value(write_keys.FOREIGN_WRITERS)
    if provider in _IN_PROCESS and foreign:
        _refuse(
            f"{lock_keys.PROVIDER.name}={options[lock_keys.PROVIDER.name]} excludes threads of this process only, while"
            f" {write_keys.FOREIGN_WRITERS.name}=true expects JVM writers; choose a provider that they see",
            lock_keys.PROVIDER,
            write_keys.FOREIGN_WRITERS,
        )


def _check_early_detection(options: Options) -> None:
    enabled = options.get_value(write_keys.EARLY_CONFLICT_DETECTION_ENABLE)
    if enabled and _mode(options) != write_keys.OPTIMISTIC:
        _refuse(
            f"{write_keys.EARLY_CONFLICT_DETECTION_ENABLE.name}=true works with"
            f" {write_keys.CONCURRENCY_MODE.name}={write_keys.OPTIMISTIC} only, not with {_mode(options)}",
            write_keys.EARLY_CONFLICT_DETECTION_ENABLE,
            write_keys.CONCURRENCY_MODE,
        )


_NON_BLOCKING_NEEDS: Final[tuple[tuple[Key[str], str], ...]] = (
    (table_keys.TABLE_TYPE, "MERGE_ON_READ"),
    (datasource_keys.WRITE_TABLE_TYPE, "MERGE_ON_READ"),
    (index_keys.INDEX_TYPE, "BUCKET"),
    (index_keys.BUCKET_INDEX_ENGINE, "SIMPLE"),
)


def _check_non_blocking(options: Options) -> None:
    if _mode(options) != write_keys.NON_BLOCKING:
        return
    for key, needed in _NON_BLOCKING_NEEDS:
        given = options.name_used(key)
        if given and options.get_value(key).upper() != needed:
            _refuse(
                f"{write_keys.CONCURRENCY_MODE.name}={write_keys.NON_BLOCKING} needs {key.name}={needed},"
                f" and {given}={options[given]} was given",
                write_keys.CONCURRENCY_MODE,
                key,
            )


def _check_waits(options: Options) -> None:
    least, most = lock_keys.WAIT_TIME_MS_BETWEEN_RETRY, lock_keys.MAX_WAIT_TIME_MS_BETWEEN_RETRY
    if options.has(least) and options.has(most) and options.get_value(least) > options.get_value(most):
        _refuse(
            f"{least.name}={options.get_value(least)} is above {most.name}={options.get_value(most)};"
            " the first pause cannot be longer than the longest",
            least,
            most,
        )


def _check_reporter(options: Options) -> None:
    asked = options.get_value(metrics_keys.REPORTER_TYPE).upper()
    if options.get_value(metrics_keys.METRICS_ON) and asked not in metrics_keys.REPORTERS:
        offered = ", ".join(metrics_keys.REPORTERS)
        _refuse(
            f"{metrics_keys.REPORTER_TYPE.name}={asked} is not offered: use one of {offered}, or set"
            f" {metrics_keys.METRICS_ON.name} to false",
            metrics_keys.REPORTER_TYPE,
        )


def _check_storage_lease(options: Options) -> None:
    lease, interval = lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS, lock_keys.STORAGE_RENEW_INTERVAL_SECS
    if options.get_value(lease) < 10 * options.get_value(interval):
        _refuse(
            f"{lease.name}={options.get_value(lease)} is below ten times"
            f" {interval.name}={options.get_value(interval)}; a lease must outlast ten renewals",
            lease,
            interval,
        )


_CONTRADICTIONS: Final[tuple[Callable[[Options], None], ...]] = (
    _check_two_names,
    _check_cleaning,
    _check_provider_given,
    _check_provider_excludes,
    _check_early_detection,
    _check_non_blocking,
    _check_waits,
    _check_reporter,
    _check_storage_lease,
)
