from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format.claim import (
    INLINE_LIMIT,
    Claim,
    ClaimKind,
    Content,
    FileGroupId,
    claim_path,
    decode_claim,
    digest_of,
    encode_claim,
)

DIGEST = digest_of(b"the entry before")
CLAIM = Claim(ClaimKind.PUBLISH, "20231114221320000", "commit", "20231114221320001", number=2, previous=DIGEST)
groups = st.frozensets(st.builds(FileGroupId, st.text(max_size=5), st.text(min_size=1, max_size=5)), max_size=4)
contents = st.none() | st.builds(Content.of, st.just("t_c.commit"), st.binary(max_size=200))


@given(
    kind=st.sampled_from(ClaimKind),
    writes=groups,
    replaces=groups,
    content=contents,
    seen=st.none() | st.frozensets(st.text(max_size=5)),
    owner=st.text(max_size=9),
    token=st.none() | st.integers(0, 2**63),
    waited=st.none() | st.integers(0, 2**40),
)
def test_every_claim_survives_its_bytes(
    kind: ClaimKind,
    writes: Any,
    replaces: Any,
    content: Any,
    seen: Any,
    owner: str,
    token: int | None,
    waited: int | None,
) -> None:
    claim = replace(
        CLAIM,
        kind=kind,
        writes=writes,
        replaces=replaces,
        content=content,
        seen=seen,
        owner=owner,
        fencing_token=token,
        lock_wait_ms=waited,
        lock_held_ms=waited,
        nonce="n",
        rollback_instant="20231114221320002",
    )
    data = encode_claim(claim)
    assert decode_claim(data, 2) == claim
    assert encode_claim(decode_claim(data, 2)) == data
    assert claim.groups == writes | replaces


def test_large_content_stays_outside() -> None:
    content = Content.of("t_c.commit", b"x" * (INLINE_LIMIT + 1))
    found = decode_claim(encode_claim(replace(CLAIM, content=content)), 2).content
    assert found == replace(content, data=None)
    assert found is not None
    assert found.is_staged


def test_repetitive_content_is_packed() -> None:
    data = b"the same again " * 1000
    encoded = encode_claim(replace(CLAIM, content=Content.of("t_c.commit", data)))
    assert len(encoded) < len(data) / 10


def spoil(**fields: Any) -> bytes:
    whole = json.loads(encode_claim(replace(CLAIM, content=Content.of("t_c.commit", b"abc"))))
    whole["content"] |= fields.pop("content", {})
    return json.dumps({**whole, **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"{}",
        spoil(number=3),
        spoil(kind="OTHER"),
        spoil(previous="abc"),
        spoil(content={"data": "!"}),
        spoil(content={"data": base64.b64encode(b"other").decode()}),
        spoil(content={"encoding": "rot13"}),
        spoil(content={"encoding": "gzip+base64"}),
        spoil(content={"name": "../../etc/passwd"}),
        spoil(content={"sha256": "x"}),
    ],
)
def test_a_damaged_claim_is_named(data: bytes) -> None:
    with pytest.raises(DamagedTable, match=r"00000000000000000002\.json") as caught:
        decode_claim(data, 2)
    assert caught.value.path == claim_path(2)


def test_names_sort_by_number() -> None:
    assert claim_path(9) < claim_path(10)
    assert claim_path(1) == ".hoodie/.hudi_locks/claims/00000000000000000001.json"
