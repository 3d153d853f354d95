"""Where the zone of a table that calls its instants LOCAL comes from."""

from __future__ import annotations

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import Instant, State, encode_properties, format_time
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, Table, TableConfig
from hudi_locks.table.zone import find_zone
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, create_instant


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(clock: ManualClock) -> MemoryStorage:
    return MemoryStorage(clock)


def put_local(
    clock: ManualClock, storage: MemoryStorage, *, zones: list[str], version: int = 8, late_s: int = 0
) -> None:
    """A table with an instant an hour, each by a writer in one of the zones; its files are stamped `late_s` later."""
    old = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"} if version == 6 else {}
    properties = TableConfig("t", ("id",), ("p",), ("ts",)).to_properties()
    properties |= {"hoodie.table.timeline.timezone": "LOCAL", **old}
    storage.replace(PROPERTIES_PATH, encode_properties(properties))
    storage.make_folder(LAYOUT_2.archive)
    for zone in zones:
        now = format_time(clock.wall_ms(), find_zone(zone))
        requested = Instant(now, "commit", State.REQUESTED)
        clock.advance(1 + late_s)
        for instant in (requested, requested.as_completed(now)):
            create_instant(storage, LAYOUT_1 if version == 6 else LAYOUT_2, instant=instant, data=b"{}")
        clock.advance(3_600)


@pytest.mark.parametrize("zone", ["UTC", "UTC+05:30", "UTC-03:00"])
@pytest.mark.parametrize("version", [6, 8])
def test_the_zone_of_a_local_table_is_told_by_its_files(
    clock: ManualClock, storage: MemoryStorage, zone: str, version: int
) -> None:
    put_local(clock, storage, version=version, zones=[zone] * 3)
    for_writing = version > 6
    assert Table.load(storage, for_writing=for_writing).config.zone == zone


def test_summer_time_begins_and_the_newest_instants_count(clock: ManualClock, storage: MemoryStorage) -> None:
    put_local(clock, storage, zones=["UTC+01:00", "UTC+01:00", "UTC+02:00"])
    assert Table.load(storage, for_writing=True).config.zone == "UTC+02:00"


@pytest.mark.parametrize(
    ("zones", "late_s"),
    [(["UTC", "UTC+02:00"], 0), (["UTC", "UTC+01:00", "UTC"], 0), (["UTC", "UTC"], 400), (["UTC"], 10_000_000)],
)
def test_files_that_contradict_each_other_tell_no_zone(
    clock: ManualClock, storage: MemoryStorage, zones: list[str], late_s: int
) -> None:
    """Writers in several zones, or a copy whose files are as old as the copy."""
    put_local(clock, storage, zones=zones, late_s=late_s)
    assert Table.load(storage).config.zone is None
    with pytest.raises(UnsupportedTable, match=r"timezone=LOCAL: .*zone='Europe/Berlin'"):
        Table.load(storage, for_writing=True)
    assert Table.load(storage, zone="Europe/Berlin", for_writing=True).config.zone == "Europe/Berlin"


def test_a_local_table_without_instants_is_written_in_utc(clock: ManualClock, storage: MemoryStorage) -> None:
    put_local(clock, storage, zones=[])
    assert Table.load(storage, for_writing=True).config.zone == "UTC"


def test_a_zone_may_be_an_offset(storage: MemoryStorage) -> None:
    storage.replace(PROPERTIES_PATH, encode_properties(TableConfig("t", ("id",)).to_properties()))
    with pytest.raises(ConfigError, match="UTC"):
        Table.load(storage, zone="UTC+5")


def test_a_local_table_is_written_once_its_zone_is_said(clock: ManualClock, storage: MemoryStorage) -> None:
    put_local(clock, storage, zones=[])
    table = Table.load(storage, zone="Asia/Kolkata", for_writing=True)
    assert table.layout.time(0) == "19700101053000000"


def test_a_zone_has_no_say_in_a_utc_table(storage: MemoryStorage) -> None:
    Table.create(storage, TableConfig("t", ("id",), ("p",), ("ts",)))
    assert Table.load(storage, zone="Asia/Kolkata").layout.time(0) == "19700101000000000"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc", ""])
def test_a_zone_that_is_none_is_refused(storage: MemoryStorage, zone: str) -> None:
    Table.create(storage, TableConfig("t", ("id",), ("p",), ("ts",)))
    with pytest.raises(ConfigError, match="no time zone"):
        Table.load(storage, zone=zone)
