"""Properties of a table in one version, as another version says them."""

from __future__ import annotations

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.config import Options
from hudi_locks.errors import TableError, UnsupportedTable
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, TableConfig, read_current_properties, translate_properties

MODEL = "org.apache.hudi.common.model."
BY_PAYLOAD = "00000000-0000-0000-0000-000000000000"
LATEST, DEFAULT = f"{MODEL}OverwriteWithLatestAvroPayload", f"{MODEL}DefaultHoodieRecordPayload"
MODE, STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
CLASS, LEGACY = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
KIND, GENERATOR = "hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"
PARTIAL = "hoodie.table.partial.update.mode"
DELETE = "hoodie.record.merge.property.hoodie.payload.delete."


def describe(version: int, **changes: str) -> dict[str, str]:
    """A table of one key and one partition column; keys of `changes` have `__` for each dot."""
    known = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "region",
        "hoodie.table.timeline.timezone": "UTC",
        **({GENERATOR: "org.apache.hudi.keygen.SimpleKeyGenerator"} if version == 6 else {KIND: "SIMPLE"}),
    }
    return known | {key.replace("__", "."): value for key, value in changes.items()}


def translate(known: dict[str, str], to: int, **options: str) -> dict[str, str]:
    return translate_properties(known, to, Options({key.replace("__", "."): value for key, value in options.items()}))


@pytest.mark.parametrize(
    ("kind", "payload", "ordering", "mode"),
    [
        ("COPY_ON_WRITE", "", "ts", "COMMIT_TIME_ORDERING"),  # as Hudi 0.15 leaves it
        ("COPY_ON_WRITE", LATEST, "ts", "COMMIT_TIME_ORDERING"),
        ("COPY_ON_WRITE", DEFAULT, "ts", "EVENT_TIME_ORDERING"),
        ("COPY_ON_WRITE", f"{MODEL}EventTimeAvroPayload", "ts", "EVENT_TIME_ORDERING"),
        ("MERGE_ON_READ", LATEST, "ts", "EVENT_TIME_ORDERING"),
        ("MERGE_ON_READ", LATEST, "", "COMMIT_TIME_ORDERING"),
    ],
)
def test_a_payload_class_of_version_6_becomes_a_merge_mode(kind: str, payload: str, ordering: str, mode: str) -> None:
    given = {"hoodie__table__type": kind, "hoodie__table__precombine__field": ordering}
    given |= {"hoodie__compaction__payload__class": payload} if payload else {}
    known = describe(6, **{key: value for key, value in given.items() if value})
    found = translate(known, 8)
    assert found[MODE] == mode
    assert found[CLASS] == (DEFAULT if mode == "EVENT_TIME_ORDERING" else LATEST)
    assert found["hoodie.table.initial.version"] == "6"
    assert found["hoodie.table.keygenerator.type"] == "SIMPLE"
    assert found["hoodie.timeline.layout.version"] == "2"
    newest = translate(known, 9)
    assert newest[MODE] == mode
    assert newest[LEGACY] == found[CLASS]
    assert not newest.keys() & {CLASS, STRATEGY, "hoodie.table.precombine.field"}
    assert newest.get("hoodie.table.ordering.fields", "") == ordering
    assert (
        TableConfig.from_properties(newest).merge_rule.ordering
        == TableConfig.from_properties(found).merge_rule.ordering
    )


def test_what_version_6_leaves_to_writers_is_taken_from_their_options() -> None:
    told = {"hoodie__datasource__write__payload__class": DEFAULT}
    assert translate(describe(6, hoodie__table__precombine__field="ts"), 8, **told)[MODE] == "EVENT_TIME_ORDERING"
    known = describe(6, hoodie__table__keygenerator__class="org.apache.hudi.keygen.CustomKeyGenerator")
    with pytest.raises(UnsupportedTable, match="custom key generator"):
        translate(known, 8)
    kinds = {"hoodie__datasource__write__partitionpath__field": "region:SIMPLE"}
    found = translate(known, 8, **kinds)
    assert found["hoodie.table.partition.fields"] == "region:SIMPLE"
    with pytest.raises(UnsupportedTable, match="for a table of version 6 the same may stand in"):
        translate(found, 6)
    back = translate(found, 6, **kinds)
    assert back["hoodie.table.partition.fields"] == "region", "Hudi 0.15 knows columns alone"


@pytest.mark.parametrize(
    ("payload", "mode", "more"),
    [
        ("PartialUpdateAvroPayload", "EVENT_TIME_ORDERING", {PARTIAL: "IGNORE_DEFAULTS"}),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "COMMIT_TIME_ORDERING", {PARTIAL: "IGNORE_DEFAULTS"}),
        ("AWSDmsAvroPayload", "COMMIT_TIME_ORDERING", {f"{DELETE}field": "Op", f"{DELETE}marker": "D"}),
    ],
)
def test_a_payload_class_of_version_8_becomes_properties_and_comes_back(
    payload: str, mode: str, more: dict[str, str]
) -> None:
    known = describe(
        8,
        hoodie__record__merge__mode="CUSTOM",
        hoodie__record__merge__strategy__id=BY_PAYLOAD,
        hoodie__compaction__payload__class=MODEL + payload,
        hoodie__table__precombine__field="ts",
    )
    found = translate(known, 9)
    assert {key: found.get(key) for key in (MODE, LEGACY, *more)} == {MODE: mode, LEGACY: MODEL + payload, **more}
    assert translate({**found}, 8) == known


