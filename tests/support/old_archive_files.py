"""Files of the archive of version 6, in the form that Hudi 0.15.0 gives them."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block

GOLDEN = Path(__file__).parents[1] / "golden" / "v6_archive.log"
"""Of JVM Hudi 0.15.0: two commits, in each of their states."""


@cache
def read_schema() -> str:
    (block,) = decode_blocks(GOLDEN.read_bytes(), str(GOLDEN))
    return block.schema


def encode_archive(entries: Iterable[Mapping[str, Any]]) -> bytes:
    """One block of entries, each with some fields of HoodieArchivedMetaEntry; those of the JVM name no instant."""
    schema = fastavro.parse_schema(json.loads(read_schema()))
    rows = []
    for entry in entries:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, dict(entry))
        rows.append(struct.pack(">i", out.tell()) + out.getvalue())
    content = struct.pack(">ii", 3, len(rows)) + b"".join(rows)
    return encode_block(
        LogBlock(BlockType.AVRO, {BlockHeader.INSTANT_TIME: "0", BlockHeader.SCHEMA: read_schema()}, content)
    )
