"""JVM programs that take locks: Curator's mutex, Hudi's own providers. Fetched and compiled once, run as processes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hudi_locks import SystemClock
from hudi_locks.config import lock_keys
from hudi_locks_conformance.history import History
from hudi_locks_conformance.servers.cache import ServerUnavailable, compile_java, fetch_maven, find_tool
from hudi_locks_conformance.servers.jvm_bundle import fetch_bundle
from hudi_locks_conformance.servers.kind import QUICK_JVM

__all__ = ["HUDI_SETTINGS", "JvmContender", "Partner", "curator", "hudi", "hudi_storage"]

_JAVA: Final = Path(__file__).with_name("java")
_CURATOR: Final = ("org.apache.curator:curator-recipes:5.7.1", "org.slf4j:slf4j-nop:1.7.36")
_GUAVA: Final = ("com.google.guava:guava:16.0.1",)
"""The Curator within Hudi's bundle calls a method that newer ones have dropped."""
_OPENED: Final = ("lang", "lang.reflect", "net", "nio", "util", "util.concurrent", "util.regex", "io", "time")
"""Packages that Hadoop, Hive and Hudi reflect upon."""
HUDI_SETTINGS: Final = {
    key.name: str(key.default)
    for key in (
        *lock_keys.WAIT_KEYS,
        lock_keys.HEARTBEAT_INTERVAL_MS,
        lock_keys.FILESYSTEM_EXPIRE,
    )
}
"""What Hudi's write config would have merged; providers ask for some of it without a fallback."""
_PATIENCE_S: Final = 180.0
_STEPS: Final = (
    ("asked_ns", "acquire", "invoke"),
    ("held_ns", "acquire", "ok"),
    ("freeing_ns", "release", "invoke"),
    ("freed_ns", "release", "ok"),
)


