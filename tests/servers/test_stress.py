"""Contenders that are stopped for longer than their lease, and killed, over a real server whose sessions are short."""

from __future__ import annotations

import pytest
from hudi_locks_conformance import Harness
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.stress import render_result, run_stress

pytestmark = pytest.mark.servers


def test_zookeeper_stands_twelve_seconds_of_it(zookeeper: Server) -> None:
    result = run_stress(Harness("zookeeper", zookeeper.options, seed=3), 12)
    assert result.ok, render_result(result)
    assert result.kills
    assert max(result.pauses) > (result.plan.lease_s or 0)
    assert result.holds > 20
    assert result.count("acquire", "ok") == result.holds


def test_dynamodb_stands_it_over_a_link_that_breaks(dynamodb: Server) -> None:
    result = run_stress(Harness("dynamodb", dynamodb.options, seed=4, server=dynamodb), 12)
    assert result.ok, render_result(result)
    assert result.broken
    assert result.holds > 20
