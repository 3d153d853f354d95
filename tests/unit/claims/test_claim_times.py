"""A claim names instants by their times; anything else would be taken for a path."""

from __future__ import annotations

import json

import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format.claim import Claim, ClaimKind, decode_claim, encode_claim

T = "20260101000000001"
CLAIM = encode_claim(Claim(kind=ClaimKind.ROLLBACK, instant=T, action="commit", time=T, number=1, nonce="n"))


@pytest.mark.parametrize("name", ["instant", "time", "rollback_instant"])
@pytest.mark.parametrize("value", ["../../x", "", 7, []])
def test_a_claim_of_no_instant_is_damaged(name: str, value: object) -> None:
    assert decode_claim(CLAIM, 1).instant == T
    with pytest.raises(DamagedTable, match=r"000001\.json"):
        decode_claim(json.dumps({**json.loads(CLAIM), name: value}).encode(), 1)
