"""How many buckets each partition has (Hudi's PartitionBucketIndexHashingConfig and PartitionBucketIndexCalculator)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hudi_locks.errors import ConfigError
from hudi_locks.format.bucket import assign_buckets
from hudi_locks.format.records import interpreting

__all__ = ["INITIAL_BUCKET_COUNTS", "BucketCounts"]

INITIAL_BUCKET_COUNTS: Final = "00000000000000"
"""In place of an instant, in the name and text of what a table is made with."""
_VERSION: Final = 1


@dataclass(frozen=True)
class BucketCounts:
    """A number of buckets for each partition: that of the first expression found in its path, else the default.

    Attributes:
        default: Where no expression is found.
        expressions: Regular expressions and their numbers, in the order in which they are tried.
    """

    default: int
    expressions: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, expressions: str, default: int) -> BucketCounts:
        """Read `regex,number;regex,number`.

        Raises:
            ConfigError: A number is none, or an expression cannot be read.
        """
        try:
            return cls(default, _read_expressions(expressions))
        except ValueError as error:
            key = "hoodie.bucket.index.partition.expressions"
            message = f"{key}={expressions} cannot be used: {error}; write regex,number;regex,number"
            raise ConfigError(message, key=key, value=expressions) from error

    @classmethod
    def decode(cls, data: bytes, path: str) -> BucketCounts:
        """Read a `.hashing_config`.

        Raises:
            DamagedTable: It is none; `path` is named.
        """
        with interpreting("numbers of buckets", path):
            record = json.loads(data)
            if record["rule"].lower() != "regex":
                raise ValueError(f"the rule is {record['rule']}")
            return cls(int(record["defaultBucketNumber"]), _read_expressions(record["expressions"]))

    def encode(self, instant: str = INITIAL_BUCKET_COUNTS) -> bytes:
        """The bytes of a `.hashing_config`."""
        record = {
            "version": _VERSION,
            "instant": instant,
            "expressions": self.text,
            "rule": "regex",
            "defaultBucketNumber": self.default,
        }
        return json.dumps(record, indent=2).encode()

    @property
    def text(self) -> str:
        """The expressions as an option names them; "" if there are none."""
        return ";".join(f"{expression},{number}" for expression, number in self.expressions)

    @property
    def most(self) -> int:
        """The largest number that a partition may have."""
        return max([self.default, *(number for _, number in self.expressions)])

    def count(self, partition: str) -> int:
        """Buckets of a partition path."""
        found = (number for expression, number in self.expressions if re.search(expression, partition))
        return next(found, self.default)

    def assign(
        self, record_keys: pa.Array, hash_fields: Sequence[str], *, partitions: pa.Array | None = None
    ) -> pa.Int32Array:
        """The bucket of each record key; see `assign_buckets`.

        Args:
            record_keys: Strings without nulls.
            hash_fields: Fields that are hashed.
            partitions: Path of each key's partition; may be left out where all have one number.
        """
        if partitions is None or not self.expressions:
            return assign_buckets(record_keys, hash_fields, buckets=self.default)
        paths = partitions.dictionary_encode()
        counts = np.array([self.count(path) for path in paths.dictionary.to_pylist()], dtype=np.uint32)
        return assign_buckets(record_keys, hash_fields, buckets=counts[paths.indices.to_numpy()])


def _read_expressions(text: str) -> tuple[tuple[str, int], ...]:
    return tuple(_read_expression(one.strip()) for one in text.split(";") if one.strip())


def _read_expression(text: str) -> tuple[str, int]:
    expression, _, number = text.rpartition(",")
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"{expression!r} is no regular expression: {error}") from error
    if not expression or not number.strip().isdecimal() or int(number) < 1:
        raise ValueError(f"{text!r} is no expression with a number of at least 1")
    return expression, int(number)
