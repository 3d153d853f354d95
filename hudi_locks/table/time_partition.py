"""Partition folders that are named by formatted times (Hudi's TimestampBasedKeyGenerator): what the options say."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from hudi_locks.config import Key, Options, datasource_keys, time_partition_keys
from hudi_locks.errors import ConfigError
from hudi_locks.table.config import TableConfig
from hudi_locks.table.zone import find_zone

__all__ = ["TimeField", "TimePartition", "TimePattern", "find_zone_name"]

_NUMBERS: Final = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_SCALAR: Final = "SCALAR"
_TEXTS: Final = ("DATE_STRING", "MIXED")
_TYPES: Final = (*_NUMBERS, _SCALAR, *_TEXTS)
_TOKEN: Final = re.compile(
    r"(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|''|'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^A-Za-z']+)"
)
_WRITTEN: Final = frozenset("yYxMdDweHkhKmsS")
"""Letters of a folder that are numbers; names of months and days depend on the language of a machine."""
_READ: Final = frozenset("yYMdHmsSZ")
_YEAR: Final = 4
"""How many letters a year has in a pattern that reads texts."""
_OFFSET: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?([0-5]\d))?")
_ZONES: Final = (time_partition_keys.ZONE, time_partition_keys.INPUT_ZONE, time_partition_keys.OUTPUT_ZONE)
_UTC: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Zulu")


@dataclass(frozen=True)
class TimeField:
    """So many times the same letter in a pattern."""

    letter: str
    width: int


@dataclass(frozen=True)
class TimePattern:
    """A pattern of Joda-Time: fields of a time, and texts between them."""

    parts: tuple[TimeField | str, ...]

    @classmethod
    def parse(cls, text: str, letters: Collection[str], *, asked: str) -> TimePattern:
        """The pattern that a text is.

        Args:
            text: Letters for fields, other signs for themselves; letters in single quotes for themselves.
            letters: Those that are offered.
            asked: The option, for an error.

        Raises:
            ConfigError: A quote is not closed, or a letter, or so many of it, is not offered.
        """
        found = list(_TOKEN.finditer(text))
        if not text or "".join(match[0] for match in found) != text:
            raise ConfigError(f"{asked} is no pattern of times such as yyyy/MM/dd", key=asked.partition("=")[0])
        return cls(tuple(_read_part(match, letters, asked) for match in found))

    @property
    def fields(self) -> tuple[TimeField, ...]:
        """Its fields, in order."""
        return tuple(part for part in self.parts if isinstance(part, TimeField))

    def render_epoch(self, zone: tzinfo) -> str:
        """How it writes the first millisecond of 1970 (UTC) in a zone: Hudi's time where there is none."""
        time = datetime.fromtimestamp(0, timezone.utc).astimezone(zone)
        texts = (part if isinstance(part, str) else _render(part, time) for part in self.parts)
        return "".join(texts)


def _read_part(match: re.Match[str], letters: Collection[str], asked: str) -> TimeField | str:
    if not match["letters"]:
        return (match["quoted"] or match["plain"] or "'").replace("''", "'")
    field = TimeField(match["letter"], len(match[0]))
    is_named = field.letter == "M" and field.width > 2  # the name of a month
    if field.letter not in letters or is_named:
        offered = " ".join(sorted(letters, key=str.lower))
        message = f"{asked}: {match[0]} is not offered, since only numbers are alike on all machines; use {offered}"
        raise ConfigError(message, key=asked.partition("=")[0])
    return field


def _render(field: TimeField, time: datetime) -> str:
    if field.letter == "S":
        return "001".ljust(field.width, "0")[: field.width]
    if field.letter == "Z":
        return time.strftime("%z")[:5]
    values = {"M": time.month, "d": time.day, "H": time.hour, "m": time.minute, "s": time.second}
    return str(values.get(field.letter, time.year)).zfill(field.width)


