from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format import decode_properties, encode_properties
from hudi_locks.storage import LocalStorage

PATH = ".hoodie/hoodie.properties"
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@given(st.dictionaries(texts, texts, max_size=5), texts)
def test_properties_survive_the_round_trip(properties: dict[str, str], comment: str) -> None:
    assert decode_properties(encode_properties(properties, comment), PATH) == properties


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"a=b", "a", "b"),
        (b"  a : b ", "a", "b "),
        (b"a b", "a", "b"),
        (b"a", "a", ""),
        (b"a==b", "a", "=b"),
        (rb"a\=b=c\:d", "a=b", "c:d"),
        (rb"a\ b=c", "a b", "c"),
        (b"a=b\\\n   c", "a", "bc"),
        (b"a=b\\\\\n", "a", "b\\"),
        (b"a=b\\\n#c", "a", "b#c"),
        (rb"a=\u00e9\u4E2D", "a", "é中"),
        (rb"a=\uD83D\uDE00", "a", "😀"),
        (rb"a=\t\z", "a", "\tz"),
        (b"a=\xe9", "a", "é"),
        (b"a=1\ra=2\r\n", "a", "2"),
        (b"a=", "a", ""),
    ],
)
def test_lines_mean_what_they_mean_to_java(line: bytes, key: str, value: str) -> None:
    assert decode_properties(line, PATH) == {key: value}


def test_comments_and_blank_lines_say_nothing() -> None:
    assert decode_properties(b"#a=b\n!c=d\n\n   \n\t# e\n", PATH) == {}


def test_java_writes_the_same_line() -> None:
    assert encode_properties({"a b": " x=y:#!\\é😀\n"}) == rb"a\ b=\ x\=y\:\#\!\\\u00E9\uD83D\uDE00\n" + b"\n"


def test_comment_of_several_lines_stays_a_comment() -> None:
    assert encode_properties({}, "one\ntwo é") == b"#one\n#two \\u00E9\n"


@pytest.mark.parametrize("data", [rb"a=\u12", rb"\uzzzz=1", b"a=b\x00\x00"])
def test_damage_is_named(data: bytes) -> None:
    with pytest.raises(DamagedTable, match=PATH):
        decode_properties(data, PATH)


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow_unpartitioned", "v9_cow"])
def test_properties_of_the_jvm_are_read(golden: Callable[[str], LocalStorage], name: str) -> None:
    properties = decode_properties(golden(name).read(PATH) or b"", PATH)
    assert properties["hoodie.table.name"] == name
    assert properties["hoodie.table.recordkey.fields"] == "id"
    assert properties["hoodie.table.partition.fields"] == ("" if name == "v8_cow_unpartitioned" else "region")
    assert decode_properties(encode_properties(properties), PATH) == properties
