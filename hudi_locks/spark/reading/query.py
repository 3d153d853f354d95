"""What the options of a Hudi datasource job ask of a read."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks.config import Options, find_key, read_keys, refuse_options
from hudi_locks.errors import ConfigError

__all__ = ["ReadQuery", "asks_for_changes", "leave_out_query"]

_START = "0"
"""Before every commit."""
_CDC = "cdc"


@dataclass(frozen=True)
class ReadQuery:
    """One read.

    Attributes:
        kind: snapshot, read_optimized or incremental.
        is_cdc: Whether an incremental read shows what each commit made of each row.
        moment: Requested time that a snapshot is read at; None for now.
        begin: Completion time after which an incremental read begins; "0" for the beginning of the table.
        end: Completion time with which it ends; None for now.
    """

    kind: str
    is_cdc: bool
    moment: str | None
    begin: str
    end: str | None

    @classmethod
    def of(cls, options: Options, *, is_stream: bool = False) -> ReadQuery:
        """What these options ask.

        Args:
            options: As the user gave them.
            is_stream: Whether a stream is asked for: it is incremental, has no end, and begins where the table does
                unless the options say it.

        Raises:
            ConfigError: One is malformed or missing, or two contradict each other.
        """
        refuse_options(options, read_keys.REFUSED_READ_KEYS)
        kind = options.get_value(read_keys.QUERY_TYPE).lower()
        if is_stream and not options.has(read_keys.QUERY_TYPE):
            kind = "incremental"
        moment, end = (options.find(key) for key in (read_keys.AS_OF_INSTANT, read_keys.END_INSTANT))
        _refuse_mixed(options, kind, moment)
        begin = _find_stream_start(options, kind) if is_stream else _find_start(options, kind)
        return cls(kind, asks_for_changes(options), moment, _START if begin in (None, "earliest") else str(begin), end)

    @property
    def is_incremental(self) -> bool:
        """Whether it shows what commits of a span wrote."""
        return self.kind == "incremental"

    @property
    def is_read_optimized(self) -> bool:
        """Whether it shows base files alone."""
        return self.kind == "read_optimized"


def leave_out_query(options: Options) -> Options:
    """The options that say how a table is reached and read, whatever is asked of it."""
    return Options({name: value for name, value in options.items() if find_key(name) not in read_keys.READ_KEYS})


def _refuse_mixed(options: Options, kind: str, moment: str | None) -> None:
    spans = [key.name for key in (read_keys.BEGIN_INSTANT, read_keys.END_INSTANT) if options.has(key)]
    spans += [read_keys.INCREMENTAL_FORMAT.name] if asks_for_changes(options) else []
    stray = spans if kind != "incremental" else []
    stray += [read_keys.AS_OF_INSTANT.name] if moment and kind != "snapshot" else []
    if stray:
        message = f"{stray[0]} has no meaning with {read_keys.QUERY_TYPE.name}={kind}; leave one of the two out"
        raise ConfigError(message, key=stray[0], value=options[stray[0]])


def asks_for_changes(options: Options) -> bool:
    """Whether what each commit made of each row is asked for (`hoodie.datasource.query.incremental.format=cdc`)."""
    return options.get_value(read_keys.INCREMENTAL_FORMAT).lower() == _CDC


def _find_start(options: Options, kind: str) -> str | None:
    """Where a read begins that is no stream."""
    start = read_keys.STREAM_START
    if name := options.name_used(start):
        message = f"{name} has no meaning for a read, which begins after {read_keys.BEGIN_INSTANT.name}; leave it out"
        raise ConfigError(message, key=start.name, value=options[name])
    return options.get_value(read_keys.BEGIN_INSTANT) if kind == "incremental" else None


def _find_stream_start(options: Options, kind: str) -> str | None:
    _refuse_bounded(options, kind)
    key = read_keys.STREAM_START
    found = options.find(key)
    if found is not None and found.lower() == "latest":
        message = f"{key.name}={found} is not offered: give the completion time after which the stream begins"
        raise ConfigError(message, key=key.name, value=found)
    return options.find(read_keys.BEGIN_INSTANT) or found


def _refuse_bounded(options: Options, kind: str) -> None:
    key = read_keys.QUERY_TYPE.name
    if kind != "incremental":
        message = f"{key}={kind} has no meaning for a stream, which shows what commits write; leave it out, or use read"
        raise ConfigError(message, key=key, value=kind)
    end = read_keys.END_INSTANT
    if options.has(end):
        message = f"{end.name} has no meaning for a stream, which goes on with each commit; leave it out, or use read"
        raise ConfigError(message, key=end.name, value=options[end.name])
