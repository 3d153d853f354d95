"""What `hoodie.properties` says of a table (Hudi's HoodieTableConfig)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timezone
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfoNotFoundError

from hudi_locks.config import Key, Options, datasource_keys, table_keys
from hudi_locks.errors import ConfigError, DamagedTable
from hudi_locks.format import MetadataPartition
from hudi_locks.table.key_generator import (
    COMPLEX,
    SIMPLE,
    TIMESTAMP,
    find_key_generator,
    join_partition_fields,
    name_class,
    prefixes_keys,
    split_partition_fields,
)
from hudi_locks.table.ordering import (
    IS_DELETED,
    DeleteMarker,
    MergeRule,
    Unavailable,
    read_delete_marker,
)
from hudi_locks.table.payloads import MERGE_MODE_SINCE, compares_places, find_payload_meaning, is_debezium
from hudi_locks.table.virtual_keys import VirtualKeys
from hudi_locks.table.zone import find_zone
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, TimelineLayout

__all__ = ["BY_COMMIT", "BY_TIME", "MERGERS", "PROPERTIES_PATH", "TableConfig"]

PROPERTIES_PATH: Final = ".hoodie/hoodie.properties"
_DEFAULT_VERSION: Final = 8
BY_TIME: Final = "EVENT_TIME_ORDERING"
BY_COMMIT: Final = "COMMIT_TIME_ORDERING"
MERGERS: Final = {
    BY_TIME: ("eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "DefaultHoodieRecordPayload"),
    BY_COMMIT: ("ce9acb64-bde0-424c-9b91-f6ebba25356d", "OverwriteWithLatestAvroPayload"),
}
"""Strategy id and payload class that tables below version 9 name beside the merge mode."""
_HISTORY: Final = "history"
_FOLDER: Final = re.compile(r"(?!\.)[A-Za-z0-9._=-]+(?:/(?!\.)[A-Za-z0-9._=-]+)*")
"""Below the folder that holds it: no hidden one, none that leads out."""
_SLASHED: Final = ".SlashEncodedDayPartitionValueExtractor"
_METADATA_TABLE: Final = "metadata"
_PAYLOADS: Final = "org.apache.hudi.common.model."


@dataclass(frozen=True)
class TableConfig:
    """A table's lasting settings.

    Attributes:
        name: Table name.
        record_key_fields: Columns of the record key; empty where each row that is inserted gets a key of its own.
        partition_fields: Columns of the partition path; empty for an unpartitioned table.
        ordering_fields: Columns that decide which of two rows of one key wins; empty: the later write wins.
        version: `hoodie.table.version`.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        hive_style: Whether partition folders are called `column=value`.
        url_encode: Whether partition values are escaped in folder names.
        database: Name of its database; "" for none.
        timezone: UTC, or LOCAL: the unnamed zone of whoever wrote.
        declared_merge_mode: `hoodie.record.merge.mode` as it stands there; "" if it does not.
        zone: Where LOCAL is, if the user said so.
        partition_kinds: How CustomKeyGenerator names folders of each column, SIMPLE or TIMESTAMP; empty for others.
        extra: All other properties; kept as they are.
    """

    name: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    version: int = _DEFAULT_VERSION
    table_type: str = "COPY_ON_WRITE"
    hive_style: bool = False
    url_encode: bool = False
    database: str = ""
    timezone: str = "UTC"
    declared_merge_mode: str = ""
    zone: str | None = None
    partition_kinds: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def payload_meaning(self) -> Mapping[str, str]:
        """See `find_payload_meaning`."""
        declared = {table_keys.RECORD_MERGE_MODE.name: self.declared_merge_mode} if self.declared_merge_mode else {}
        return find_payload_meaning(Options({**self.extra, **declared}), self.version)

    @property
    def merge_mode(self) -> str:
        """EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING or CUSTOM; undeclared, the ordering columns decide."""
        declared = self.payload_meaning.get(table_keys.RECORD_MERGE_MODE.name) or self.declared_merge_mode
        return declared or (BY_TIME if self.ordering_fields else BY_COMMIT)

    @property
    def merge_ordering(self) -> tuple[str, ...]:
        """Columns that decide between two rows with one key; none where the later write wins."""
        return () if self.merge_mode == BY_COMMIT else self.ordering_fields

    @property
    def partial_update_mode(self) -> str:
        """What a row says of columns that it does not set; "" if it sets all of them."""
        return self._merging.get(table_keys.PARTIAL_UPDATE_MODE.name, "").upper()

    @property
    def _merging(self) -> Mapping[str, str]:
        return {**self.payload_meaning, **self.extra}

    @cached_property
    def merge_rule(self) -> MergeRule:
        """How two rows with one key become one."""
        fills_nulls = self.partial_update_mode == table_keys.IGNORE_DEFAULTS
        is_old = bool(self.payload_meaning)
        unavailable = self._read_unavailable(fills_earlier=not is_old)
        by_payload = is_old and (not self.merge_ordering or unavailable is not None)
        return MergeRule(
            self.merge_ordering,
            fills_nulls=fills_nulls,
            deletes=self.delete_markers,
            precombine=self.ordering_fields if by_payload else (),
            virtual_keys=self.virtual_keys,
            unavailable=unavailable,
            by_place=is_old and compares_places(self.extra),
        )

    def _read_unavailable(self, *, fills_earlier: bool) -> Unavailable | None:
        if self.partial_update_mode != table_keys.FILL_UNAVAILABLE:
            return None
        return Unavailable(Options(self._merging).get_value(table_keys.UNAVAILABLE_VALUE), fills_earlier=fills_earlier)

    @property
    def merge_strategy_id(self) -> str:
        """Hudi's id of that rule, which tables of version 9 leave unsaid; "" if it is none of ours."""
        return self.extra.get(table_keys.RECORD_MERGE_STRATEGY_ID.name) or MERGERS.get(self.merge_mode, ("",))[0]

    @cached_property
    def delete_markers(self) -> tuple[DeleteMarker, ...]:
        """What makes of a row a delete."""
        any_case = bool(self.payload_meaning) and is_debezium(self.extra)
        marker = read_delete_marker(Options(self._merging), any_case=any_case)
        return (IS_DELETED, marker) if marker else (IS_DELETED,)

    @property
    def layout(self) -> TimelineLayout:
        """Where its instants live, and in which zone they are written (UTC if it is not known)."""
        zone = find_zone(self.zone) if self.timezone == "LOCAL" and self.zone else timezone.utc
        history = self.extra.get(table_keys.TIMELINE_HISTORY_PATH.name, _HISTORY)
        if self.version < 8:
            archive = self.extra.get(table_keys.ARCHIVELOG_FOLDER.name, "archived")
            return replace(LAYOUT_1, archive=f".hoodie/{archive}", zone=zone)
        folder = f".hoodie/{self.extra.get(table_keys.TIMELINE_PATH.name, 'timeline')}"
        first = self.extra.get(table_keys.INITIAL_VERSION.name, "")
        was_old = first.isdigit() and int(first) < 8
        return replace(LAYOUT_2, folder=folder, archive=f"{folder}/{history}", zone=zone, has_old_logs=was_old)

    @property
    def has_usual_archive(self) -> bool:
        """Whether archived instants live where they do in every table that does not say otherwise."""
        return self.layout.archive in (LAYOUT_1.archive, f"{self.layout.folder}/{_HISTORY}")

    @property
    def key_generator(self) -> str:
        """Hudi's word for how record keys and partition paths are made of the columns."""
        return find_key_generator(self.extra, self.record_key_fields, self.partition_fields)

    @property
    def time_fields(self) -> tuple[str, ...]:
        """Partition columns whose folders are named by formatted times."""
        if self.key_generator == TIMESTAMP:
            return self.partition_fields
        kinds = zip(self.partition_fields, self.partition_kinds, strict=False)
        return tuple(field for field, kind in kinds if kind.upper() == TIMESTAMP)

    @property
    def splits_dates(self) -> bool:
        """Whether a date names three folders, year/month/day. JVM Hudi 1.2 may tell it by its extractor alone."""
        if self._says(datasource_keys.SLASH_SEPARATED_DATES):
            return True
        extractor = self.extra.get(table_keys.PARTITION_EXTRACTOR.name, "")
        return extractor.endswith(_SLASHED) and self.key_generator in (SIMPLE, COMPLEX)

    @property
    def prefixes_keys(self) -> bool | None:
        """Whether record keys are written `name:value,…`; None where only the rows can tell."""
        return prefixes_keys(self.extra, self.record_key_fields, self.partition_fields)

    @property
    def metadata_parts(self) -> frozenset[str]:
        """Parts of its metadata table that are in use; none without one."""
        named = self.extra.get(table_keys.METADATA_PARTITIONS.name, "").split(",")
        return frozenset(filter(None, map(str.strip, named)))

    @property
    def has_record_index(self) -> bool:
        """Whether its metadata table tells where the row of each key lies."""
        return MetadataPartition.RECORD_INDEX.value in self.metadata_parts

    @property
    def dropped_fields(self) -> tuple[str, ...]:
        """Partition columns that files do not have: their values are texts, which the folders tell."""
        return self.partition_fields if self._says(table_keys.DROP_PARTITION_COLUMNS) else ()

    @property
    def has_meta_columns(self) -> bool:
        """Whether each row tells its key, its partition and the commit that wrote it; else these columns are null."""
        return self.extra.get(table_keys.POPULATE_META_FIELDS.name, "true").lower() == "true"

    @property
    def virtual_keys(self) -> VirtualKeys | None:
        """Makes the keys of rows whose files leave the meta columns empty; None where files have them.

        Where only rows could tell how a key is written, since releases differ, any form will do: none is kept.
        """
        if self.has_meta_columns:
            return None
        return VirtualKeys(self.record_key_fields, is_composite=bool(self.prefixes_keys))

    @property
    def change_log_mode(self) -> str | None:
        """What change logs say of a row; None where writes leave none."""
        mode = self.extra.get(table_keys.CDC_MODE.name, table_keys.DATA_BEFORE_AFTER)
        return mode.upper() if self._says(table_keys.CDC_ENABLED) else None

    def _says(self, key: Key[bool]) -> bool:
        return self.extra.get(key.name, "").lower() == "true"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], path: str = PROPERTIES_PATH) -> TableConfig:
        """What a properties file says; says nothing yet about whether the table can be read or written.

        Raises:
            DamagedTable: A property is missing or malformed; it names the file and the key.
        """
        options = Options(properties)
        try:
            config = cls._interpret(options)
            _check_consistency(config, options)
        except ConfigError as error:
            raise DamagedTable(f"{path}: {error}", path=path, **error.facts) from error
        return config

    @property
    def checksum(self) -> int:
        """By which readers know that the properties were written whole."""
        return zlib.crc32(f"{self.database}.{self.name}".encode())

    @classmethod
    def _interpret(cls, options: Options) -> TableConfig:
        fields, kinds = split_partition_fields(_split(options.find(table_keys.PARTITION_FIELDS)), options)
        return cls(
            name=options.get_value(table_keys.TABLE_NAME),
            record_key_fields=_split(options.find(table_keys.RECORDKEY_FIELDS)),
            partition_fields=fields,
            partition_kinds=kinds,
            ordering_fields=_split(options.find(table_keys.ORDERING_FIELDS)),
            version=options.get_value(table_keys.TABLE_VERSION),
            table_type=options.get_value(table_keys.TABLE_TYPE).upper(),
            hive_style=options.get_value(datasource_keys.HIVE_STYLE_PARTITIONING),
            url_encode=options.get_value(datasource_keys.PARTITIONPATH_URLENCODE),
            database=options.find(table_keys.DATABASE_NAME) or "",
            timezone=options.get_value(table_keys.TIMELINE_TIMEZONE).upper(),
            declared_merge_mode=(options.find(table_keys.RECORD_MERGE_MODE) or "").upper(),
            extra={name: value for name, value in options.items() if name not in _NAMED},
        )

    def to_properties(self) -> dict[str, str]:
        """The properties as the JVM writes them; the metadata table is off until one is made."""
        values: dict[str, object] = {
            **_FIXED,
            **(self._old_properties() if self.version < MERGE_MODE_SINCE else {}),
            table_keys.TABLE_NAME.name: self.name,
            table_keys.TABLE_TYPE.name: self.table_type,
            table_keys.TABLE_VERSION.name: self.version,
            table_keys.INITIAL_VERSION.name: self.version,
            **self._key_properties(),
            table_keys.PARTITION_FIELDS.name: join_partition_fields(self.partition_fields, self.partition_kinds),
            table_keys.KEY_GENERATOR_TYPE.name: self.key_generator,
            datasource_keys.HIVE_STYLE_PARTITIONING.name: self.hive_style,
            datasource_keys.PARTITIONPATH_URLENCODE.name: self.url_encode,
            table_keys.TIMELINE_TIMEZONE.name: self.timezone,
            table_keys.TABLE_CHECKSUM.name: self.checksum,
            table_keys.RECORD_MERGE_MODE.name: self.declared_merge_mode or self.merge_mode,
            **({table_keys.DATABASE_NAME.name: self.database} if self.database else {}),
            **self._merge_properties(),
            **self.extra,
        }
        return dict(Options(values))

    def _old_properties(self) -> dict[str, object]:
        """Releases that write version 6 alone know a key generator by its class only."""
        generator = {table_keys.KEY_GENERATOR_CLASS.name: name_class(self.key_generator)}
        return {**_FIXED_IN_6, **(generator if table_keys.KEY_GENERATOR_CLASS.name not in self.extra else {})}

    def _key_properties(self) -> dict[str, str]:
        fields = ",".join(self.record_key_fields)
        return {table_keys.RECORDKEY_FIELDS.name: fields} if fields else {}

    def _merge_properties(self) -> dict[str, str]:
        ordering = ",".join(self.ordering_fields)
        if self.version >= 9:
            return {table_keys.ORDERING_FIELDS.name: ordering} if ordering else {}
        named = {table_keys.PRECOMBINE_FIELD_LEGACY_NAME: ordering} if ordering else {}
        if self.merge_mode in MERGERS:
            strategy, payload = MERGERS[self.merge_mode]
            named[table_keys.RECORD_MERGE_STRATEGY_ID.name] = strategy
            named[table_keys.PAYLOAD_CLASS.name] = _PAYLOADS + payload
        if ordering and self.table_type == "MERGE_ON_READ":
            # The procedure run_compaction of JVM Hudi 1.0 knows no other name of it, and lets older logs win otherwise.
            named[datasource_keys.PRECOMBINE_FIELD.name] = ordering
        return named

    def declaring_merge_mode(self) -> TableConfig:
        """The same of a table that is made: its ordering columns decide unless it says otherwise, in version 6 too."""
        if self.declared_merge_mode or table_keys.PAYLOAD_CLASS.name in self.extra:
            return self
        return replace(self, declared_merge_mode=BY_TIME if self.ordering_fields else BY_COMMIT)

    def in_zone(self, zone: str | None) -> TableConfig:
        """The same table, with LOCAL meaning `zone`, an IANA name or an offset such as UTC+01:00.

        Raises:
            ConfigError: There is no such zone.
        """
        try:
            if zone is not None:
                find_zone(zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            message = f"{zone!r} is no time zone; an IANA name such as Europe/Berlin, or UTC+01:00, is wanted"
            raise ConfigError(message, zone=zone) from error
        return replace(self, zone=zone)


_FIXED: Final[Mapping[str, object]] = {
    table_keys.TIMELINE_LAYOUT_VERSION.name: LAYOUT_2.version,
    table_keys.TIMELINE_PATH.name: "timeline",
    table_keys.TIMELINE_HISTORY_PATH.name: "history",
    table_keys.ARCHIVELOG_FOLDER.name: "history",
    table_keys.BASE_FILE_FORMAT.name: "PARQUET",
    table_keys.TABLE_FORMAT.name: "native",
    table_keys.POPULATE_META_FIELDS.name: True,
    table_keys.CDC_ENABLED.name: False,
    table_keys.MULTIPLE_BASE_FILE_FORMATS_ENABLE.name: False,
    table_keys.DROP_PARTITION_COLUMNS.name: False,
    table_keys.PARTITION_METAFILE_USE_BASE_FORMAT.name: False,
    table_keys.METADATA_ENABLE.name: False,
}
_FIXED_IN_6: Final[Mapping[str, object]] = {
    table_keys.TIMELINE_LAYOUT_VERSION.name: LAYOUT_1.version,
    table_keys.ARCHIVELOG_FOLDER.name: "archived",
}
_NAMED: Final = frozenset(
    name
    for key in (
        table_keys.TABLE_NAME, table_keys.RECORDKEY_FIELDS, table_keys.PARTITION_FIELDS, table_keys.ORDERING_FIELDS,
        table_keys.TABLE_VERSION, table_keys.TABLE_TYPE, datasource_keys.HIVE_STYLE_PARTITIONING,
        datasource_keys.PARTITIONPATH_URLENCODE, table_keys.DATABASE_NAME, table_keys.TIMELINE_TIMEZONE,
        table_keys.RECORD_MERGE_MODE,
    )
    for name in (key.name, *key.aliases)
)  # fmt: skip


def _check_consistency(config: TableConfig, options: Options) -> None:
    read_delete_marker(options)
    options.find(table_keys.CDC_ENABLED)
    options.find(table_keys.CDC_MODE)
    options.find(table_keys.DROP_PARTITION_COLUMNS)
    _check_folders(options, config.version)
    for key, wanted in (
        (table_keys.TABLE_CHECKSUM, config.checksum),
        (table_keys.TIMELINE_LAYOUT_VERSION, config.layout.version),
    ):
        found = options.find(key)
        if found is not None and found != wanted:
            message = f"{key.name}={found} contradicts the name and version there, which ask for {wanted}"
            raise ConfigError(message, key=key.name)


def _check_folders(options: Options, version: int) -> None:
    keys = (table_keys.TIMELINE_PATH, table_keys.TIMELINE_HISTORY_PATH) if version >= 8 else ()
    for key in keys:
        found = options.find(key)
        if found is not None and (not _FOLDER.fullmatch(found) or found.split("/")[0] == _METADATA_TABLE):
            wanted = "a folder of its own, such as " + ("timeline" if key is table_keys.TIMELINE_PATH else _HISTORY)
            raise ConfigError(f"{key.name}={found!r} is none that Hudi writes: {wanted} is wanted", key=key.name)


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
