"""The worked examples on Redis and PostgreSQL: each earns the badge `fencing` on a real server."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from example_servers import PostgreSql, Redis
from hudi_locks_conformance.servers import Server, ServerUnavailable, start_server
from hudi_locks_conformance.servers.kind import ServerKind

from hudi_locks import BackendRefused, BackendUnavailable, LockManager, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers
EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = LockScope.table()
CASES: Mapping[str, tuple[ServerKind, str]] = {
    "redis": (Redis(), "redis"),
    "postgresql": (PostgreSql(), "pg8000"),
}


@pytest.fixture(scope="module", params=[pytest.param("redis", marks=pytest.mark.nightly), "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    kind, client = CASES[request.param]
    pytest.importorskip(client, reason=f"pip install {client}")
    try:
        started = start_server(kind)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    with started:
        yield started


@pytest.fixture(scope="module")
def env(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The example installed beside this environment, as pip would do it, here and in other processes."""
    target = tmp_path_factory.mktemp(server.kind.name)
    uv = Path(sys.executable).with_name("uv")
    example = EXAMPLES / f"{server.kind.name}_lock_provider"
    words = [uv, "pip", "install", "--quiet", "--no-deps", "--target", target, "--python", sys.executable, example]
    subprocess.run([str(word) for word in words], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(target))
        yield {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def judge(env: dict[str, str], server: Server, *words: str) -> tuple[int, str]:
    options = [word for key, value in server.options.items() for word in ("--option", f"{key}={value}")]
    command = [
        Path(sys.executable).with_name("hudi-locks"),
        "conformance",
        "--provider",
        server.kind.name,
        *options,
        *words,
    ]
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_it_earns_the_badge(env: dict[str, str], server: Server, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    status, said = judge(env, server, "--level", "fencing", "--json-file", str(report), "--history", str(tmp_path))
    assert status == 0, said
    told = json.loads(report.read_text())
    assert told["badge"]["level"] == "fencing", said
    assert not told["badge"]["failed"], said


@pytest.fixture
def make(env: dict[str, str], server: Server) -> Iterator[Callable[..., Any]]:
    made: list[LockManager] = []

    def make_one(**more: str) -> Any:
        made.append(LockManager(server.kind.name, {**server.options, **more}, clock=SystemClock()))
        return made[-1].provider

    yield make_one
    for manager in made:
        manager.close()


def test_two_hosts_and_an_administrator(make: Callable[..., Any]) -> None:
    one, two = make(), make()
    lease = one.try_acquire(TABLE, Owner("ada"), 0)
    assert two.try_acquire(TABLE, Owner("bob"), 0) is None
    holder = two.holder(TABLE)
    assert (holder.owner.id, 0 < holder.expires_in_ms <= 20_000) == ("ada", True)
    assert not two.break_if(TABLE, "another")
    assert two.break_if(TABLE, holder.token)
    later = two.try_acquire(TABLE, Owner("bob"), 0)
    assert later.token > lease.token
    one.release(lease)
    assert two.renew(later).token == later.token
    two.release(later)
    assert one.holder(TABLE) is None


def test_a_password_stays_out_of_sight(make: Callable[..., Any], server: Server) -> None:
    key = f"my.{server.kind.name}.password"
    provider = make(**{key: "hunter-of-secrets"})
    said = ""
    try:
        provider.holder(TABLE)
    except (BackendRefused, BackendUnavailable) as error:  # Redis without users refuses every password
        said = str(error)
    assert "hunter" not in f"{said} {provider.options!r} {provider!r}"


@pytest.mark.parametrize("server", ["redis"], indirect=True)
@pytest.mark.parametrize(
    "said", [ValueError("I/O operation on closed file."), AttributeError("no attribute 'readline' of a closed file")]
)
def test_a_connection_that_another_thread_closed_is_an_error_of_the_service(
    make: Callable[..., Any], server: Server, monkeypatch: pytest.MonkeyPatch, said: Exception
) -> None:
    def fail(*_: object) -> None:
        raise said

    provider = make()
    monkeypatch.setattr(provider.redis, "execute_command", fail)
    with pytest.raises(BackendUnavailable, match="closed file"):
        provider.try_acquire(TABLE, Owner(server.kind.name), 0)
    monkeypatch.undo()


def test_the_readme_names_what_was_run(server: Server) -> None:
    readme = (EXAMPLES / f"{server.kind.name}_lock_provider" / "README.md").read_text()
    assert f"--provider {server.kind.name} " in readme
    assert "--level fencing" in readme
    importlib.import_module(CASES[server.kind.name][1])
