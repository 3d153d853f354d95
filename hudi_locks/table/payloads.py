"""Payload classes: what those that Hudi ships say of rows of one key, as the properties of version 9 say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hudi_locks.config import Options, table_keys
from hudi_locks.errors import ConfigError

__all__ = [
    "BY_PAYLOAD",
    "MERGE_MODE_SINCE",
    "MYSQL",
    "compares_places",
    "describe_payload",
    "find_own_ordering",
    "find_payload_meaning",
    "is_debezium",
    "read_payload",
]

_EVENT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "EVENT_TIME_ORDERING"}
_COMMIT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "COMMIT_TIME_ORDERING"}
_FILLS: Final = {table_keys.PARTIAL_UPDATE_MODE.name: table_keys.IGNORE_DEFAULTS}
_DEBEZIUM: Final = {
    **_EVENT_TIME,
    table_keys.DELETE_FIELD.name: "_change_operation_type",
    table_keys.DELETE_MARKER.name: "d",
}
_POSTGRES: Final = {
    **_DEBEZIUM,
    table_keys.PARTIAL_UPDATE_MODE.name: table_keys.FILL_UNAVAILABLE,
    table_keys.UNAVAILABLE_VALUE.name: str(table_keys.UNAVAILABLE_VALUE.default),
}
_DMS: Final = {table_keys.DELETE_FIELD.name: "Op", table_keys.DELETE_MARKER.name: "D"}
_PACKAGE: Final = "org.apache.hudi.common.model."
_PAYLOADS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "OverwriteWithLatestAvroPayload": _COMMIT_TIME,
        "DefaultHoodieRecordPayload": _EVENT_TIME,
        "EventTimeAvroPayload": _EVENT_TIME,
        "PartialUpdateAvroPayload": {**_EVENT_TIME, **_FILLS},
        "OverwriteNonDefaultsWithLatestAvroPayload": {**_COMMIT_TIME, **_FILLS},
        "AWSDmsAvroPayload": {**_COMMIT_TIME, **_DMS},
        "debezium.PostgresDebeziumAvroPayload": _POSTGRES,
        "debezium.MySqlDebeziumAvroPayload": _DEBEZIUM,
    }
)
MYSQL: Final = "debezium.MySqlDebeziumAvroPayload"
_POSTGRES_ORDERING: Final = "_event_lsn"
_IN_0_15: Final = "OverwriteWithLatestAvroPayload"
_SINCE: Final = 9
"""Table version from which more than a merge mode, for which a payload class stands, can be said by properties."""
BY_PAYLOAD: Final = "00000000-0000-0000-0000-000000000000"
"""Hudi's strategy of a table whose payload class alone says how rows are merged."""
_CUSTOM: Final = "CUSTOM"
MERGE_MODE_SINCE: Final = 8
"""Table version from which the merge mode is among the properties."""


def find_payload_meaning(properties: Options, version: int) -> Mapping[str, str]:
    """What other properties would say of a table that leaves to its payload class how rows are merged; none of others.

    Tables of version 8 name such a class beside the merge mode CUSTOM (HoodieTableConfig of JVM Hudi 1.0); those of
    version 6 name it alone, and those of Hudi 0.15 that hold base files alone not even that: its writers take the class
    of their options then, or the one that lets the later write win.
    """
    payload = (properties.find(table_keys.PAYLOAD_CLASS) or "").removeprefix(_PACKAGE)
    mode, strategy = properties.find(table_keys.RECORD_MERGE_MODE), properties.find(table_keys.RECORD_MERGE_STRATEGY_ID)
    if version >= _SINCE:
        return {}
    if version < MERGE_MODE_SINCE and mode is None:
        return _PAYLOADS.get(payload or _IN_0_15, {})
    return _PAYLOADS.get(payload, {}) if (mode or "").upper() == _CUSTOM and strategy == BY_PAYLOAD else {}


def find_own_ordering(payload: str, version: int) -> str | None:
    """The columns by which a class compares rows, whatever else is named; None where it goes by those of the table.

    That for MySQL compares the parts of one text below version 9, and two columns since.
    """
    if payload.removeprefix(_PACKAGE) == MYSQL:
        return "_event_bin_file,_event_pos" if version >= _SINCE else "_event_seq"
    return _POSTGRES_ORDERING if payload.removeprefix(_PACKAGE) == "debezium.PostgresDebeziumAvroPayload" else None


def compares_places(properties: Mapping[str, str]) -> bool:
    """Whether the payload class of a table below version 9 compares the parts of texts such as 000002.1234."""
    return properties.get(table_keys.PAYLOAD_CLASS.name, "").removeprefix(_PACKAGE) == MYSQL


def is_debezium(properties: Mapping[str, str]) -> bool:
    """Whether the payload class of a table is for Debezium's events, of which a delete may be in capital letters."""
    return properties.get(table_keys.PAYLOAD_CLASS.name, "").removeprefix(_PACKAGE).startswith("debezium.")


def describe_payload(options: Options, version: int, *, ordering: Sequence[str]) -> dict[str, str]:
    """The properties of a table that is made with the payload class of the options; none if they name none.

    Args:
        options: Of its writer.
        version: Of the table.
        ordering: Its ordering columns.

    Raises:
        ConfigError: See `read_payload`; or the class compares other columns.
    """
    meant = read_payload(options)
    payload = (options.find(table_keys.PAYLOAD_CLASS) or "").removeprefix(_PACKAGE)
    _refuse_other_ordering(payload, version, ordering)
    if version >= _SINCE or len(meant) <= 1:
        return meant
    return {
        table_keys.RECORD_MERGE_MODE.name: _CUSTOM,
        table_keys.RECORD_MERGE_STRATEGY_ID.name: BY_PAYLOAD,
        table_keys.PAYLOAD_CLASS.name: f"{_PACKAGE}{payload}",
    }


def _refuse_other_ordering(payload: str, version: int, ordering: Sequence[str]) -> None:
    wanted, key = find_own_ordering(payload, version), table_keys.ORDERING_FIELDS.name
    if wanted is not None and ",".join(ordering) != wanted:
        message = (
            f"{payload} compares rows by {wanted} at table version {version}, and not by"
            f" {','.join(ordering) or 'no column'}: name that there"
        )
        raise ConfigError(f"{key}: {message}", key=key, wanted=wanted)


def read_payload(options: Options) -> dict[str, str]:
    """The properties that mean what the payload class of a writer's options means; none if they name none.

    Raises:
        ConfigError: The class has no such meaning, or contradicts another option.
    """
    key = table_keys.PAYLOAD_CLASS
    asked = options.find(key)
    if not asked:
        return {}
    told = f"{options.name_used(key)}={asked}"
    meant = _PAYLOADS.get(asked.removeprefix(_PACKAGE))
    if meant is None:
        known = ", ".join(_PAYLOADS)
        raise ConfigError(f"{told} is Java code that is not run here; use one of {known}", key=key.name, value=asked)
    _refuse_contradiction(options, meant, told)
    return dict(meant)


def _refuse_contradiction(options: Options, meant: Mapping[str, str], told: str) -> None:
    for key in (table_keys.RECORD_MERGE_MODE, table_keys.PARTIAL_UPDATE_MODE):
        given = options.name_used(key)
        if given is not None and options[given].upper() != meant.get(key.name, ""):
            message = f"{told} and {given}={options[given]} contradict each other; leave one of them out"
            raise ConfigError(message, key=given)
