"""Blocks of change data: what a write changed in a file group (RFC-51, Hudi's HoodieCDCUtils)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hudi_locks.config import table_keys
from hudi_locks.errors import DamagedTable
from hudi_locks.format import META_COLUMNS
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks
from hudi_locks.table.avro_rows import encode_avro, list_avro
from hudi_locks.table.meta_columns import RECORD_KEY

__all__ = ["ChangeFormat", "read_changes"]

_OP: Final = "op"
_KEY: Final = "record_key"
_TIME: Final = "ts_ms"
_BEFORE: Final = "before"
_AFTER: Final = "after"
_KEYS_ALONE: Final = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": name, "type": ["string", "null"]} for name in (_OP, _KEY)],
}
_NULL_TEXT: Final = ["null", "string"]
_INSERT, _UPDATE, _DELETE = "i", "u", "d"


@dataclass(frozen=True)
class ChangeFormat:
    """How the changes of one table are written down. Picklable.

    Attributes:
        mode: `hoodie.table.cdc.supplemental.logging.mode`.
        avro_schema: Avro JSON of all columns of the base files, meta columns included.
    """

    mode: str
    avro_schema: str

    def encode(self, before: pa.Table | None, after: pa.Table | None, *, instant: str) -> LogBlock:
        """A block with one change for each row.

        Args:
            before: The rows as they were, meta columns included; None of inserts.
            after: The rows in the same order as they are; None of deletes.
            instant: Requested time of the write.
        """
        kind = _INSERT if before is None else _DELETE if after is None else _UPDATE
        rows = next(version for version in (before, after) if version is not None)
        schema = json.dumps(self._schema(), separators=(",", ":"))
        said: dict[str, Any] = {
            _OP: pa.repeat(kind, rows.num_rows),
            _KEY: rows.column(RECORD_KEY),
            _TIME: pa.repeat(instant, rows.num_rows),
            _BEFORE: _wrap(before, rows),
            _AFTER: _wrap(after, rows),
        }
        changes = pa.table({name: said[name] for name in self._columns})
        header = {BlockHeader.INSTANT_TIME: instant, BlockHeader.SCHEMA: schema}
        return LogBlock(BlockType.CDC, header, encode_avro(changes.combine_chunks(), schema))

    @property
    def _columns(self) -> tuple[str, ...]:
        return _COLUMNS[self.mode]

    def _schema(self) -> Mapping[str, Any]:
        if self.mode == table_keys.OP_KEY_ONLY:
            return _KEYS_ALONE
        whole = json.loads(self.avro_schema)
        user = {**whole, "fields": [field for field in whole["fields"] if field["name"] not in META_COLUMNS]}
        inner = {key: value for key, value in user.items() if key != "namespace"}
        types = {_BEFORE: ["null", inner], _AFTER: ["null", user["name"]]}
        fields = [
            {"name": name, "type": types.get(name, _NULL_TEXT), "doc": "", "default": None} for name in self._columns
        ]
        space = {"namespace": user["namespace"]} if "namespace" in user else {}
        return {"type": "record", "name": "CDC", **space, "fields": fields}


_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    table_keys.OP_KEY_ONLY: (_OP, _KEY),
    table_keys.DATA_BEFORE: (_OP, _KEY, _BEFORE),
    table_keys.DATA_BEFORE_AFTER: (_OP, _TIME, _BEFORE, _AFTER),
}


def _wrap(version: pa.Table | None, rows: pa.Table) -> pa.Array:
    """The user's columns of each row as one column."""
    shown = (rows if version is None else version).combine_chunks()
    columns = {name: shown.column(name) for name in shown.schema.names if name not in META_COLUMNS}
    fields = [shown.schema.field(name) for name in columns]
    parts = [pa.concat_arrays(column.chunks) for column in columns.values()]
    is_null = pa.repeat(version is None, rows.num_rows)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=is_null)


def read_changes(data: bytes | memoryview, path: str) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The instant and the changes of each block of a change log.

    Raises:
        DamagedTable: A block is not whole, of another kind, or cannot be read.
    """
    for block in decode_blocks(data, path):
        if block.kind is not BlockType.CDC:
            raise DamagedTable(f"{path} has a block of type {block.kind.name} among change data", path=path)
        yield block.instant, list_avro(block, path)
