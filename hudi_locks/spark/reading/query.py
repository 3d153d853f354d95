"""What the options of a Hudi datasource job ask of a read."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks.config import Options, datasource_keys, find_key
from hudi_locks.errors import ConfigError

__all__ = ["ReadQuery", "leave_out_query"]

_START = "0"
"""Before every commit."""


@dataclass(frozen=True)
class ReadQuery:
    """One read.

    Attributes:
        kind: snapshot, read_optimized or incremental.
        moment: Requested time that a snapshot is read at; None for now.
        begin: Completion time after which an incremental read begins; "0" for the beginning of the table.
        end: Completion time with which it ends; None for now.
    """

    kind: str
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
        kind = options.get_value(datasource_keys.QUERY_TYPE).lower()
        if is_stream and not options.has(datasource_keys.QUERY_TYPE):
            kind = "incremental"
        moment, end = (options.find(key) for key in (datasource_keys.AS_OF_INSTANT, datasource_keys.END_INSTANT))
        _refuse_mixed(options, kind, moment)
        begin = options.find(datasource_keys.BEGIN_INSTANT)
        if is_stream:
            _refuse_bounded(options, kind)
        elif kind == "incremental":
            begin = options.get_value(datasource_keys.BEGIN_INSTANT)
        return cls(kind, moment, _START if begin in (None, "earliest") else str(begin), end)

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
    return Options({name: value for name, value in options.items() if find_key(name) not in datasource_keys.READ_KEYS})


def _refuse_mixed(options: Options, kind: str, moment: str | None) -> None:
    if not options.get_value(datasource_keys.FULL_SCAN):
        name = datasource_keys.FULL_SCAN.name
        message = f"{name}=false is not offered: rows of archived commits would be missing in silence; leave it out"
        raise ConfigError(message, key=name, value="false")
    spans = [key.name for key in (datasource_keys.BEGIN_INSTANT, datasource_keys.END_INSTANT) if options.has(key)]
    stray = spans if kind != "incremental" else []
    stray += [datasource_keys.AS_OF_INSTANT.name] if moment and kind != "snapshot" else []
    if stray:
        message = f"{stray[0]} has no meaning with {datasource_keys.QUERY_TYPE.name}={kind}; leave one of the two out"
        raise ConfigError(message, key=stray[0], value=options[stray[0]])


def _refuse_bounded(options: Options, kind: str) -> None:
    key = datasource_keys.QUERY_TYPE.name
    if kind != "incremental":
        message = f"{key}={kind} has no meaning for a stream, which shows what commits write; leave it out, or use read"
        raise ConfigError(message, key=key, value=kind)
    end = datasource_keys.END_INSTANT
    if options.has(end):
        message = f"{end.name} has no meaning for a stream, which goes on with each commit; leave it out, or use read"
        raise ConfigError(message, key=end.name, value=options[end.name])