@dataclass(frozen=True)
class TimePartition:
    """How values of a partition column become folders.

    Attributes:
        kind: What the values are, as Hudi names it.
        unit: Of numbers; "" for texts.
        inputs: Patterns of texts.
        input_zone: Of texts that name none; None: that of the machine.
        output: Pattern of folders.
        output_zone: Of folders; None: that of each text, of numbers that of the machine.
    """

    kind: str
    unit: str
    inputs: tuple[TimePattern, ...]
    input_zone: str | None
    output: TimePattern
    output_zone: str | None

    @classmethod
    def of(cls, options: Options, config: TableConfig) -> TimePartition | None:
        """That of a table; what its properties say goes before the options of a writer.

        Returns:
            None if no folder of the table is named by a time.

        Raises:
            ConfigError: An option is missing, malformed or not offered.
        """
        if not config.time_fields:
            return None
        remembered = _list_properties(config)
        found = cls._read(options | remembered)
        if found != cls._read(_select_options(options, remembered)):
            raise _refuse_others(options, remembered)
        if not config.url_encode and any(":" in part for part in found.output.parts if isinstance(part, str)):
            key = time_partition_keys.OUTPUT_FORMAT.name
            message = f"{key}: Hadoop opens no folder with a colon in its name; use another sign, or set"
            raise ConfigError(f"{message} {datasource_keys.PARTITIONPATH_URLENCODE.name}=true at creation", key=key)
        return found

    @classmethod
    def _read(cls, options: Options) -> TimePartition:
        key = time_partition_keys.TIMESTAMP_TYPE
        kind = options.get_value(key)
        if kind not in _TYPES:
            raise ConfigError(f"{key.name}={kind} is none of {', '.join(_TYPES)}", key=key.name)
        unit = (
            options.get_value(time_partition_keys.SCALAR_TIME_UNIT).upper()
            if kind == _SCALAR
            else _NUMBERS.get(kind, "")
        )
        shared = _read_zone(options, time_partition_keys.ZONE)
        return cls(
            kind,
            unit,
            inputs=() if unit else tuple(_read_inputs(options)),
            input_zone=shared or _read_zone(options, time_partition_keys.INPUT_ZONE),
            output=_read_pattern(options, time_partition_keys.OUTPUT_FORMAT, _WRITTEN),
            output_zone=shared or _read_zone(options, time_partition_keys.OUTPUT_ZONE),
        )

    @property
    def takes_texts(self) -> bool:
        """Whether values are texts, and not numbers."""
        return not self.unit

    @property
    def needs_machine_zone(self) -> bool:
        """Whether nobody said the zone of numbers' folders, or of texts whose folders are in a zone that is said."""
        if self.unit:
            return self.output_zone is None
        return self.input_zone is None and self.output_zone is not None and not all(map(_has_zone, self.inputs))

    @property
    def missing_text(self) -> str:
        """What stands for null among texts."""
        zone = self.input_zone or self.output_zone
        return self.inputs[0].render_epoch(_open_zone(zone or "UTC"))


def _has_zone(pattern: TimePattern) -> bool:
    return any(field.letter == "Z" for field in pattern.fields)


def _list_properties(config: TableConfig) -> dict[str, str]:
    found = {key.name: Options(config.extra).name_used(key) for key in time_partition_keys.TIME_PARTITION_KEYS}
    return {name: config.extra[used] for name, used in found.items() if used}


def _select_options(options: Options, remembered: Mapping[str, str]) -> Options:
    """What counts of a writer's options: all where the table remembers none, else zones where it remembers none."""
    if time_partition_keys.TIMESTAMP_TYPE.name not in remembered:
        return options | remembered
    zones = {} if any(key.name in remembered for key in _ZONES) else {key.name: options.find(key) for key in _ZONES}
    return Options({**zones, **remembered})


def _refuse_others(options: Options, remembered: Mapping[str, str]) -> ConfigError:
    given = [options.name_used(key) for key in time_partition_keys.TIME_PARTITION_KEYS if key.name not in remembered]
    name = next(filter(None, given))
    message = f"{name}={options[name]}, but the table was made without it, and its rows lie accordingly; leave it out"
    return ConfigError(message, key=name, value=options[name])


def _read_inputs(options: Options) -> Sequence[TimePattern]:
    key = time_partition_keys.INPUT_FORMAT
    delimiter = options.get_value(time_partition_keys.INPUT_FORMAT_DELIMITER)
    try:
        texts = re.split(delimiter, options.get_value(key))
    except re.error as error:
        name = time_partition_keys.INPUT_FORMAT_DELIMITER.name
        raise ConfigError(f"{name}={delimiter} is no regular expression: {error}", key=name) from error
    patterns = [TimePattern.parse(text.strip(), _READ, asked=f"{key.name}={text.strip()}") for text in texts]
    for text, pattern in zip(texts, patterns, strict=True):
        _check_readable(pattern, f"{key.name}={text.strip()}", key)
    return patterns


def _check_readable(pattern: TimePattern, asked: str, key: Key[str]) -> None:
    letters = ["y" if field.letter == "Y" else field.letter for field in pattern.fields]
    years = [field.width for field in pattern.fields if field.letter in "yY"]
    if years != [_YEAR] or len(set(letters)) < len(letters):
        raise ConfigError(f"{asked}: a year as yyyy, and each field once, is wanted", key=key.name)


def _read_pattern(options: Options, key: Key[str], letters: Collection[str]) -> TimePattern:
    text = options.get_value(key)
    return TimePattern.parse(text, letters, asked=f"{key.name}={text}")


def _read_zone(options: Options, key: Key[str]) -> str | None:
    name = (options.find(key) or "").strip()
    return find_zone_name(name, asked=key.name) if name else None


def find_zone_name(name: str, *, asked: str) -> str:
    """How Spark and Python name a zone that java.util.TimeZone has: UTC, +08:00 or an IANA name.

    Raises:
        ConfigError: Java knows none of that name (and takes GMT), or another one than the others.
    """
    if match := _OFFSET.fullmatch(name):
        return f"{match[1]}{int(match[2]):02d}:{match[3] or '00'}"
    if name in _UTC:
        return "UTC"
    try:
        return _find_region(name)
    except (ValueError, KeyError, OSError) as error:
        message = f"{asked}={name} is no zone that all machines know; use UTC, GMT+8:00 or a name such as Asia/Tokyo"
        raise ConfigError(message, key=asked, value=name) from error


def _find_region(name: str) -> str:
    """Java takes words such as PST for other zones than Python does, or for GMT; names with a slash are alike."""
    if "/" not in name:
        raise ValueError(name)
    return ZoneInfo(name).key


def _open_zone(name: str) -> tzinfo:
    return find_zone(f"UTC{name}") if name[0] in "+-" else find_zone(name)
