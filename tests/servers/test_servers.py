"""The servers themselves: they start, come back with their data, and end."""

from __future__ import annotations

import errno
import json
import socket
import subprocess
from pathlib import Path

import pytest
from hudi_locks_conformance.servers import (
    KINDS,
    LocalServer,
    ServerUnavailable,
    ZooKeeper,
    find_free_port,
    read_mode,
    start_ensemble,
    start_server,
)
from waiting import until

pytestmark = pytest.mark.servers


def listening_addresses(port: int) -> set[str]:
    """Local addresses, in the kernel's hexadecimal form, on which somebody listens."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {words[1].split(":")[0] for words in lines if words[3] == "0A" and words[1].endswith(f":{port:04X}")}


def test_a_server_listens_on_loopback_alone_and_ends_with_its_process(tmp_path: Path) -> None:
    with start_server(ZooKeeper(), tmp_path) as server:
        assert listening_addresses(server.port) <= {"0100007F", "0000000000000000FFFF00000100007F"}
        pid = server.process.pid  # type: ignore[union-attr]
    assert not Path(f"/proc/{pid}").exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server.port)) == errno.ECONNREFUSED


def test_a_killed_server_comes_back_on_its_port(tmp_path: Path) -> None:
    with start_server(ZooKeeper(), tmp_path) as server:
        server.kill()
        assert not read_mode(server.port)
        server.start()
        assert read_mode(server.port) == "standalone"


def test_a_server_that_dies_at_its_start_shows_its_log(tmp_path: Path) -> None:
    server = LocalServer(ZooKeeper(peers=("no address",)), tmp_path, find_free_port())
    with pytest.raises(ServerUnavailable, match="does not run"):
        server.start()


def test_azurite_looks_for_what_was_overwritten_after_no_run_of_tests(tmp_path: Path) -> None:
    """It answered nobody for two and a half minutes where it did so after ten."""
    kind = KINDS["azurite"]
    try:
        kind.fetch()
    except ServerUnavailable as error:
        pytest.skip(str(error))
    words = kind.launch(tmp_path, 1).words
    main = next(word for word in words if word.endswith("main.js"))
    constants = json.dumps(str(Path(main).with_name("utils") / "constants.js"))
    told = [*words[: words.index(main)], "-e", f"console.log(require({constants}).DEFAULT_GC_INTERVAL_MS)"]
    done = subprocess.run(told, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > 24 * 3_600_000
    assert len(words[: words.index(main)]) == 3


def test_an_ensemble_has_one_leader_and_elects_another(tmp_path: Path) -> None:
    nodes = start_ensemble(tmp_path)
    try:
        modes = [read_mode(node.port) for node in nodes]
        assert sorted(modes) == ["follower", "follower", "leader"]
        nodes[modes.index("leader")].kill()
        rest = [node for node, mode in zip(nodes, modes, strict=True) if mode != "leader"]
        for node in rest:
            node.wait_until_ready()
        assert until(lambda: sorted(read_mode(node.port) for node in rest) == ["follower", "leader"], 60)
    finally:
        for node in nodes:
            node.stop()
    assert not any(read_mode(node.port) for node in nodes)
