"""Payload classes of JVM Hudi that a merge mode stands for, as its table version 9 turns them into properties."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hudi_locks.config import Options, table_keys
from hudi_locks.errors import ConfigError

__all__ = ["describe_payload"]

_EVENT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "EVENT_TIME_ORDERING"}
_COMMIT_TIME: Final = {table_keys.RECORD_MERGE_MODE.name: "COMMIT_TIME_ORDERING"}
_FILLS: Final = {table_keys.PARTIAL_UPDATE_MODE.name: table_keys.IGNORE_DEFAULTS}
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
    }
)
_SINCE: Final = 9
"""Table version from which more than a merge mode can be said by properties."""


def describe_payload(options: Options, version: int) -> dict[str, str]:
    """The properties of a table that mean what the payload class of the options means; none if they name none.

    Args:
        options: Of a writer.
        version: Of the table.

    Raises:
        ConfigError: The class has no such meaning, or not at this version, or contradicts another option.
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
    if version < _SINCE and len(meant) > 1:
        message = f"{told} can be said of a table from version {_SINCE} only, and this is version {version}"
        raise ConfigError(message, key=key.name, value=asked)
    _refuse_contradiction(options, meant, told)
    return dict(meant)


def _refuse_contradiction(options: Options, meant: Mapping[str, str], told: str) -> None:
    for key in (table_keys.RECORD_MERGE_MODE, table_keys.PARTIAL_UPDATE_MODE):
        given = options.name_used(key)
        if given is not None and options[given].upper() != meant.get(key.name, ""):
            message = f"{told} and {given}={options[given]} contradict each other; leave one of them out"
            raise ConfigError(message, key=given)