def test_a_table_of_events_of_mysql_goes_by_two_columns_since_version_9_and_by_one_text_before() -> None:
    payload = f"{MODEL}debezium.MySqlDebeziumAvroPayload"
    known = describe(6, hoodie__table__precombine__field="_event_seq", hoodie__compaction__payload__class=payload)
    middle = translate(known, 8)
    assert (middle[MODE], middle[STRATEGY], middle[CLASS]) == ("CUSTOM", BY_PAYLOAD, payload)
    assert TableConfig.from_properties(middle).merge_rule.by_place
    found = translate(middle, 9)
    assert found["hoodie.table.ordering.fields"] == "_event_bin_file,_event_pos"
    assert (found[MODE], found[LEGACY]) == ("EVENT_TIME_ORDERING", payload)
    assert (found[f"{DELETE}field"], found[f"{DELETE}marker"]) == ("_change_operation_type", "d")
    assert not TableConfig.from_properties(found).merge_rule.by_place
    assert translate(found, 8) == middle
    assert translate(found, 6).items() >= {"hoodie.table.precombine.field": "_event_seq", CLASS: payload}.items()


def test_a_class_of_its_own_is_left_to_the_jvm() -> None:
    known = describe(8, hoodie__record__merge__mode="CUSTOM", hoodie__compaction__payload__class="com.example.Mine")
    with pytest.raises(UnsupportedTable, match="rows are merged by code of its own: let JVM Hudi upgrade") as caught:
        translate(known, 9)
    assert caught.value.facts["value"] == "com.example.Mine"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("hoodie__table__ordering__fields", "ts,seq", "version 8 has one ordering column"),
        ("hoodie__table__partial__update__mode", "IGNORE_DEFAULTS", "by a payload class alone"),
    ],
)
def test_what_version_8_has_no_words_for_is_refused(key: str, value: str, why: str) -> None:
    known = describe(9, hoodie__record__merge__mode="EVENT_TIME_ORDERING", **{key: value})
    with pytest.raises(UnsupportedTable, match=why):
        translate(known, 8)
    with pytest.raises(UnsupportedTable, match=why):
        translate(known, 6)


def test_a_delete_marker_of_version_9_is_no_payload_of_version_8() -> None:
    marker = {f"{DELETE}field": "gone", f"{DELETE}marker": "yes"}
    with pytest.raises(UnsupportedTable, match="by a payload class alone"):
        translate({**describe(9, hoodie__record__merge__mode="COMMIT_TIME_ORDERING"), **marker}, 8)


def test_keys_of_which_versions_make_others_are_to_be_told_first() -> None:
    known = describe(8, hoodie__table__keygenerator__type="COMPLEX", hoodie__record__merge__mode="COMMIT_TIME_ORDERING")
    with pytest.raises(
        UnsupportedTable, match=r"add hoodie.table.complex.keygen.encoding=VALUE_ONLY or FIELD_PREFIXED"
    ):
        translate(known, 9)
    told = {"hoodie.table.complex.keygen.encoding": "VALUE_ONLY"}
    assert translate({**known, **told}, 9).items() >= told.items()


def test_a_table_of_version_9_becomes_one_that_hudi_0_15_understands() -> None:
    known = describe(
        9,
        hoodie__record__merge__mode="EVENT_TIME_ORDERING",
        hoodie__table__ordering__fields="ts",
        hoodie__table__keygenerator__type="COMPLEX",
        hoodie__table__recordkey__fields="id,region",
        hoodie__timeline__path="timeline",
    )
    found = translate(known, 6)
    assert found["hoodie.table.version"] == "6"
    assert found[CLASS] == DEFAULT
    assert found["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.ComplexKeyGenerator"
    assert found["hoodie.table.precombine.field"] == "ts"
    assert not found.keys() & {MODE, STRATEGY, "hoodie.table.keygenerator.type", "hoodie.timeline.path"}


def test_instants_in_an_unnamed_zone_are_brought_over_where_that_is_known() -> None:
    known = describe(6, hoodie__table__timeline__timezone="LOCAL")
    assert translate_properties(known, 9, Options({}), zone="UTC+02:00")["hoodie.table.timeline.timezone"] == "LOCAL"
    with pytest.raises(UnsupportedTable, match="say it, such as zone="):
        translate(known, 9)


def test_what_is_no_table_that_is_written_here_is_refused() -> None:
    known = describe(8, hoodie__record__merge__mode="COMMIT_TIME_ORDERING", hoodie__table__base__file__format="ORC")
    with pytest.raises(UnsupportedTable, match="Parquet only"):
        translate(known, 9)


@pytest.mark.parametrize("data", [b"", b"#half\n", b"hoodie.table.version=8\n"])
def test_a_table_of_another_version_than_it_was_is_refused(data: bytes) -> None:
    storage = MemoryStorage(ManualClock(), base="memory:/t")
    read_current_properties(storage, 8)
    storage.replace(PROPERTIES_PATH, data)
    read_current_properties(storage, 8)
    storage.replace(PROPERTIES_PATH, b"hoodie.table.version=9\n")
    with pytest.raises(TableError, match="was of version 8 when it was opened, and is of version 9 now") as caught:
        read_current_properties(storage, 8)
    assert (caught.value.facts["opened"], caught.value.facts["found"]) == (8, 9)
