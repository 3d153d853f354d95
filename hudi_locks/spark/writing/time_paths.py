"""Folders named by formatted times, as an expression of Spark that no setting of the session changes.

Times are local ones without a zone, so that the session's zone has no part in it. Runs on the driver.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import types as T  # noqa: N812

from hudi_locks.errors import BadInput
from hudi_locks.table import NOT_A_TIME, TimeField, TimePartition, TimePattern

__all__ = ["render_time_path"]

_MS: Final = {
    "NANOSECONDS": "{} div 1000000",
    "MICROSECONDS": "{} div 1000",
    "MILLISECONDS": "{}",
    "SECONDS": "try_multiply({}, 1000L)",
    "MINUTES": "try_multiply({}, 60000L)",
    "HOURS": "try_multiply({}, 3600000L)",
    "DAYS": "try_multiply({}, 86400000L)",
}
"""Milliseconds of a number; division is towards zero, as in Java."""
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 9_200_000_000_000_000
"""The year 1, and what Spark has for a time."""
_WRITTEN: Final = {
    "y": "year({})",
    "Y": "year({})",
    "x": "extract(YEAROFWEEK FROM {})",
    "M": "month({})",
    "w": "weekofyear({})",
    "d": "day({})",
    "D": "dayofyear({})",
    "e": "(weekday({}) + 1)",
    "H": "hour({})",
    "k": "((hour({}) + 23) % 24 + 1)",
    "h": "((hour({}) + 11) % 12 + 1)",
    "K": "(hour({}) % 12)",
    "m": "minute({})",
    "s": "second({})",
}
_YEARS: Final = ("y", "Y", "x")
_READ: Final = {
    "y": "[0-9]{1,4}+",
    "S": "[0-9]{1,%d}+",
    "Z": "Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?+",
}
"""How much of a text a field takes; all others take a digit or two."""
_TWO_DIGITS: Final = "[0-9]{1,2}+"
_FRACTION: Final = 3
_NUMERIC: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType, T.DecimalType)


def render_time_path(name: str, kind: T.DataType, times: TimePartition, *, machine_zone: str) -> str:
    """The SQL of a column's folder, neither escaped nor with the column's name.

    A value that is no such time gives a text with `NOT_A_TIME`, which every write refuses; so does one that JVM Hudi
    refuses.

    Args:
        name: Column, with dots to the parts of a struct.
        kind: Its type.
        times: What is asked.
        machine_zone: Zone of this machine, where none is asked; as `find_zone_name` has it.

    Raises:
        BadInput: Values of that type are not read so.
    """
    column = ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))
    if times.takes_texts:
        if not isinstance(kind, T.StringType):
            raise _refuse(name, kind, times, "text")
        local = _read_texts(f"coalesce({column}, {_quote(times.missing_text)})", times, machine_zone)
    else:
        local = _read_number(_take_number(column, name, kind, times), times.output_zone or machine_zone)
    refused = f"concat({_quote(NOT_A_TIME)}, cast({column} as string))"
    return f"case when {local} is null then {refused} else {_write(local, times.output)} end"


def _refuse(name: str, kind: T.DataType, times: TimePartition, wanted: str) -> BadInput:
    message = (
        f"column {name!r} of type {kind.simpleString()} names no folder: hoodie.keygen.timebased.timestamp.type="
        f"{times.kind} wants a {wanted}; cast it"
    )
    return BadInput(message, column=name, type=kind.simpleString())


def _take_number(column: str, name: str, kind: T.DataType, times: TimePartition) -> str:
    """Milliseconds; null counts as 1, as in Hudi, and what no long holds is null."""
    if isinstance(kind, T.DateType):
        number = f"cast(unix_date({column}) as bigint)"
    elif isinstance(kind, T.TimestampType):
        number = f"unix_micros({column})"
    elif isinstance(kind, T.TimestampNTZType):
        number = f"unix_micros(cast(concat(cast({column} as string), 'Z') as timestamp))"
    elif isinstance(kind, _NUMERIC):
        number = f"try_cast({column} as bigint)"
    else:
        raise _refuse(name, kind, times, "number, a date or a timestamp")
    return _MS[times.unit].format(f"if({column} is null, 1L, {number})")


def _read_number(ms: str, zone: str) -> str:
    days, rest = f"cast(floor(({ms}) / 86400000) as int)", f"cast(pmod({ms}, 86400000L) as decimal(18, 6)) / 1000"
    utc = f"timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval({days}, 0, 0, {rest})"
    return f"case when {ms} between {_FIRST_MS}L and {_LAST_MS}L then {_move(f'({utc})', 'UTC', zone)} end"


def _read_texts(text: str, times: TimePartition, machine_zone: str) -> str:
    """Local times by the first pattern that fits."""
    cases = [_read_text(text, pattern, times, machine_zone) for pattern in times.inputs]
    return f"case {' '.join(cases)} end"


def _read_text(text: str, pattern: TimePattern, times: TimePartition, machine_zone: str) -> str:
    expression = _quote(rf"(?i)\A{''.join(map(_expect, pattern.parts))}\z")
    found = {
        "y" if field.letter == "Y" else field.letter: f"regexp_extract({text}, {expression}, {place})"
        for place, field in enumerate(pattern.fields, 1)
    }
    offset = found.pop("Z", None)
    local = _join_fields(found)
    told = _place(local, offset, times, machine_zone)
    return f"when regexp_like({text}, {expression}) then {told}"


def _expect(part: TimeField | str) -> str:
    if isinstance(part, str):
        return re.escape(part)
    form = _READ.get("y" if part.letter == "Y" else part.letter, _TWO_DIGITS)
    return f"({form % part.width if part.letter == 'S' else form})"


def _join_fields(found: dict[str, str]) -> str:
    """A local time; null if there is none of these fields, such as the 30th of February."""
    month, day = (_pad(found.get(letter), "01") for letter in "Md")
    hour, minute, second = (_pad(found.get(letter), "00") for letter in "Hms")
    fraction = f"rpad(substr({found['S']}, 1, {_FRACTION}), {_FRACTION}, '0')" if "S" in found else "'000'"
    date, time = f"lpad({found['y']}, 4, '0'), '-', {month}, '-', {day}", f"{hour}, ':', {minute}, ':', {second}"
    return f"try_cast(concat({date}, ' ', {time}, '.', {fraction}) as timestamp_ntz)"


def _pad(digits: str | None, least: str) -> str:
    return f"lpad({digits}, 2, '0')" if digits else f"'{least}'"


def _place(local: str, offset: str | None, times: TimePartition, machine_zone: str) -> str:
    """The time in the zone of folders; of a text that names its own, that counts."""
    if times.output_zone is None and (times.input_zone is None or offset is None):
        return local
    if offset is None:
        source = times.input_zone or machine_zone
        utc = _move(local, source, "UTC")
        # An hour that is skipped in spring is no time there.
        utc = utc if utc == local else f"case when {_move(utc, 'UTC', source)} = {local} then {utc} end"
    else:
        utc = f"({local} - {_read_offset(offset)})"
    return _move(utc, "UTC", times.output_zone or times.input_zone or "UTC")


def _read_offset(offset: str) -> str:
    digits = f"rpad(replace(substr({offset}, 2), ':', ''), 4, '0')"
    minutes = f"(cast(substr({digits}, 1, 2) as int) * 60 + cast(substr({digits}, 3, 2) as int))"
    signed = f"if(substr({offset}, 1, 1) = '-', -{minutes}, {minutes})"
    return f"make_dt_interval(0, 0, if(upper({offset}) = 'Z', 0, {signed}), 0)"


def _write(local: str, pattern: TimePattern) -> str:
    parts = [_quote(part) if isinstance(part, str) else _write_field(local, part) for part in pattern.parts]
    return f"concat({', '.join(parts)})"


def _write_field(local: str, field: TimeField) -> str:
    if field.letter == "S":
        digits = f"date_format({local}, 'SSS')"
        return f"substr(rpad({digits}, {max(field.width, _FRACTION)}, '0'), 1, {field.width})"
    number = _WRITTEN[field.letter].format(local)
    if field.letter in _YEARS and field.width == 2:  # of the century
        number = f"{number} % 100"
    return f"format_string('%0{field.width}d', {number})"


def _move(local: str, source: str, target: str) -> str:
    return local if source == target else f"convert_timezone('{source}', '{target}', {local})"


def _quote(text: str) -> str:
    """A literal, whatever the session makes of quotes and backslashes."""
    return f"decode(X'{text.encode().hex()}', 'UTF-8')"
