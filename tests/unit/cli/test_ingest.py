"""`hudi-locks ingest` takes Hudi Streamer's command line: all that is looked at before Spark starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.cli import ingest
from hudi_locks.cli.streamer_options import STREAMER_OPTIONS

Run = Callable[..., tuple[int, str, str]]
SOURCES = "org.apache.hudi.utilities.sources"
SCHEMAS = "org.apache.hudi.utilities.schema"
FILE_KEY = "hoodie.streamer.schemaprovider.source.schema.file"
URL_KEY = "hoodie.streamer.schemaprovider.registry.url"


class Asker:
    """Runs command lines, and keeps what they asked for in place of starting Spark."""

    def __init__(self, hudi_locks: Run) -> None:
        self._hudi_locks = hudi_locks
        self.requests: list[ingest.IngestRequest] = []

    def __call__(self, *words: str, target: str = "/t") -> ingest.IngestRequest:
        status, _, err = self.run(*words, target=target)
        assert (status, err) == (0, "")
        return self.requests[-1]

    def run(self, *words: str, target: str = "/t") -> tuple[int, str, str]:
        return self._hudi_locks("ingest", "--target-base-path", target, *words)

    def refuse(self, *words: str) -> str:
        """The one sentence that is said instead."""
        status, out, err = self.run(*words)
        assert (status, out, self.requests) == (2, "", [])
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err


@pytest.fixture
def ask(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> Asker:
    asker = Asker(hudi_locks)

    def note(request: ingest.IngestRequest) -> dict[str, object]:
        asker.requests.append(request)
        return {"batches": 0}

    monkeypatch.setattr(ingest, "_run", note)
    return asker


@pytest.mark.filterwarnings("ignore::hudi_locks.errors.UnknownKeyWarning")
@pytest.mark.parametrize("target", [r"file:\/\/\/tmp/hudi-deltastreamer-op", "file:///tmp/hudi-deltastreamer-op"])
def test_the_example_of_the_documentation_is_taken_as_it_stands(ask: Asker, tmp_path: Path, target: str) -> None:
    (tmp_path / "base.properties").write_text("hoodie.upsert.shuffle.parallelism=2\nauto.offset.reset=latest\n")
    (tmp_path / "kafka-source.properties").write_text(
        "include=base.properties\n"
        "hoodie.datasource.write.recordkey.field=impressionid\n"
        "hoodie.datasource.write.partitionpath.field=datestr\n"
        "hoodie.streamer.schemaprovider.registry.url=http://registry/subjects/impressions-value/versions/latest\n"
        "hoodie.streamer.source.kafka.topic=impressions\n"
        "bootstrap.servers=broker:1\nauto.offset.reset=earliest\nschema.registry.url=http://registry\n"
    )
    asked = ask(
        *("--props", f"file://{tmp_path}/kafka-source.properties"),
        *("--schemaprovider-class", f"{SCHEMAS}.SchemaRegistryProvider"),
        *("--source-class", f"{SOURCES}.AvroKafkaSource", "--source-ordering-field", "impresssiontime"),
        *("--target-table", "uber.impressions", "--op", "BULK_INSERT"),
        target=target,
    )
    assert asked.path == "file:///tmp/hudi-deltastreamer-op"
    assert (
        asked.options.items()
        >= {
            "hoodie.upsert.shuffle.parallelism": "2",
            "auto.offset.reset": "earliest",
            "hoodie.table.name": "uber.impressions",
            "hoodie.datasource.write.precombine.field": "impresssiontime",
            "hoodie.datasource.write.operation": "bulk_insert",
        }.items()
    )


@pytest.mark.parametrize("address", ["{}", "file://{}", "file:{}", r"file:\/\/{}"])
def test_properties_lie_under_a_path_or_an_address(ask: Asker, tmp_path: Path, address: str) -> None:
    (tmp_path / "p").write_text("hoodie.table.name=one\nhoodie.datasource.write.recordkey.field=id")
    confs = ("--hoodie-conf", "hoodie.table.name=two", "--hoodie-conf", "hoodie.bulkinsert.shuffle.parallelism=3")
    options = ask("--props", address.format(tmp_path / "p"), *confs).options
    assert options["hoodie.table.name"] == "two"
    assert options["hoodie.bulkinsert.shuffle.parallelism"] == "3"
    assert options["hoodie.datasource.write.recordkey.field"] == "id"


def test_properties_include_others_relative_to_their_own_file(ask: Asker, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main").write_text("hoodie.table.name=early\ninclude=sub/one\ninclude=two\n")
    (tmp_path / "sub" / "one").write_text(f"include=three\ninclude=file://{tmp_path}/four\nhoodie.table.name=late\n")
    (tmp_path / "sub" / "three").write_text("x.three=3")
    (tmp_path / "four").write_text("x.four=4")
    (tmp_path / "two").write_text("x.two=2")
    options = ask("--props", str(tmp_path / "main")).options
    assert options.items() >= {"hoodie.table.name": "late", "x.two": "2", "x.three": "3", "x.four": "4"}.items()
    assert "include" not in options


def test_properties_that_cannot_be_read_are_one_sentence(ask: Asker, tmp_path: Path) -> None:
    (tmp_path / "loop").write_text("include=loop")
    (tmp_path / "broken").write_text("include=gone")
    assert "gone cannot be read: No such file" in ask.refuse("--props", f"file://{tmp_path}/gone")
    assert f"which {tmp_path}/broken includes, cannot be read" in ask.refuse("--props", str(tmp_path / "broken"))
    assert "includes itself" in ask.refuse("--props", str(tmp_path / "loop"))
    assert "scheme 'hdfs' is not supported" in ask.refuse("--props", "hdfs://host/p")
    assert "Is a directory" in ask.refuse("--props", str(tmp_path))


@pytest.mark.parametrize("package", ["", f"{SCHEMAS}.", "org.apache.hudi.utilities.deltastreamer."])
@pytest.mark.parametrize(
    ("name", "key", "other"),
    [("FilebasedSchemaProvider", FILE_KEY, URL_KEY), ("SchemaRegistryProvider", URL_KEY, FILE_KEY)],
)
def test_a_schema_provider_agrees_with_its_key(ask: Asker, package: str, name: str, key: str, other: str) -> None:
    words = ("--schemaprovider-class", package + name)
    assert f"needs {key}" in ask.refuse(*words)
    assert f"needs {key}" in ask.refuse(*words, "--hoodie-conf", f"{other}=x")
    assert f"{other} is for another class" in ask.refuse(
        *words, "--hoodie-conf", f"{other}=x", "--hoodie-conf", f"{key}=x"
    )
    assert ask(*words, "--hoodie-conf", f"{key}=x").options[key] == "x"


@pytest.mark.parametrize("name", [f"{SCHEMAS}.HiveSchemaProvider", "com.example.FilebasedSchemaProvider"])
def test_another_schema_provider_is_refused_with_the_way_out(ask: Asker, name: str) -> None:
    said = ask.refuse("--schemaprovider-class", name)
    assert name in said
    assert FILE_KEY in said
    assert "IngestJob" in said


@pytest.mark.parametrize("kind", ["JsonDFS", "CsvDFS", "ParquetDFS", "AvroDFS", "JsonKafka", "AvroKafka"])
def test_sources_are_known_by_their_java_names(ask: Asker, kind: str) -> None:
    for package in ("", f"{SOURCES}."):
        assert ask("--source-class", f"{package}{kind}Source").source == f"{package}{kind}Source"


@pytest.mark.parametrize("name", [f"{SOURCES}.ORCDFSSource", "com.example.JsonDFSSource"])
def test_another_source_is_refused(ask: Asker, name: str) -> None:
    said = ask.refuse("--source-class", name)
    assert name in said
    assert "AvroKafkaSource" in said


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (("--op", "INSERT"), "hoodie.datasource.write.operation", "insert"),
        (("--table-type", "COPY_ON_WRITE"), "hoodie.datasource.write.table.type", "COPY_ON_WRITE"),
        (("--table-type=MERGE_ON_READ",), "hoodie.datasource.write.table.type", "MERGE_ON_READ"),
        (("--table-type", "MERGE_ON_READ"), "hoodie.compact.inline", "true"),
        (("--table-type", "MERGE_ON_READ", "--disable-compaction"), "hoodie.compact.inline", "false"),
        (
            ("--table-type", "MERGE_ON_READ", "--continuous"),
            "hoodie.datasource.compaction.async.enable",
            "true",
        ),
        (
            ("--disable-compaction", "--table-type", "MERGE_ON_READ", "--continuous"),
            "hoodie.datasource.compaction.async.enable",
            "false",
        ),
        (("--payload-class", "a.B"), "hoodie.datasource.write.payload.class", "a.B"),
        (("--merge-mode", "COMMIT_TIME_ORDERING"), "hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING"),
        (("--filter-dupes", "--op", "INSERT"), "hoodie.datasource.write.insert.drop.duplicates", "true"),
        (("--source-ordering-fields", "ts"), "hoodie.datasource.write.precombine.field", "ts"),
    ],
)
def test_options_of_streamer_stand_for_keys(ask: Asker, words: tuple[str, ...], key: str, value: str) -> None:
    assert ask(*words).options[key] == value


def test_how_a_job_runs_is_said_in_the_options_of_streamer(ask: Asker) -> None:
    asked = ask(
        *(
            "--continuous",
            "--min-sync-interval-seconds",
            "5",
            "--max-retry-count",
            "7",
            "--retry-interval-seconds",
            "9",
        ),
        *("--source-limit", "1000", "--spark-master", "local[3]", "--spark-app-name", "mine"),
        *("--checkpoint", r"file:\/\/\/tmp/read", "--base-file-format", "parquet", "--identifier", "i"),
    )
    assert asked.job == {
        "identifier": "i",
        "checkpoint": "file:///tmp/read",
        "is_continuous": True,
        "interval_s": 5,
        "retries": 7,
        "retry_interval_s": 9,
    }
    assert (asked.master, asked.app_name) == ("local[3]", "mine")
    assert asked.limits == {"files_per_batch": None, "source_limit": 1000}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--op", "INSERT_OVERWRITE"), "--op INSERT_OVERWRITE is none of UPSERT"),
        (("--op", "DELETE"), "--op DELETE is none of"),
        (("--filter-dupes",), "--filter-dupes goes with --op INSERT"),
        (("--filter-dupes", "--op", "BULK_INSERT"), "--filter-dupes goes with --op INSERT"),
        (("--base-file-format", "HFILE"), "--base-file-format HFILE is not offered"),
        (("--transformer-class",), "--transformer-class needs a value"),
        (("--hoodie-conf", "nothing"), "nothing is not of the form key=value"),
        *(
            (("--checkpoint", value), f"--checkpoint {value} is no path of a folder")
            for value in ("1700000000000", "trips,0:5,1:7", "20260101#a/b.parquet", "resumeFromInstantRequestTime: 1")
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(ask: Asker, words: tuple[str, ...], said: str) -> None:
    assert said in ask.refuse(*words)


REFUSED = [name for name, option in STREAMER_OPTIONS.items() if option.refusal]
NO_EFFECT = [name for name, option in STREAMER_OPTIONS.items() if option.no_effect]


def words_of(name: str) -> tuple[str, ...]:
    return (name,) if STREAMER_OPTIONS[name].is_flag else (name, "1")


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_that_is_not_offered_is_refused_with_the_way_out(ask: Asker, name: str) -> None:
    said = ask.refuse(*words_of(name))
    assert f"{' '.join(words_of(name))} is not offered: {STREAMER_OPTIONS[name].refusal}" in said


@pytest.mark.parametrize("name", NO_EFFECT)
@pytest.mark.filterwarnings("default::hudi_locks.errors.NoEffectWarning")
def test_an_option_without_effect_is_warned_about(ask: Asker, name: str) -> None:
    with pytest.warns(match=f"^{' '.join(words_of(name))} has no effect here: "):
        assert ask.run(*words_of(name))[0] == 0
    assert len(ask.requests) == 1


DECLARED_BY_US = """
--target-base-path --target-table --props --hoodie-conf --source-class --source-ordering-field
--source-ordering-fields --schemaprovider-class --source-limit --op --filter-dupes --continuous
--min-sync-interval-seconds --spark-master --checkpoint --retry-interval-seconds --max-retry-count --spark-app-name
--help
"""
OF_STREAMER = """
--allow-commit-on-no-checkpoint-change --base-file-format --bootstrap-index-class --bootstrap-overwrite
--cluster-scheduling-minshare --cluster-scheduling-weight --commit-on-errors --compact-scheduling-minshare
--compact-scheduling-weight --config-hot-update-strategy-class --delta-sync-scheduling-minshare
--delta-sync-scheduling-weight --disable-compaction --enable-hive-support --enable-hive-sync --enable-sync
--force-empty-sync --ignore-checkpoint --ingestion-metrics-class --initial-checkpoint-provider
--max-pending-clustering --max-pending-compactions --merge-impl-classes --merge-mode --merge-strategy-id
--payload-class --post-write-termination-strategy-class --record-merge-custom-implementation-classes
--record-merge-mode --record-merge-strategy-id --retry-last-pending-inline-clustering -rc
--retry-last-pending-inline-compaction --retry-on-source-failures --run-bootstrap --sync-tool-classes --table-type
--transformer-class
"""


def test_every_option_of_streamer_is_honoured_refused_or_warned_about(hudi_locks: Run) -> None:
    status, out, _ = hudi_locks("ingest", "--help")
    assert status == 0
    assert set(STREAMER_OPTIONS) == set(OF_STREAMER.split())
    assert [name for name in (DECLARED_BY_US + OF_STREAMER).split() if name not in out] == []
    page = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text()
    assert [name for name in (DECLARED_BY_US + OF_STREAMER).split() if name != "--help" and name not in page] == []
    assert all(option.keys or option.refusal or option.no_effect for option in STREAMER_OPTIONS.values())


def test_a_misspelt_option_is_none(ask: Asker) -> None:
    status, _, err = ask.run("--sorce-limit", "1")
    assert status == 2
    assert "No such option" in err


def test_a_folder_is_no_position(ask: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "read").mkdir()
    monkeypatch.chdir(tmp_path)
    for folder in ("read", "./new", "/some/where", "file:///a/b"):
        assert ask("--checkpoint", folder).job["checkpoint"] == folder


def test_a_folder_of_files_may_be_an_address(ask: Asker, tmp_path: Path) -> None:
    key: Any = "hoodie.streamer.source.dfs.root"
    assert ask("--hoodie-conf", f"{key}=file://{tmp_path}").options[key] == f"file://{tmp_path}"
    ask.requests.clear()
    assert "there is no such folder" in ask.refuse("--hoodie-conf", f"{key}=file://{tmp_path}/gone")
