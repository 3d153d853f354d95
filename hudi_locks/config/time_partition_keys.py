"""Keys of partition columns whose folders are named by formatted times."""

from __future__ import annotations

from typing import Any, Final

from hudi_locks.config.key import Key

_NEW: Final = "hoodie.keygen.timebased."
_OLD: Final = "hoodie.deltastreamer.keygen.timebased."

TIMESTAMP_TYPE = Key(
    f"{_NEW}timestamp.type",
    str,
    None,
    "what the values of the column are: UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS or SCALAR for numbers,"
    " DATE_STRING or MIXED for texts",
    aliases=(f"{_OLD}timestamp.type",),
    since="0.5.0",
)
SCALAR_TIME_UNIT = Key(
    f"{_NEW}timestamp.scalar.time.unit",
    str,
    "SECONDS",
    "unit of numbers, for SCALAR",
    aliases=(f"{_OLD}timestamp.scalar.time.unit",),
    since="0.5.0",
    choices=("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
)
INPUT_FORMAT = Key(
    f"{_NEW}input.dateformat",
    str,
    None,
    "patterns of texts, of which the first that fits a value reads it, such as yyyy-MM-dd'T'HH:mm:ssZ",
    aliases=(f"{_OLD}input.dateformat",),
    since="0.5.0",
)
INPUT_FORMAT_DELIMITER = Key(
    f"{_NEW}input.dateformat.list.delimiter.regex",
    str,
    ",",
    "regular expression between patterns of texts",
    aliases=(f"{_OLD}input.dateformat.list.delimiter.regex",),
    since="0.6.0",
)
INPUT_ZONE = Key(
    f"{_NEW}input.timezone",
    str,
    None,
    "zone of texts that name none; without it that of the machine",
    aliases=(f"{_OLD}input.timezone",),
    since="0.6.0",
)
OUTPUT_FORMAT = Key(
    f"{_NEW}output.dateformat",
    str,
    None,
    "pattern of folders, such as yyyy/MM/dd",
    aliases=(f"{_OLD}output.dateformat",),
    since="0.5.0",
)
OUTPUT_ZONE = Key(
    f"{_NEW}output.timezone",
    str,
    None,
    "zone of folders; without it that of each text, and for numbers that of the machine",
    aliases=(f"{_OLD}output.timezone",),
    since="0.6.0",
)
ZONE = Key(
    f"{_NEW}timezone",
    str,
    None,
    "zone of texts and folders alike, before the two keys of one of them",
    aliases=(f"{_OLD}timezone",),
    since="0.5.0",
)
TIME_PARSER = Key(
    "hoodie.keygen.datetime.parser.class",
    str,
    "org.apache.hudi.keygen.parser.HoodieDateTimeParser",
    "Java class that reads the keys above",
    aliases=("hoodie.deltastreamer.keygen.datetime.parser.class",),
    since="0.6.0",
    accepted=("org.apache.hudi.keygen.parser.HoodieDateTimeParser",),
    refusal="Java code is not run; write to this table with JVM Hudi",
)
TIME_PARTITION_KEYS: Final[tuple[Key[Any], ...]] = (
    TIMESTAMP_TYPE,
    SCALAR_TIME_UNIT,
    INPUT_FORMAT,
    INPUT_FORMAT_DELIMITER,
    INPUT_ZONE,
    OUTPUT_FORMAT,
    OUTPUT_ZONE,
    ZONE,
)
"""What a table remembers of them."""
