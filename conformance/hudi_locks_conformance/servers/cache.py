"""What servers and JVM partners are made of, fetched or built once into the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hudi_locks.errors import HudiLocksError

__all__ = [
    "ServerUnavailable",
    "cache_folder",
    "compile_c",
    "compile_java",
    "fetch_maven",
    "find_tool",
    "install_go",
    "install_npm",
    "run_tool",
]

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_LONGEST_RUN_S: Final = 900.0
_INSTALL: Final = {
    "gcc": "apt-get install gcc",
    "go": "apt-get install golang, or https://go.dev/dl",
    "java": "apt-get install openjdk-17-jdk-headless",
    "javac": "apt-get install openjdk-17-jdk-headless",
    "mvn": "apt-get install maven",
    "npm": "apt-get install npm",
    "node": "apt-get install nodejs",
    "initdb": "apt-get install postgresql",
    "pg_isready": "apt-get install postgresql",
    "postgres": "apt-get install postgresql",
    "redis-server": "apt-get install redis-server",
    "setpriv": "apt-get install util-linux",
}


class ServerUnavailable(HudiLocksError):
    """A server or partner cannot be had on this machine; the message names the command that helps."""


def cache_folder() -> Path:
    """Where fetched programs stay, for all runs of this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudi-locks"


def find_tool(name: str) -> str:
    """Path of a program.

    Raises:
        ServerUnavailable: It is not there; says how it is installed.
    """
    home = os.environ.get("JAVA_HOME")
    if home and name in ("java", "javac") and Path(home, "bin", name).exists():
        return str(Path(home, "bin", name))
    found = shutil.which(name)
    if found is None:
        raise ServerUnavailable(f"{name} is needed: {_INSTALL[name]}", command=_INSTALL[name])
    return found


def fetch_maven(name: str, coordinates: Sequence[str]) -> Path:
    """A folder with the jars of `group:artifact:version[:type]` and all that they need at run time.

    Raises:
        ServerUnavailable: Maven is missing, or could not get them.
    """

    def fetch(folder: Path) -> None:
        (folder / "pom.xml").write_text(_write_pom(name, coordinates))
        words = [find_tool("mvn"), "-q", "-B", "-f", "pom.xml", _COPY, "-DincludeScope=runtime"]
        run_tool([*words, f"-DoutputDirectory={folder}"], folder)

    return _make_once(f"maven/{name}", coordinates, fetch)


def install_go(name: str, package: str) -> Path:
    """The program that `go install` makes of `package@version`.

    Raises:
        ServerUnavailable: Go is missing, or could not build it.
    """

    def install(folder: Path) -> None:
        run_tool([find_tool("go"), "install", package], folder, {"GOBIN": str(folder), "GOFLAGS": ""})

    return _make_once(f"go/{name}", [package], install) / name


def install_npm(name: str, version: str) -> Path:
    """The folder of an installed package.

    Raises:
        ServerUnavailable: npm is missing, or could not install it.
    """

    def install(folder: Path) -> None:
        words = [find_tool("npm"), "install", "--loglevel=error", "--no-audit", "--no-fund", "--prefix", "."]
        run_tool([*words, f"{name}@{version}"], folder)

    return _make_once(f"npm/{name}", [version], install) / "node_modules" / name


def compile_java(name: str, sources: Sequence[Path], classpath: str) -> Path:
    """A folder with the classes of `sources`, compiled anew when one of them changed.

    Raises:
        ServerUnavailable: There is no Java compiler, or it refuses them.
    """

    def compile_all(folder: Path) -> None:
        words = [find_tool("javac"), "-nowarn", "-cp", classpath or ".", "-d", "."]
        run_tool([*words, *(str(source) for source in sources)], folder)

    return _make_once(f"java/{name}", [source.read_text() for source in sources], compile_all)


def compile_c(name: str, source: Path) -> Path:
    """A shared library made of `source`, compiled anew when it changed.

    Raises:
        ServerUnavailable: There is no C compiler, or it refuses it.
    """

    def compile_it(folder: Path) -> None:
        run_tool([find_tool("gcc"), "-shared", "-fPIC", "-O2", "-o", f"{name}.so", str(source), "-ldl"], folder)

    return _make_once(f"c/{name}", [source.read_text()], compile_it) / f"{name}.so"


def _make_once(name: str, inputs: Iterable[str], make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, kept for the same inputs; it appears whole, and one process makes it."""
    digest = hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:12]
    target = cache_folder() / f"{name}-{digest}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{target.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not target.exists():
            _make(target, make)
    return target


def _make(target: Path, make: Callable[[Path], None]) -> None:
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        make(folder)
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_pom(name: str, coordinates: Sequence[str]) -> str:
    wanted = "".join(_write_dependency(*coordinate.split(":")) for coordinate in coordinates)
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId>"
        f"<artifactId>{name}</artifactId><version>1</version><dependencies>{wanted}</dependencies></project>"
    )


def _write_dependency(group: str, artifact: str, version: str, kind: str = "jar") -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><type>{kind}</type></dependency>"
    )


def run_tool(words: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a program that fetches or builds something.

    Raises:
        ServerUnavailable: It failed; shows the command and what it said.
    """
    command = " ".join(words)
    try:
        done = subprocess.run(  # noqa: S603  # our own words
            words,
            cwd=folder,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=_LONGEST_RUN_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ServerUnavailable(f"{command} did not end within {_LONGEST_RUN_S:.0f} s", command=command) from error
    if done.returncode:
        raise ServerUnavailable(f"{command} failed: {(done.stdout + done.stderr).strip()[-500:]}", command=command)
