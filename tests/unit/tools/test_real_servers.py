"""Servers are fetched before the time of any test begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import real_servers
from hudi_locks_conformance.servers import ServerUnavailable


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    names = real_servers._FETCHES
    monkeypatch.setattr(real_servers, "_FETCHES", {name: lambda name=name: found.append(name) for name in names})
    return found


def collect(*items: Any) -> None:
    real_servers.pytest_collection_finish(SimpleNamespace(items=items))  # type: ignore[arg-type]


def ask(*fixtures: str, **params: Any) -> Any:
    callspec = {"callspec": SimpleNamespace(params=params)} if params else {}
    return SimpleNamespace(fixturenames=fixtures, **callspec)


def test_what_the_tests_ask_for_by_fixture_or_parameter_is_fetched_once(fetched: list[str]) -> None:
    collect(
        ask("spark", "zookeeper"),
        ask("zookeeper", "service", service="fake_gcs"),
        ask("jvm", jvm=("1.0.2", 8)),
        ask("jvm_on_s3", "versitygw", jvm_on_s3="1.2.0", count=3),
    )
    assert sorted(fetched) == ["1.0.2", "1.2.0", "fake_gcs", "jvm_on_s3", "versitygw", "zookeeper"]


def test_tests_without_servers_fetch_nothing(fetched: list[str]) -> None:
    collect(ask("tmp_path"), SimpleNamespace())
    assert fetched == []


def test_one_that_cannot_be_had_keeps_no_other_away(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ServerUnavailable("go is needed", command="apt-get install golang")

    monkeypatch.setitem(real_servers._FETCHES, "azurite", fail)
    collect(ask("azurite"), ask("minidfs"))
    assert fetched == ["minidfs"]
