"""What a metastore needs before the first lock: nothing but to be one that keeps locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from thrift.Thrift import TApplicationException

from hudi_locks.lock import SetupTerms


def test_a_metastore_with_locks_needs_nothing(client: Callable[[], HiveMetastoreLockProvider], stub: Any) -> None:
    [step] = client().set_up(SetupTerms())
    assert (step.name, step.outcome) == ("metastore", "not needed")
    assert "need not be a table" in step.found
    assert set(stub.calls) == {"show_locks"}


def test_a_catalog_without_locks_cannot_serve(client: Callable[[], HiveMetastoreLockProvider], stub: Any) -> None:
    def refuse(method: str) -> None:
        raise TApplicationException(TApplicationException.UNKNOWN_METHOD, f"no {method}")

    stub.before = refuse
    [step] = client().set_up(SetupTerms())
    assert step.has_failed
    assert "a catalog without locks, such as AWS Glue, cannot be used" in step.found
