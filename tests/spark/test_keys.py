"""Record keys and partition paths against those that the JVM made, in every session that a user may have."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import BadInput, ConfigError
from hudi_locks.spark.writing.keys import partition_path, record_key
from hudi_locks.table import TableConfig
from hudi_locks.table import partition_path as plain_partition_path

pytestmark = pytest.mark.spark

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "jvm_keys.json").read_text(encoding="utf-8"))
TYPES = sorted({column["type"] for column in GOLDEN["columns"]})
STYLES = {"partition": (False, False), "hive": (True, False), "enc": (False, True)}


def styled(*fields: str, hive: bool = False, encode: bool = False) -> TableConfig:
    return TableConfig("t", ("id",), fields, hive_style=hive, url_encode=encode)


def literal(kind: str, value: str) -> str:
    """SQL for a golden value, which is UTC whatever the session's zone is."""
    text = "'" + value.replace("'", "''") + "'"
    if kind == "binary":
        return f"unhex({text})"
    return f"cast({text + ' || ' + repr('Z') if kind == 'timestamp' else text} as {kind})"


def test_every_type_is_rendered_as_the_jvm_does(session: Any) -> None:
    asked, expected = [], []
    for kind in TYPES:
        columns = [column for column in GOLDEN["columns"] if column["type"] == kind]
        union = " union all ".join(f"select {literal(kind, c['value'])} k, {n} n" for n, c in enumerate(columns))
        rows = session.sql(union)
        forms = {
            "key": record_key(rows.schema, ["k"], composite=False),
            "composite": record_key(rows.schema, ["k", "n"], composite=True),
            **{
                style: partition_path(rows, styled("k", hive=hive, encode=encode), None)
                for style, (hive, encode) in STYLES.items()
            },
        }
        found = rows.select("n", *[form.alias(name) for name, form in forms.items()]).orderBy("n").collect()
        for row, column in zip(found, columns, strict=True):
            for name in forms.keys() & column.keys():
                asked.append((kind, column["value"], name, row[name]))
                expected.append((kind, column["value"], name, column[name]))
    assert len(asked) > 200
    assert asked == expected


def test_every_case_of_nulls_and_several_fields_is_rendered_as_the_jvm_does(spark: Any) -> None:
    rows = spark.createDataFrame(
        [(n, *row) for n, row in enumerate(GOLDEN["rows"])], "n int, a string, b string, p string, q int"
    )
    for case in GOLDEN["cases"]:
        composite = len(case["key"]) > 1 or (len(case["partition"]) > 1 and case["version"] == 9)
        key = record_key(rows.schema, case["key"], composite=composite)
        path = partition_path(rows, styled(*case["partition"], hive=case["hive"], encode=case["encode"]), None)
        found = {row[0]: list(row) for row in rows.select("n", key, path).collect()}
        assert [found[n] for n, _, _ in case["expected"]] == case["expected"], case


def test_what_the_jvm_refuses_has_no_key(spark: Any) -> None:
    rows = spark.createDataFrame([(None, None), ("", ""), (None, ""), ("x", None)], "a string, b string")
    single = record_key(rows.schema, ["a"], composite=False)
    both = record_key(rows.schema, ["a", "b"], composite=True)
    assert [list(row) for row in rows.select(single, both).collect()] == [[None, None]] * 3 + [["x", "a:x,b:__null__"]]


def test_the_two_ways_to_a_partition_path_agree_on_every_character(spark: Any) -> None:
    texts = [f"x{chr(code)}y" for code in range(1, 256)] + ["é日😀", "100%", "%2F"]
    rows = spark.createDataFrame([(text,) for text in texts], "p string")
    column = partition_path(rows, styled("p", hive=True, encode=True), None)
    found = {row[0]: row[1] for row in rows.select("p", column).collect()}
    assert found == {text: plain_partition_path([text], ["p"], hive_style=True, url_encode=True) for text in texts}


@pytest.mark.parametrize("kind", ["array<int>", "map<string,int>", "struct<x:int>"])
def test_nested_columns_give_no_keys(spark: Any, kind: str) -> None:
    rows = spark.createDataFrame([], f"k {kind}")
    with pytest.raises(BadInput, match="'k' of type"):
        record_key(rows.schema, ["k"], composite=False)
    with pytest.raises(BadInput, match=r"\['k'\]") as caught:
        partition_path(rows, styled("nope"), None)
    assert (caught.value.column, caught.value.found) == ("nope", ["k"])


def test_times_in_keys_are_written_as_java_writes_them(session: Any) -> None:
    """A thousand, to the microsecond, before and after 1970."""
    draw = random.Random(7)
    micros = [-1, 0, 999, 1_000, 100_000, *(draw.randrange(-12_000_000_000_000_000, 10**17) for _ in range(1_000))]
    rows = session.createDataFrame([(one,) for one in micros], "n long").selectExpr("n", "timestamp_micros(n) k")
    key = record_key(rows.schema, ["k"], composite=False, zone="UTC")
    found = {row["n"]: row["key"] for row in rows.select("n", key.alias("key")).collect()}
    java = session._jvm.java.sql.Timestamp
    assert found == {one: java(abs(one) // 1_000 * (1 if one > 0 else -1)).toString() for one in micros}


def test_times_in_keys_follow_the_zone_and_leave_other_types_alone(session: Any) -> None:
    rows = session.sql("select timestamp'2026-07-01 10:00:00.5Z' k, date'2026-07-01' d, timestamp_ntz'2026-07-01' n")
    keys = [record_key(rows.schema, ["k"], composite=False, zone=zone) for zone in ("America/New_York", "Asia/Kolkata")]
    keys += [record_key(rows.schema, [name], composite=False, zone="Asia/Kolkata") for name in "dn"]
    told = ["2026-07-01 06:00:00.5", "2026-07-01 15:30:00.5", "2026-07-01", "1782864000000000"]
    assert list(rows.select(*(key.alias(str(n)) for n, key in enumerate(keys))).collect()[0]) == told


def test_a_time_of_another_calendar_is_refused_as_a_key(spark: Any, create: Any) -> None:
    table = create(options={"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"})
    rows = spark.sql("select timestamp'1500-01-01' id, '1' month, 1L ts, 1D value")
    with pytest.raises(BadInput, match="column 'id' is part of a key, and has a time before 1583 or after 9999"):
        table.upsert(rows)


def test_keys_that_are_made_of_columns_again_are_not_written_as_text(create: Any) -> None:
    key = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    with pytest.raises(
        ConfigError, match=f"{key}=true is not offered for a table with hoodie.populate.meta.fields=false"
    ):
        create(options={key: "true", "hoodie.populate.meta.fields": "false"})
