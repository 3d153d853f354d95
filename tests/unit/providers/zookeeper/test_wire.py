"""What lies in ZooKeeper: names, their order, payloads, paths. Shapes are those of Curator 5.7 and Hudi 1.0 and 1.2."""

from __future__ import annotations

import pytest
from hudi_locks_providers._wire.zookeeper import (
    check_path,
    contender_prefix,
    decode_payload,
    encode_payload,
    find_first,
    is_worn,
    parse_sequence,
    sort_contenders,
)
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks import Owner


def node(sequence: int, nonce: str = "634378e1-7a1d-4ec7-80f9-a6110d2b566f") -> str:
    return f"{contender_prefix(nonce)}{sequence:010d}"


def test_a_name_is_curators() -> None:
    assert node(7) == "_c_634378e1-7a1d-4ec7-80f9-a6110d2b566f-lock-0000000007"
    assert parse_sequence(node(7)) == 7


def test_order_is_that_of_the_number_not_of_the_nonce() -> None:
    late, early = node(12, "00000000"), node(3, "ffffffff")
    assert sort_contenders([late, early]) == [early, late]


def test_whatever_else_is_there_stands_in_line_by_its_whole_name() -> None:
    kazoo, folder = "0a1b__lock__0000000001", "2024-01-01"
    assert sort_contenders([folder, node(5), kazoo]) == [node(5), kazoo, folder]


def test_the_folder_of_another_lock_keeps_nobody_waiting() -> None:
    assert find_first(["fresh"]) is None
    assert find_first([]) is None
    assert find_first(["fresh", node(5), node(-1)]) == node(5)
    assert find_first(["fresh", node(-1)]) == node(-1)
    assert find_first([node(5), "-1"]) == "-1"


def test_a_newcomer_after_the_overflow_stands_behind_the_holder() -> None:
    names = [node(2**31 - 1), node(-(2**31)), node(-(2**31) + 1), node(-1)]
    assert sort_contenders(reversed(names)) == names


@pytest.mark.parametrize(("sequence", "worn"), [(0, False), (2**30, False), (2**31 - 1, True), (-5, True)])
def test_a_counter_near_its_end_is_worn(sequence: int, worn: bool) -> None:
    assert is_worn(sequence) is worn


def test_a_payload_begins_as_hudis() -> None:
    owner = Owner("id-1", "host", 4711, "MainThread", "app-20240101")
    assert encode_payload(owner) == b"application_id=app-20240101,owner=id-1,host=host,pid=4711,thread=MainThread"
    assert encode_payload(Owner("x")).startswith(b"application_id=Unknown,")


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT, st.integers(0, 10**7), TEXT, TEXT.filter(lambda text: text != "Unknown"))
def test_a_payload_tells_its_owner(identity: str, host: str, pid: int, thread: str, application: str) -> None:
    owner = Owner(identity, host, pid, thread, application)
    assert decode_payload(encode_payload(owner)) == owner


def test_payloads_of_the_jvm_are_read() -> None:
    assert decode_payload(b"application_id=Unknown") == Owner("")
    assert decode_payload(b"application_id=spark-1,2%2C") == Owner("", application="spark-1,2%2C")
    assert decode_payload(b"10.1.2.3") == Owner("", host="10.1.2.3")
    assert decode_payload(b"") == Owner("")
    assert "\ufffd" in decode_payload(b"\xff").host


@pytest.mark.parametrize("path", ["/a", "/a/b", "/größe=1/日本 x", "/..a/b."])
def test_good_paths(path: str) -> None:
    assert check_path(path) is None


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a/b", "begin with a slash"),
        ("/a/", "end with a slash"),
        ("/a//b", "empty part"),
        ("/a/../b", "part that is ."),
        ("/a/.", "part that is ."),
        ("/a\x00b", "character"),
        ("/a\x9fb", "character"),
        ("", "begin with a slash"),
    ],
)
def test_bad_paths(path: str, said: str) -> None:
    assert said in (check_path(path) or "")
