"""What a job of a write is said to have failed of, once others may have taken the write for dead."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException

from hudi_locks.errors import BadInput, DamagedTable, HudiLocksError, StorageError, WriteAborted
from hudi_locks.spark.session import raise_if_rolled_back

pytestmark = pytest.mark.spark  # PySpark's errors are part of it; no session is begun

INSTANT = "20240101000000000"


class Write:
    """Was rolled back, for a reason."""

    instant = INSTANT

    def __init__(self, reason: str | HudiLocksError, lost_because: str = "") -> None:
        self._reason = reason
        self.lost_because = lost_because

    def find_loss(self) -> str:
        if isinstance(self._reason, HudiLocksError):
            raise self._reason
        return self._reason


def fail(reason: str | HudiLocksError, error: Exception, lost_because: str = "") -> None:
    write: Any = Write(reason, lost_because)
    with raise_if_rolled_back(write):
        raise error


@pytest.mark.parametrize(
    "error", [DamagedTable("g-0 cannot be read as Parquet"), StorageError("no folder"), PySparkException("no file")]
)
def test_a_missing_file_of_a_write_that_was_taken_away_is_no_damage(error: Exception) -> None:
    with pytest.raises(WriteAborted, match=rf"instant {INSTANT} .*it was rolled back.* begin a new write") as caught:
        fail("it was rolled back", error)
    assert (caught.value.instant, caught.value.reason) == (INSTANT, "it was rolled back")
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [DamagedTable("g-0 cannot be read as Parquet"), PySparkException("no file")])
def test_what_fails_in_a_write_that_goes_on_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        fail("", error)
    assert caught.value is error


def test_rows_that_are_refused_are_so_whatever_became_of_the_write() -> None:
    error = BadInput("1 rows have no record key")
    with pytest.raises(BadInput) as caught:
        fail("it was rolled back", error)
    assert caught.value is error


def test_a_store_that_cannot_say_what_became_of_the_write_does_not_hide_the_failure() -> None:
    error = DamagedTable("g-0 cannot be read as Parquet")
    with pytest.raises(DamagedTable) as caught:
        fail(StorageError("the link is broken"), error)
    assert caught.value is error


def test_where_the_store_cannot_say_it_the_heartbeat_does() -> None:
    error = StorageError("the link is broken")
    with pytest.raises(WriteAborted, match="no beat for 130 s") as caught:
        fail(error, error, "no beat for 130 s")
    assert caught.value.__cause__ is error
