"""What a catalog is told, and when; a real one is asked by the tests beside JVM Hudi."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace

import pytest
from memory_catalog import MemoryCatalog

from hudi_locks.catalog import CatalogEntry, CatalogSync, SyncSettings, describe_table
from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable, ConfigError, NoEffectWarning
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

ASKED = {"hoodie.datasource.hive_sync.enable": "true", "hoodie.datasource.hive_sync.mode": "hms"}
TOOL = "org.apache.hudi.hive.HiveSyncTool"
EXTRACTOR = "hoodie.datasource.hive_sync.partition_extractor_class"
Golden = Callable[[str], LocalStorage]


def sync_of(table: Table, **more: str) -> CatalogSync:
    [found] = CatalogSync.of(
        Options({**ASKED, **{key.replace("__", "."): value for key, value in more.items()}}), table
    )
    return found


def test_a_table_is_told_with_its_partitions_and_the_time_of_its_last_write(
    golden: Golden, catalog: MemoryCatalog
) -> None:
    table = Table.load(golden("v9_cow"))
    last = table.timeline().completed_between("")[-1]
    result = sync_of(table, hoodie__datasource__hive_sync__batch_num="1").run()
    assert result.tables == (f"default.{table.config.name}",)
    assert catalog.databases == ["default"]
    entry = catalog.tables[result.tables[0]]
    assert entry.properties["last_commit_completion_time_sync"] == last.completion
    partitions = catalog.partitions[table.config.name]
    assert len(partitions) == result.partitions_told > 1
    assert catalog.batches == [1] * len(partitions) + [0]
    assert all(place.startswith(f"{table.storage.base}/") for place in partitions.values())


def test_only_partitions_of_later_writes_are_told_again(golden: Golden, catalog: MemoryCatalog) -> None:
    table = Table.load(golden("v9_cow"))
    writes = table.timeline().completed_between("")
    name = f"default.{table.config.name}"
    sync_of(table).run()
    assert sync_of(table).run().partitions_told == 0
    known = catalog.tables[name]
    told = {
        "last_commit_time_sync": writes[-2].requested,
        "last_commit_completion_time_sync": str(writes[-2].completion),
    }
    catalog.tables[name] = replace(known, properties={**known.properties, **told})
    assert sync_of(table).run().partitions_told > 0
    assert catalog.tables[name].properties == known.properties
    everything = sync_of(table, hoodie__meta__sync__incremental="false").run()
    assert everything.partitions_told == len(catalog.partitions[table.config.name])


def test_what_has_no_folder_goes_where_all_are_compared(golden: Golden, catalog: MemoryCatalog) -> None:
    table = Table.load(golden("v9_cow"))
    sync_of(table).run()
    before = dict(catalog.partitions[table.config.name])
    catalog.partitions[table.config.name][("gone",)] = "/elsewhere"
    sync_of(table, hoodie__meta__sync__incremental="false").run()
    assert catalog.partitions[table.config.name] == before


def test_the_time_stays_while_nothing_changes_if_asked(golden: Golden, catalog: MemoryCatalog) -> None:
    table = Table.load(golden("v9_cow"))
    sync_of(table).run()
    name = f"default.{table.config.name}"
    known = catalog.tables[name] = replace(
        catalog.tables[name], properties={**catalog.tables[name].properties, "a": "b"}
    )
    sync_of(table, hoodie__datasource__meta_sync__condition__sync="true").run()
    assert catalog.tables[name] == known
    sync_of(table).run()
    assert "a" not in catalog.tables[name].properties


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["t_ro", "t_rt", "t"]),
        ({"hoodie.datasource.hive_sync.table.strategy": "RO"}, ["t"]),
        ({"hoodie.datasource.hive_sync.table.strategy": "rt"}, ["t"]),
        ({"hoodie.datasource.hive_sync.skip_ro_suffix": "true"}, ["t", "t_rt", "t"]),
        ({"hoodie.meta.sync.sync_snapshot_with_table_name": "false"}, ["t_ro", "t_rt"]),
    ],
)
def test_a_merge_on_read_table_has_up_to_three(golden: Golden, options: dict[str, str], names: list[str]) -> None:
    table = Table.load(golden("v9_mor"))
    given = Options({**ASKED, "hoodie.datasource.hive_sync.table": "T", **options})
    found = describe_table(table, table.timeline(), SyncSettings.of(given, table.config))
    assert [one.name for one in found] == names
    optimized = [one.serde["hoodie.query.as.ro.table"] == "true" for one in found]
    merged = [one.input_format.endswith("RealtimeInputFormat") for one in found]
    assert optimized == [not is_merged for is_merged in merged]
    assert merged[-1] is (options.get("hoodie.datasource.hive_sync.table.strategy") != "RO")


def test_owners_say_what_is_told(golden: Golden) -> None:
    table = Table.load(golden("v9_cow"))
    told = {
        **ASKED,
        "hoodie.datasource.hive_sync.database": "Lake",
        "hoodie.datasource.hive_sync.auto_create_database": "false",
        "hoodie.datasource.hive_sync.omit_metadata_fields": "true",
        "hoodie.datasource.hive_sync.sync_as_datasource": "true",
        "hoodie.datasource.hive_sync.schema_string_length_thresh": "50",
        "hoodie.datasource.hive_sync.support_timestamp": "true",
        "hoodie.datasource.hive_sync.partition_fields": "country",
        "hoodie.datasource.hive_sync.table_properties": "team = data\n\nq=a=b",
        "hoodie.datasource.hive_sync.serde_properties": "x=y",
    }
    [found] = describe_table(table, table.timeline(), SyncSettings.of(Options(told), table.config))
    assert found.database == "lake"
    assert not [column for column in found.columns if column.name.startswith("_hoodie_")]
    assert [(column.name, column.hive_type) for column in found.partition_columns] == [("country", "string")]
    assert (found.properties["team"], found.properties["q"], found.serde["x"]) == ("data", "a=b", "y")
    pieces = int(found.properties["spark.sql.sources.schema.numParts"])
    texts = [found.properties[f"spark.sql.sources.schema.part.{number}"] for number in range(pieces)]
    assert {len(text) for text in texts[:-1]} == {50}
    assert [one["name"] for one in json.loads("".join(texts))["fields"]][-1] == "country"
    plain = Options({**told, "hoodie.datasource.hive_sync.sync_as_datasource": "false"})
    [bare] = describe_table(table, table.timeline(), SyncSettings.of(plain, table.config))
    assert bare.properties.keys() == {"team", "q"}


@pytest.mark.parametrize(
    ("config", "extractor", "folder", "values"),
    [
        (TableConfig("t", ("id",), partition_fields=("day",)), "", "2024/01/02", ("2024/01/02",)),
        (TableConfig("t", ("id",), partition_fields=("a", "b"), hive_style=True), "", "a=1/b=2", ("1", "2")),
        (TableConfig("t", ("id",), partition_fields=("a",), url_encode=True), "", "x%2Fy", ("x/y",)),
        (
            TableConfig("t", ("id",), partition_fields=("a",)),
            "",
            "__HIVE_DEFAULT_PARTITION__",
            ("__HIVE_DEFAULT_PARTITION__",),
        ),
        (
            TableConfig("t", ("id",), partition_fields=("day",)),
            "SlashEncodedDayPartitionValueExtractor",
            "2024/01/02",
            ("2024-01-02",),
        ),
        (TableConfig("t", ("id",), partition_fields=("day",)), "NonPartitionedExtractor", None, ()),
    ],
)
def test_values_are_told_from_folders(
    config: TableConfig, extractor: str, folder: str | None, values: tuple[str, ...]
) -> None:
    given = {EXTRACTOR: f"org.apache.hudi.hive.{extractor}"} if extractor else {}
    settings = SyncSettings.of(Options(given), config)
    assert len(settings.partition_columns) == len(values)
    assert folder is None or settings.read_values(folder, config) == values


def test_what_does_not_fit_is_refused_by_its_key(golden: Golden) -> None:
    table = Table.load(golden("v9_cow"))
    with pytest.raises(ConfigError, match=f"{EXTRACTOR}=Mine is not offered; use one of Single"):
        CatalogSync.of(Options({**ASKED, EXTRACTOR: "com.example.Mine"}), table)
    config = TableConfig("t", ("id",), partition_fields=("a", "b"))
    settings = SyncSettings.of(Options({"hoodie.datasource.hive_sync.partition_fields": "a"}), config)
    with pytest.raises(ConfigError, match=r"partition_fields names 1 columns, and the folder '1/2' has 2"):
        settings.read_values("1/2", config)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hoodie.datasource.hive_sync.enable": "true"}, "without hoodie.datasource.hive_sync.mode Hudi asks by JDBC"),
        (
            {"hoodie.datasource.meta.sync.enable": "true", "hoodie.datasource.hive_sync.mode": "jdbc"},
            "hoodie.datasource.hive_sync.mode=jdbc is not offered",
        ),
        (
            {"hoodie.datasource.meta.sync.enable": "true", "hoodie.meta.sync.client.tool.class": "a.BigQuery"},
            "hoodie.meta.sync.client.tool.class=a.BigQuery is not offered: run that tool",
        ),
    ],
)
def test_a_sync_that_is_not_offered_is_said(golden: Golden, options: dict[str, str], said: str) -> None:
    with pytest.warns(NoEffectWarning, match=said):
        assert CatalogSync.of(Options(options), Table.load(golden("v9_cow"))) == ()


def test_one_tool_of_several_is_followed(golden: Golden) -> None:
    asked = {
        "hoodie.datasource.meta.sync.enable": "true",
        "hoodie.meta.sync.client.tool.class": f"a.BigQuery, {TOOL}",
        "hoodie.datasource.hive_sync.mode": "HMS",
    }
    with pytest.warns(NoEffectWarning, match=r"a\.BigQuery"):
        assert [one.settings.kind for one in CatalogSync.of(Options(asked), Table.load(golden("v9_cow")))] == ["hive"]


def test_nothing_is_asked_and_nothing_said_by_default(golden: Golden) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert CatalogSync.of(Options({}), Table.load(golden("v9_cow"))) == ()


def test_a_sync_that_fails_is_told_and_fails_nothing(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_kind: str, _options: Options) -> None:
        raise BackendUnavailable("no metastore can be reached: thrift://m:1")

    monkeypatch.setattr("hudi_locks.catalog.sync.open_catalog", fail)
    sync = sync_of(Table.load(golden("v9_cow")), hoodie__datasource__hive_sync__metastore__uris="thrift://m:1")
    [said] = sync.follow_write()
    assert "the next write tries again: no metastore can be reached: thrift://m:1" in said
    with pytest.raises(BackendUnavailable):
        sync.run()


def test_no_failure_of_a_sync_fails_a_write(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_kind: str, _options: Options) -> None:
        raise KeyError("uid 1000")

    monkeypatch.setattr("hudi_locks.catalog.sync.open_catalog", fail)
    [said] = sync_of(Table.load(golden("v9_cow"))).follow_write()
    assert said.endswith("tries again: KeyError('uid 1000')")


def test_a_table_of_another_place_is_left_alone(golden: Golden, catalog: MemoryCatalog) -> None:
    table = Table.load(golden("v9_cow"))
    there = catalog.tables[f"default.{table.config.name}"] = CatalogEntry("file:/elsewhere", (), {})
    with pytest.raises(BackendRefused, match=r"file:/elsewhere.*hoodie\.datasource\.hive_sync\.table"):
        sync_of(table).run()
    assert list(catalog.tables.values()) == [there]


@pytest.mark.parametrize(
    ("there", "base", "is_ours"),
    [
        ("s3a://lake/trips", "s3://lake/trips", True),
        ("s3://lake/trips/", "s3://lake/trips", True),
        ("s3://other/trips", "s3://lake/trips", False),
        ("hdfs://names:8020/trips", "webhdfs://names:9870/trips", True),
        ("file:/data/trips", "/data/trips", True),
        ("file:/data/rides", "/data/trips", False),
    ],
)
def test_a_place_has_many_names(
    golden: Golden, catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch, there: str, base: str, is_ours: bool
) -> None:
    table = Table.load(golden("v9_cow"))
    monkeypatch.setattr(
        "hudi_locks.catalog.sync.describe_table", lambda *how: [replace(describe_table(*how)[0], location=base)]
    )
    catalog.tables[f"default.{table.config.name}"] = CatalogEntry(there, (), {})
    if is_ours:
        assert sync_of(table).run().tables
        return
    with pytest.raises(BackendRefused, match=there):
        sync_of(table).run()


def test_columns_that_a_catalog_spells_in_small_letters_are_no_news(golden: Golden, catalog: MemoryCatalog) -> None:
    table = Table.load(golden("v9_cow"))
    sync_of(table).run()
    name = f"default.{table.config.name}"
    known = catalog.tables[name]
    shouted = tuple((column.upper(), kind) for column, kind in known.columns)
    catalog.tables[name] = replace(known, columns=shouted, properties={**known.properties, "mine": "stays"})
    sync_of(table, hoodie__datasource__meta_sync__condition__sync="true").run()
    assert catalog.tables[name].properties["mine"] == "stays"


def test_a_table_without_commits_is_not_told(tmp_path: object, catalog: MemoryCatalog) -> None:
    table = Table.create(LocalStorage(f"{tmp_path}/t"), TableConfig("t", ("id",)))
    assert sync_of(table).run().tables == ()
    assert catalog.tables == {}
