"""What all tests share."""

from __future__ import annotations

import os
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from hudi_locks.storage import LocalStorage

pytest_plugins = ["real_servers"]
GOLDEN = Path(__file__).parent / "golden"

# A busy machine is no failure; what is needed to repeat one is printed.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=30, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=200, print_blob=True)
hypothesis.settings.load_profile("quick")


def _keep_bytecode() -> None:
    """Where bytecode must not lie beside the sources, keep it in the user's cache folder.

    Else each run, and each of the many processes that tests start, compiles all of it anew: a third of the time.
    """
    if sys.dont_write_bytecode:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(cache / "hudi-locks" / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


_keep_bytecode()
os.environ.pop("HUDI_CONF_DIR", None)  # of this machine's own jobs
os.environ.pop("PYTEST_ADDOPTS", None)  # meant for this run, and not for those that tests start
if not os.environ.get("HUDI_LOCKS_NIGHTLY"):
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "support" / "spark_conf"))
_DECLARED = "Skipped: unsupported: "


def pytest_configure(config: pytest.Config) -> None:
    """Where lines are traced, Python 3.11 now and then cannot trace a new thread, and the thread ends for it."""
    if os.environ.get("COVERAGE_PROCESS_START"):
        untraced = "ignore:Exception ignored in thread started by:pytest.PytestUnraisableExceptionWarning"
        config.addinivalue_line("filterwarnings", untraced)


def _find_avoidable(reporter: Any) -> list[str]:
    """Why tests were skipped, but for checks of a capability that a provider declares not to have."""
    skipped = reporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] if isinstance(report.longrepr, tuple) else "" for report in skipped]
    return [reason for reason in reasons if not reason.startswith(_DECLARED)]


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], LocalStorage]:
    """Unpacks a table that the JVM wrote."""

    def unpack(name: str) -> LocalStorage:
        with tarfile.open(GOLDEN / f"{name}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):  # not in the first releases of 3.10 and 3.11, which Debian still has
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(tmp_path)
        return LocalStorage(str(tmp_path / name))

    return unpack


@pytest.fixture
def golden_rows() -> Callable[[str], str]:
    """The rows that both of Hudi's readers saw in a golden table, as JSON lines."""
    return lambda name: (GOLDEN / f"{name}.expected.jsonl").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for the whole run; a task that fails is tried a second time."""
    from pyspark.sql import SparkSession
    from quick_spark import quicken_session

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,2]").appName("hudi-locks tests")
    settings = {
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.pyspark.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **quicken_session(),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def after_job(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Lets something happen once, after our next write has made its files and before it publishes them."""
    from hudi_locks.spark.writing.writer import Writer

    run_job = Writer._run_job

    def arm(action: Callable[[], Any]) -> None:
        def wrapped(self: Writer, *args: Any) -> Any:
            found = run_job(self, *args)
            monkeypatch.setattr(Writer, "_run_job", run_job)
            action()
            return found

        monkeypatch.setattr(Writer, "_run_job", wrapped)

    return arm


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the nightly run what other tests show already in pairs, or sooner."""
    if not os.environ.get("HUDI_LOCKS_NIGHTLY"):
        left = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def _leave_spark_connection() -> None:
    """Let the next call to Spark open a connection of its own.

    A test that ran out of time may have been stopped between a call and its answer; the next call would take that
    answer for its own, and so would every call after it.
    """
    pyspark = sys.modules.get("pyspark")
    gateway = pyspark and pyspark.SparkContext._gateway
    connection = gateway and gateway._gateway_client.get_thread_connection()
    if connection:
        connection.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the servers said last belongs to a failure, a hang among them; one test's hang is not the next one's."""
    report = yield
    if call.excinfo and isinstance(call.excinfo.value, pytest.fail.Exception):
        _leave_spark_connection()
    if report.failed:
        from hudi_locks_conformance.servers import started_processes

        report.sections += [(f"log of {one.folder}", one.log_tail(4000)) for one in started_processes()]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and (reasons := _find_avoidable(terminalreporter)):
        terminalreporter.write_line(f"HUDI_LOCKS_NO_SKIPS is set, and {len(reasons)} tests were skipped", red=True)
        for reason, count in Counter(reasons).items():
            terminalreporter.write_line(f"  {count} x {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and reporter is not None and _find_avoidable(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