@dataclass(frozen=True)
class Partner:
    """One kind of JVM lock holder.

    Attributes:
        name: For messages and histories.
        main: Java class in the folder `java` here; extends `Contender`.
        jars: Fetches what it needs and gives its class path.
        build: Names the compiled classes; the same for all that use the same jars.
        settings: Passed on as name=value; those of a contender come on top.
    """

    name: str
    main: str
    jars: Callable[[], Sequence[str]]
    build: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """The command that runs it, without its work; fetches and compiles what is not in the cache.

        Raises:
            ServerUnavailable: A tool is missing, with the command that installs it, or something cannot be fetched.
        """
        java, jars = find_tool("java"), ":".join(self.jars())
        sources = [_JAVA / "Contender.java", _JAVA / f"{self.main}.java"]
        classes = compile_java(self.build, sources, jars)
        opens = [word for name in _OPENED for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
        flags = [*QUICK_JVM, "--add-opens", "java.sql/java.sql=ALL-UNNAMED", *opens]
        return [java, *flags, "-cp", f"{_JAVA}:{classes}:{jars}", self.main]


def curator(url: str, path: str) -> Partner:
    """Curator's InterProcessMutex on the node `path`, with sessions of 10 s."""
    settings = {"url": url, "path": path}
    return Partner("curator", "CuratorContender", _curator_jars, "curator", settings)


def _curator_jars() -> list[str]:
    return [f"{fetch_maven('curator', _CURATOR)}/*"]


def hudi(java_class: str, options: Mapping[str, object], *, version: str = "1.2.0") -> Partner:
    """A lock provider of Hudi's, given the same keys as ours.

    Args:
        java_class: Full name, as in `hoodie.write.lock.provider`.
        options: Hudi's keys.
        version: Of the Spark bundle.
    """
    given = {name: str(value) for name, value in options.items() if name.startswith("hoodie.")}
    settings = {**HUDI_SETTINGS, **given, lock_keys.PROVIDER.name: java_class}
    name = f"hudi-{version}-{java_class.rpartition('.')[2]}"
    return Partner(name, "HudiContender", lambda: _hudi_jars(version), f"hudi-{version}", settings)


def hudi_storage(options: Mapping[str, object], endpoint: str, *, version: str = "1.2.0") -> Partner:
    """Hudi's storage lock provider itself, over a client of ours for the XML API of Google Cloud Storage.

    Args:
        options: Hudi's keys; `hoodie.base.path` is of the scheme gs.
        endpoint: Of a service that asks for no signatures.
        version: Of the Spark bundle.
    """
    given = {name: str(value) for name, value in options.items() if name.startswith("hoodie.")}
    settings = {**HUDI_SETTINGS, **given, "endpoint": endpoint}
    return Partner(f"hudi-{version}-storage", "StorageContender", lambda: _hudi_jars(version), "hudi-storage", settings)


def _hudi_jars(version: str) -> list[str]:
    """The bundle, and the classes that it expects Spark to bring: those of the installed pyspark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        command = "pip install pyspark"
        raise ServerUnavailable(f"Hudi's bundle needs the jars of pyspark: {command}", command=command)
    spark = Path(found.submodule_search_locations[0]) / "jars"
    return [f"{fetch_maven('guava', _GUAVA)}/*", str(fetch_bundle(version)), f"{spark}/*"]


class JvmContender:
    """A running JVM that holds a lock once for some seconds, or takes it many times. A context manager that kills.

    Args:
        partner: What to run.
        work: "hold", for `amount` seconds, or "storm", `amount` times for a moment.
        amount: See `work`.
        settings: On top of the partner's.
        until_told: Whether a hold lasts on until `let_go` or `finish`, however slow a busy machine is meanwhile.

    Raises:
        ServerUnavailable: See `Partner.command`.
    """

    def __init__(
        self,
        partner: Partner,
        work: Literal["hold", "storm"],
        amount: float,
        settings: Mapping[str, str] | None = None,
        *,
        until_told: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hudi-locks-jvm-")
        self._until = Path(self._folder.name) / "until"
        until = {"until": str(self._until)} if until_told else {}
        merged = {**partner.settings, **(settings or {}), **until}
        words = [*partner.command(), work, f"{amount:g}", *(f"{name}={value}" for name, value in merged.items())]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._process = subprocess.Popen(  # noqa: S603  # our own words
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.name: str = f"{partner.name}-{self._process.pid}"
        self._records: list[dict[str, Any]] = []
        self._told = threading.Event()
        """Set with its first line, or with its end."""
        self._has_held = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id, to freeze it or to crash it."""
        return self._process.pid

    def _read(self) -> None:
        for line in self._process.stdout or ():
            record = json.loads(line)
            if "asked_ns" in record:
                self._records.append(record)
            self._has_held = True
            self._told.set()
        self._process.wait()
        self._told.set()

    def wait_held(self, timeout_s: float) -> bool:
        """Whether it has had the lock within `timeout_s` seconds; a JVM takes one or two to ask for it.

        False at once where its process ends without it.
        """
        SystemClock().wait(self._told, timeout_s)
        return self._has_held

    @property
    def refusals(self) -> int:
        """How many of its attempts ended without the lock, as far as its holds have told."""
        return sum(record["tries"] - 1 for record in self._records)

    def has_ended(self) -> bool:
        """Whether its process is over."""
        return self._process.poll() is not None

    def let_go(self) -> None:
        """End a hold that lasts until it is told to end."""
        self._until.touch()

    def finish(self) -> History:
        """Let it end its hold, and wait for its end; all that it held.

        Raises:
            RuntimeError: It failed, and shows what it said; or it did not end.
        """
        self.let_go()
        try:
            status = self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.name} did not end within {_PATIENCE_S:.0f} s: {self._said()}") from None
        self._reader.join()
        if status:
            raise RuntimeError(f"{self.name} ended with {status}: {self._said()}")
        history = History()
        for record in self._records:
            for name, action, kind in _STEPS:
                history.add(self.name, action, kind, t_s=record[name] / 1e9)
        return history

    def _said(self) -> str:
        """What it wrote, without the frames of a stack: these say less than the errors and their causes."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))[-2000:]

    def kill(self) -> None:
        """End it as a crash would; quiet if it ended already."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()
        self._folder.cleanup()

    def __enter__(self) -> JvmContender:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
