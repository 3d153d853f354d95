"""What every error carries, and keeps on its way between processes."""

from __future__ import annotations

import pickle

import pytest

from hudi_locks import errors
from hudi_locks.errors import HudiLocksError

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, HudiLocksError) and kind.__module__ == errors.__name__
]
FACTS = {"path": "p/x.parquet", "errno": 28, "name": "n", "filename": "f", "instant": "1", "groups": (("p", "g"),)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_keeps_its_message_and_facts(kind: type[HudiLocksError]) -> None:
    """Also those that share a name with what Python's own errors have."""
    error = kind("what was asked, found, and the next step", **FACTS)
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert type(each) is kind
        assert str(each) == "what was asked, found, and the next step"
        assert each.facts == FACTS
        assert {name: getattr(each, name) for name in FACTS} == FACTS
    with pytest.raises(AttributeError, match="carries no fact 'owner'"):
        _ = error.owner
