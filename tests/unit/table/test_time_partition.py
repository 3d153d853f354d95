"""Options of folders that are named by formatted times."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.config import Options
from hudi_locks.errors import ConfigError
from hudi_locks.table import TableConfig, TimeField, TimePartition, find_zone_name

KIND = "hoodie.table.keygenerator.type"
TABLE = TableConfig("t", ("id",), ("day",), extra={KIND: "TIMESTAMP"})
TYPE, OUTPUT = "hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.output.dateformat"
NUMBERS = {TYPE: "UNIX_TIMESTAMP", OUTPUT: "yyyy/MM/dd"}
INPUT = "hoodie.keygen.timebased.input.dateformat"
TEXTS = {**NUMBERS, TYPE: "DATE_STRING", INPUT: "yyyy-MM-dd"}
ZONE, OUTPUT_ZONE = "hoodie.keygen.timebased.timezone", "hoodie.keygen.timebased.output.timezone"
INPUT_ZONE = "hoodie.keygen.timebased.input.timezone"
UNIT = "hoodie.keygen.timebased.timestamp.scalar.time.unit"


def read(options: dict[str, str], table: TableConfig = TABLE) -> TimePartition:
    found = TimePartition.of(Options(options), table)
    assert found
    return found


def test_other_tables_have_none() -> None:
    assert TimePartition.of(Options(NUMBERS), TableConfig("t", ("id",), ("day",))) is None


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ({TYPE: "UNIX_TIMESTAMP"}, "SECONDS"),
        ({TYPE: "EPOCHMILLISECONDS"}, "MILLISECONDS"),
        ({TYPE: "EPOCHMICROSECONDS"}, "MICROSECONDS"),
        ({TYPE: "SCALAR"}, "SECONDS"),
        ({TYPE: "SCALAR", UNIT: "days"}, "DAYS"),
        ({TYPE: "DATE_STRING", INPUT: "yyyy"}, ""),
        ({TYPE: "MIXED", INPUT: "yyyy"}, ""),
    ],
)
def test_the_type_says_what_a_value_is(options: dict[str, str], unit: str) -> None:
    found = read({**NUMBERS, **options})
    assert (found.unit, found.takes_texts) == (unit, not unit)


def test_a_pattern_is_fields_and_texts() -> None:
    parts = read({**NUMBERS, OUTPUT: "yyyy-'it''s'MM''d"}).output.parts
    assert parts == (TimeField("y", 4), "-", "it's", TimeField("M", 2), "'", TimeField("d", 1))


def test_older_names_and_those_of_the_table_are_read() -> None:
    old = {name.replace("hoodie.", "hoodie.deltastreamer."): value for name, value in NUMBERS.items()}
    assert read(old) == read(NUMBERS)
    table = TableConfig("t", ("id",), ("day",), extra={KIND: "TIMESTAMP", **NUMBERS})
    assert read({OUTPUT: "HH", OUTPUT_ZONE: "UTC"}, table) == read({**NUMBERS, OUTPUT_ZONE: "UTC"})


@pytest.mark.parametrize(
    ("made", "given", "named"),
    [
        ({OUTPUT_ZONE: "UTC"}, {ZONE: "Asia/Tokyo"}, f"{ZONE}=Asia/Tokyo, but the table was made without it"),
        ({TYPE: "SCALAR"}, {UNIT: "DAYS"}, f"{UNIT}=DAYS, but the table was made without it"),
    ],
)
def test_a_writer_cannot_give_folders_another_meaning(made: Any, given: dict[str, str], named: str) -> None:
    table = TableConfig("t", ("id",), ("day",), extra={KIND: "TIMESTAMP", **NUMBERS, **made})
    assert read({}, table) == read({UNIT: "SECONDS"}, table)
    with pytest.raises(ConfigError, match=named):
        read(given, table)


def test_a_writer_may_say_the_zone_that_nobody_said() -> None:
    table = TableConfig("t", ("id",), ("day",), extra={KIND: "TIMESTAMP", **NUMBERS})
    assert read({ZONE: "Asia/Tokyo"}, table).output_zone == "Asia/Tokyo"


def test_texts_may_have_several_patterns_with_a_delimiter_of_their_own() -> None:
    delimiter = "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex"
    assert len(read({**TEXTS, INPUT: "yyyy-MM-dd, yyyy"}).inputs) == 2
    assert len(read({**TEXTS, INPUT: "yyyy,MM; yyyy", delimiter: ";"}).inputs) == 2
    with pytest.raises(ConfigError, match="regular expression"):
        read({**TEXTS, delimiter: "("})


@pytest.mark.parametrize(
    ("options", "zones"),
    [
        ({}, (None, None)),
        ({INPUT_ZONE: "Asia/Tokyo", OUTPUT_ZONE: "GMT+8:00"}, ("Asia/Tokyo", "+08:00")),
        ({INPUT_ZONE: "Asia/Tokyo", ZONE: "GMT"}, ("UTC", "UTC")),
        ({ZONE: " ", OUTPUT_ZONE: "GMT-0330"}, (None, "-03:30")),
    ],
)
def test_zones(options: dict[str, str], zones: Any) -> None:
    found = read({**TEXTS, **options})
    assert (found.input_zone, found.output_zone) == zones


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        (NUMBERS, True),
        ({**NUMBERS, OUTPUT_ZONE: "UTC"}, False),
        (TEXTS, False),
        ({**TEXTS, OUTPUT_ZONE: "UTC"}, True),
        ({**TEXTS, OUTPUT_ZONE: "UTC", INPUT: "yyyy-MM-ddZ"}, False),
        ({**TEXTS, OUTPUT_ZONE: "UTC", INPUT_ZONE: "UTC"}, False),
    ],
)
def test_the_zone_of_the_machine_is_asked_where_none_is_said(options: dict[str, str], needed: bool) -> None:
    assert read(options).needs_machine_zone is needed


def test_what_stands_for_null_among_texts() -> None:
    text = {**TEXTS, INPUT: "yyyy-MM-dd'T'HH:mm:ss.SSSZ"}
    assert read(text).missing_text == "1970-01-01T00:00:00.001+0000"
    assert read({**text, OUTPUT_ZONE: "America/New_York"}).missing_text == "1969-12-31T19:00:00.001-0500"
    assert read({**text, INPUT_ZONE: "GMT+5:30"}).missing_text == "1970-01-01T05:30:00.001+0530"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({OUTPUT: "yyyy"}, f"{TYPE} is required"),
        ({TYPE: "UNIX_TIMESTAMP"}, f"{OUTPUT} is required"),
        ({**NUMBERS, TYPE: "unix_timestamp"}, f"{TYPE}=unix_timestamp is none of UNIX_TIMESTAMP, "),
        ({**NUMBERS, TYPE: "SCALAR", UNIT: "WEEKS"}, f"{UNIT}=WEEKS is none of"),
        ({**NUMBERS, TYPE: "DATE_STRING"}, f"{INPUT} is required"),
        ({**NUMBERS, OUTPUT: "MMM yyyy"}, f"{OUTPUT}=MMM yyyy: MMM is not offered"),
        ({**NUMBERS, OUTPUT: "EEE"}, "EEE is not offered"),
        ({**NUMBERS, OUTPUT: "yyyy'"}, "is no pattern of times"),
        ({**NUMBERS, OUTPUT: ""}, "is no pattern of times"),
        ({**NUMBERS, OUTPUT: "HH:mm"}, "no folder with a colon.*urlencode=true"),
        ({**TEXTS, INPUT: "MM-dd"}, "a year as yyyy"),
        ({**TEXTS, INPUT: "yy-MM-dd"}, "a year as yyyy"),
        ({**TEXTS, INPUT: "yyyy-dd-dd"}, "each field once"),
        ({**TEXTS, INPUT: "yyyy-MM-dd hh"}, "hh is not offered"),
        ({**NUMBERS, OUTPUT_ZONE: "Mars/Base"}, f"{OUTPUT_ZONE}=Mars/Base is no zone"),
        ({**NUMBERS, OUTPUT_ZONE: "PST"}, "is no zone that all machines know"),
        ({**NUMBERS, OUTPUT_ZONE: "UTC+8"}, "use UTC, GMT\\+8:00"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(options: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        read(options)
    assert str(caught.value.key).startswith("hoodie.keygen.timebased.")


def test_a_colon_is_no_fault_where_it_is_escaped() -> None:
    table = TableConfig("t", ("id",), ("day",), url_encode=True, extra={KIND: "TIMESTAMP"})
    assert read({**NUMBERS, OUTPUT: "HH:mm"}, table).output.parts[1] == ":"


def test_the_zone_of_a_machine_has_many_names() -> None:
    assert [find_zone_name(name, asked="zone") for name in ("Etc/UTC", "GMT", "GMT+09:00")] == ["UTC", "UTC", "+09:00"]
