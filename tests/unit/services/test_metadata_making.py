"""Making a metadata table of what a table has: what is in it, and that no write is missing, whatever comes between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_metadata import BUNDLES, read_golden
from json_checks import check_json
from metadata_harness import MetadataHarness
from slice_files import SCHEMA
from transaction_harness import OPEN_LOCK, Harness, Killed, stop_at
from whole_table import WholeTable

from hudi_locks.cli import main
from hudi_locks.errors import ConfigError, DamagedTable, TableError, UnsupportedTable
from hudi_locks.format import METADATA_FOLDER, CommitMetadata, MetadataPartition, decode_properties
from hudi_locks.format.column_range import DOUBLE, LONG, ColumnRange
from hudi_locks.metadata_table import INDEXES_PATH, MetadataTable, choose_columns, make_metadata_table
from hudi_locks.services import MetadataMade, TableServices, metadata_making
from hudi_locks.services.metadata_making import MetadataMaker
from hudi_locks.table import PROPERTIES_PATH, TableConfig
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, StopPoint
from hudi_locks.verification import verify_table

NAMES = "hoodie.table.metadata.partitions"
ALL = (
    "_hoodie_commit_time",
    "_hoodie_partition_path",
    "_hoodie_record_key",
    *["id", "region", "ts", "name", "price", "qty"],
)
META = ALL[:3]
POINTS = [StopPoint.SERVICE_STAGED, StopPoint.SERVICE_PLANNED, StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_REQUESTED]


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[WholeTable]:
    """With rows in base files and logs."""
    whole = WholeTable(str(tmp_path / "t"), foreign=True)
    whole.put_base("g-0", rows=5)
    whole.put_log("g-0", rows=7)
    whole.put_base("h-0")
    yield whole
    whole.close()


def find(whole: WholeTable) -> MetadataTable | None:
    properties = decode_properties(whole.storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    return MetadataTable.of(whole.storage, TableConfig.from_properties(properties))


def test_it_names_every_file_and_the_ranges_of_its_columns(whole: WholeTable) -> None:
    made = whole.services.make_metadata_table()
    columns = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", *SCHEMA.names[5:])
    assert made == MetadataMade(("files", "column_stats", "partition_stats"), 3, columns)
    found = find(whole)
    assert found is not None
    assert found.indexed_columns == columns
    view = found.view(whole.table.timeline())
    listed = {e.name: e.size for e in whole.storage.list("region=eu") if not e.name.startswith(".hoodie")}
    assert view.files == {"region=eu": listed}
    told = {(r.statistics.name[0] == ".", r.statistics.column): r.statistics for r in column_stats(view)}
    bounds = {key: (one.low and one.low.value, one.high and one.high.value, one.values) for key, one in told.items()}
    assert bounds[True, "_hoodie_record_key"] == ("k0", "k6", 7)
    assert {key[1] for key in told} == set(columns)
    report = verify_table(whole.storage)
    assert report.damages == ()
    assert report.checked["ranges in the metadata table"] > 0


def column_stats(view: Any) -> list[Any]:
    return [record for record in view.read(MetadataPartition.COLUMN_STATS).values() if record.statistics]


@pytest.mark.parametrize(("bundle", "version"), BUNDLES.items())
def test_it_says_of_itself_what_jvm_hudi_says(harness: Harness, bundle: str, version: int, monkeypatch: Any) -> None:
    """But for what nothing depends on: the comment, the database, and the key generator of the table."""
    kept, golden = begin_plain(harness, monkeypatch, version), read_golden(bundle)
    assert MetadataMaker(kept.open().coordinator).run() is not None
    ours = kept.storage.read(f"{METADATA_FOLDER}/.hoodie/hoodie.properties") or b""
    theirs = golden["cow/.hoodie/hoodie.properties"].replace(b"1229203194", b"2107604303").replace(b"=cow_", b"=t_")
    found, expected = decode_properties(ours, "ours"), decode_properties(theirs, "theirs")
    assert {**found, "hoodie.table.checksum": ""} == {**expected, "hoodie.table.checksum": ""}
    assert json.loads(kept.storage.read(INDEXES_PATH) or b"") == json.loads(golden["cow.index_defs/index.json"])
    properties = decode_properties(kept.storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    assert properties["hoodie.table.index.defs.path"] == INDEXES_PATH
    assert "hoodie.metadata.enable" not in properties
    for part, groups in (("files", 1), ("column_stats", 2), ("partition_stats", 1)):
        names = {path for path in golden if path.startswith(f"cow/{part}/") and "_0000000000000000" in path}
        logs = sorted(name.removeprefix(f"cow/{part}/") for name in names if ".log." in name)
        assert len(logs) == groups
        assert logs == [
            name for name in kept.names(f"{METADATA_FOLDER}/{part}") if name.startswith(".") and "log" in name
        ]


def begin_plain(harness: Harness, monkeypatch: Any, version: int = 9) -> MetadataHarness:
    """A table with some commits and no metadata table, whose files are not what they seem."""
    kept = MetadataHarness.of(harness, version)
    kept.foreign = True
    kept.storage.delete_folder(METADATA_FOLDER)
    kept.say("")
    monkeypatch.setattr(
        metadata_making, "measure_file", lambda *_, **__: {name: ColumnRange(LONG, 1, 2, 2, 0) for name in ALL}
    )
    for number in range(3):
        put(kept, f"p/g-{number}")
    return kept


def put(kept: MetadataHarness, group: str) -> str:
    """A commit by a process that does not know whether there is a metadata table."""
    transactions = Harness.open(kept, locks=OPEN_LOCK)
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(kept.rewrite(tx, group)).is_committed
    kept.clock.advance(1)
    return str(tx.instant)


@pytest.fixture
def plain(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> MetadataHarness:
    return begin_plain(harness, monkeypatch)


def make(kept: MetadataHarness, *, trace: Any = None, anew: bool = False) -> MetadataMade | None:
    return MetadataMaker(Harness.open(kept, trace=trace, locks=OPEN_LOCK).coordinator).run(anew=anew)


def check(kept: MetadataHarness) -> None:
    """It is named, and names the files of all completed writes."""
    assert sorted(kept.storage.read(PROPERTIES_PATH) or b"")
    assert f"{NAMES}=column_stats,files,partition_stats".encode() in (kept.storage.read(PROPERTIES_PATH) or b"")
    kept.check_names()
    assert kept.own_timeline().pending() == ()


def test_writes_keep_it_up_to_date_from_then_on(plain: MetadataHarness) -> None:
    assert make(plain) is not None
    check(plain)
    for number in range(4):
        put(plain, f"p/g-{number}")
        check(plain)
    plain.cleaner(commits__retained=1).run()
    check(plain)
    assert make(plain) is None, "there is one"


def test_one_that_is_there_is_made_anew(plain: MetadataHarness) -> None:
    make(plain)
    [log] = [name for name in plain.names(f"{METADATA_FOLDER}/files") if name.startswith(".files")]
    plain.storage.replace(f"{METADATA_FOLDER}/files/{log}", b"damage")
    assert make(plain, anew=True) is not None
    check(plain)
    plain.storage.delete_folder(METADATA_FOLDER)
    with pytest.raises(DamagedTable, match="hudi-locks metadata rebuild"):
        put(plain, "p/g-0")
    assert make(plain, anew=True) is not None
    check(plain)


@pytest.mark.parametrize("point", POINTS)
def test_wherever_it_dies_no_write_is_missed_and_another_call_makes_it(
    plain: MetadataHarness, point: StopPoint
) -> None:
    with pytest.raises(Killed):
        make(plain, trace=stop_at(point))
    put(plain, "p/g-7")
    if b"files" in (plain.storage.read(PROPERTIES_PATH) or b""):
        check(plain)
    make(plain)
    check(plain)
    make(plain, anew=True)
    check(plain)


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_believes_to_hold_the_lock_too_is_in_it(plain: MetadataHarness, point: StopPoint) -> None:
    made = make(plain, trace=stop_at(point, lambda: put(plain, "p/g-7")))
    assert made is not None
    check(plain)


def test_a_write_that_began_without_it_begins_anew(plain: MetadataHarness) -> None:
    begun: list[Any] = []

    def begin() -> None:
        begun.append(Harness.open(plain, locks=OPEN_LOCK).begin("commit", "UPSERT"))

    assert make(plain, trace=stop_at(StopPoint.SERVICE_STAGED, begin)) is not None
    result = begun[0].publish(plain.rewrite(begun[0], "p/g-0"))
    assert result.outcome is Outcome.ABORTED
    assert "changed while the write was under way" in result.reason
    put(plain, "p/g-0")
    check(plain)


def test_nothing_is_made_while_something_is_under_way(plain: MetadataHarness) -> None:
    tx = Harness.open(plain, locks=OPEN_LOCK).begin("commit", "UPSERT")
    with pytest.raises(TableError, match=f"commit {tx.instant} is under way"):
        make(plain)
    assert plain.names(METADATA_FOLDER) == []
    assert tx.publish(plain.rewrite(tx, "p/g-0")).outcome is Outcome.COMMITTED


def test_writers_that_do_not_look_are_named_with_the_way_out(plain: MetadataHarness) -> None:
    plain.foreign = False
    with pytest.raises(UnsupportedTable, match="start its writers anew"):
        make(plain)


def test_the_option_makes_it_after_a_write(plain: MetadataHarness) -> None:
    services = TableServices(Harness.open(plain, locks=OPEN_LOCK), {"hoodie.metadata.enable": "true"})
    assert services.follow_write() == ()
    check(plain)
    assert services.follow_write() == ()
    tx = Harness.open(plain, locks=OPEN_LOCK).begin("commit", "UPSERT")
    drop_named(plain)
    [warning] = TableServices(Harness.open(plain, locks=OPEN_LOCK), {"hoodie.metadata.enable": "true"}).follow_write()
    assert f"{tx.instant} is under way" in warning
    tx.abort("enough")


def test_the_option_makes_it_where_the_properties_name_no_part_of_one(plain: MetadataHarness) -> None:
    """JVM Hudi leaves the key without a value when it drops the last part."""
    transactions = Harness.open(plain, locks=OPEN_LOCK)
    services = TableServices(transactions, {"hoodie.metadata.enable": "true"})
    assert f"{NAMES}=\n".encode() in (plain.storage.read(PROPERTIES_PATH) or b"")
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(plain.rewrite(tx, "p/g-0")).is_committed
    assert services.follow_write() == ()
    check(plain)


def drop_named(kept: MetadataHarness) -> None:
    kept.say("")
    kept.storage.delete_folder(METADATA_FOLDER)


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        ({"hoodie.metadata.index.column.stats.enable": "false"}, ()),
        ({"hoodie.metadata.index.column.stats.max.columns.to.index": "0"}, META),
        ({"hoodie.metadata.index.column.stats.column.list": f" {SCHEMA.names[6]}"}, (*META, SCHEMA.names[6])),
    ],
)
def test_it_has_ranges_of_the_columns_that_the_options_name(
    whole: WholeTable, options: dict[str, str], measured: tuple[str, ...]
) -> None:
    made = MetadataMaker(whole.transactions.coordinator, options).run()
    assert made is not None
    assert made.columns == measured
    assert (MetadataPartition.COLUMN_STATS.value in made.parts) == bool(measured)
    assert verify_table(whole.storage).damages == ()


def test_a_column_that_has_no_range_is_not_named_in_vain(whole: WholeTable) -> None:
    maker = MetadataMaker(whole.transactions.coordinator, {"hoodie.metadata.index.column.stats.column.list": "nothing"})
    with pytest.raises(ConfigError, match=r"column\.list names nothing, which is no column of") as caught:
        maker.run()
    assert caught.value.column == "nothing"


def test_a_column_whose_type_was_widened_has_no_statistics(whole: WholeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    name = SCHEMA.names[5]
    kinds = choose_columns(pa.schema([*SCHEMA][5:]), version=9)
    assert kinds[name] != DOUBLE
    monkeypatch.setattr(metadata_making, "choose_columns", lambda *_, **__: {**kinds, name: DOUBLE})
    made = whole.services.make_metadata_table()
    assert made is not None
    assert made.left_out == (name,)
    assert verify_table(whole.storage).damages == ()


def test_a_table_without_partitions_has_no_statistics_of_them(plain: MetadataHarness) -> None:
    config = TableConfig("t", ("id",), version=9)
    written = CommitMetadata.of([], "UPSERT", schema=None)
    made = make_metadata_table(plain.storage, config, written, columns=("id",), completed="20260101000000000")
    assert made == (MetadataPartition.FILES, MetadataPartition.COLUMN_STATS)


def test_a_record_index_is_spread_as_the_options_say(tmp_path: Path) -> None:
    whole = WholeTable(str(tmp_path / "t"), foreign=True)
    options = {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "2",
        "hoodie.metadata.record.index.max.filegroup.count": "7",
    }
    maker = MetadataMaker(whole.transactions.coordinator, options)
    assert [maker.spread.count_groups(keys) for keys in (0, 10**12)] == [2, 7]
    made = maker.run()
    assert made == MetadataMade(("files", "record_index"), 0, keys=0)
    names = whole.storage.list_names(f"{METADATA_FOLDER}/record_index")
    assert sorted(name.partition("_")[0] for name in names if "log" in name) == [
        ".record-index-0000-0",
        ".record-index-0001-0",
    ]


def test_a_table_with_a_key_in_two_rows_gets_no_record_index_and_stays_as_it_is(whole: WholeTable) -> None:
    before = {name: whole.storage.read(name) for name in (PROPERTIES_PATH,)}
    maker = MetadataMaker(whole.transactions.coordinator, {"hoodie.metadata.record.index.enable": "true"})
    with pytest.raises(UnsupportedTable, match="no record index can be made: the key 'k"):
        maker.run()
    assert before == {PROPERTIES_PATH: whole.storage.read(PROPERTIES_PATH)}
    assert whole.storage.stat(METADATA_FOLDER) is None


def test_an_empty_table_has_files_alone(tmp_path: Path) -> None:
    whole = WholeTable(str(tmp_path / "t"), foreign=True)
    assert whole.services.make_metadata_table() == MetadataMade(("files",), 0)
    found = find(whole)
    assert found is not None
    assert found.view(Timeline.load(whole.storage, whole.table.layout)).files == {}


def test_the_commands_make_it_verify_it_and_drop_it(whole: WholeTable, capsys: pytest.CaptureFixture[str]) -> None:
    path = whole.table.storage.base
    for command, told in (
        ("init", "made files, column_stats, partition_stats for 3 files"),
        ("init", "has a metadata table already"),
        ("rebuild", "made files, column_stats, partition_stats for 3 files"),
        ("verify", "0 wrong"),
        ("drop", "dropped the metadata table (column_stats, files, partition_stats)"),
    ):
        with pytest.raises(SystemExit) as done:
            main(["metadata", command, path])
        assert done.value.code in (0, None)
        assert told in capsys.readouterr().out


def test_programs_get_one_json_object_of_each(whole: WholeTable, capsys: pytest.CaptureFixture[str]) -> None:
    path, parts = whole.table.storage.base, ["files", "column_stats", "partition_stats"]

    def run(command: str) -> Any:
        with pytest.raises(SystemExit) as done:
            main(["metadata", command, path, "--json"])
        assert not done.value.code
        return check_json(["metadata", command], capsys.readouterr().out)

    made = run("init")
    assert (made["parts"], made["files"], made["lost"]) == (parts, 3, [])
    assert run("init") is None
    assert run("rebuild") == made
    assert run("drop") == {"dropped": sorted(parts)}
    assert run("drop") == {"dropped": []}
