"""The user's Spark session: whether it will do, what it shows, and its jobs that fail or are in vain. On the driver."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_locks import errors
from hudi_locks.config import Options
from hudi_locks.config.lock_keys import PROVIDER
from hudi_locks.display import open_notebook_line
from hudi_locks.errors import BadInput, DamagedTable, HudiLocksError, SessionRefused, StorageError, WriteAborted
from hudi_locks.spark._compat import is_stopped
from hudi_locks.spark.store_settings import add_store_settings
from hudi_locks.storage import Storage, open_storage
from hudi_locks.transaction import Conflict, Transaction

__all__ = [
    "WAY_OUT",
    "EarlyConflictMet",
    "add_lock_settings",
    "cancel_on_abort",
    "check_session",
    "open_table_storage",
    "prepare_session",
    "raise_if_rolled_back",
    "show_progress",
    "typed_task_errors",
]

_RAISED: Final = re.compile(r"hudi_locks\.errors\.(\w+): ([^\n]*)")

_UNFIT: Final = (
    (re.compile(r"No module named '(hudi_locks|pyarrow|pandas|numpy|fastavro|obstore|boto3)\b"), "have no {}"),
    (re.compile(r"Python in worker has (?:a )?different version:? ([^\n]*)"), "run another version of Python: {}"),
    (re.compile(r'Cannot run program "([^"]*python[^"]*)"'), "are to run {}, which is not there"),
)
"""What Spark says of workers that cannot run our tasks."""
_DAMAGED: Final = re.compile(r"([^\n]*(?: is not a Parquet file|corrupted file:|Could not read footer)[^\n]*)")
_BASE_FILE: Final = re.compile(r"[^\s:]+\.parquet\b")
"""What its readers say of a base file that is not whole; of a wrong footer they name no file."""


@contextmanager
def show_progress(title: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done: in the cell of a notebook, else on standard error if that is a terminal."""
    if "IPython" in sys.modules and (line := open_notebook_line()) is not None:
        line(title)
        try:
            yield lambda step: line(f"{title}: {step}")
        finally:
            line("")
        return
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # executors import this module, and show nothing

    console = Console(stderr=True)
    with console.status(title) as status:
        yield lambda step: status.update(f"{title}: {step}")


WAY_OUT: Final = (
    "set PYSPARK_PYTHON, or spark.pyspark.python, to a Python of the driver's version with hudi-locks[spark], on every"
    " machine, before the session is made"
)
_VARIABLE: Final = "PYSPARK_PYTHON"
_SETTINGS: Final = ("spark.sql.execution.pyspark.python", "spark.pyspark.python")
_STORAGE_LOCKS: Final = ("storage", "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider")
_SENT: Final = ("spark.submit.pyFiles", "spark.archives")
"""What may bring the package to workers whose Python lacks it."""
_PROBE: Final = "import hudi_locks.spark._compat"
_PROBE_TIMEOUT_S: Final = 60
_configurations: Final[WeakKeyDictionary[Any, Mapping[str, str]]] = WeakKeyDictionary()


def prepare_session(spark: SparkSession) -> None:
    """Check the session, and see to it that local workers find this package.

    Where Spark runs on this machine and nobody named a Python, its workers run the driver's; Spark would take the
    `python3` of the PATH, which need not have this package.

    Raises:
        SessionRefused: The session is one of Spark Connect, was stopped, or its local workers lack this package.
    """
    check_session(spark)
    context: Any = spark.sparkContext
    if not context.master.startswith("local"):
        return
    if _VARIABLE not in os.environ:
        context.pythonExec = _find_setting(context) or sys.executable
    if context.pythonExec == sys.executable or any(map(_read_configuration(context).get, _SENT)):
        return
    if lack := _find_lack(context.pythonExec):
        message = f"Spark's Python workers run {context.pythonExec}, which cannot import hudi_locks ({lack}); {WAY_OUT}"
        raise SessionRefused(message, python=context.pythonExec)


def check_session(spark: SparkSession) -> None:
    """Refuse a session that cannot be used.

    Raises:
        SessionRefused: It is one of Spark Connect, or was stopped.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SessionRefused(
            "this is a session of Spark Connect, which has no SparkContext to run the tasks of a write with; make one"
            " by SparkSession.builder.master(...), or run the job by spark-submit; to read alone, register"
            " hudi_locks.spark.HudiLocksDataSource, which needs PySpark 4"
        )
    if is_stopped(spark):
        raise SessionRefused("this Spark session was stopped; make a new one, and load the table with it")


def open_table_storage(
    spark: SparkSession, path: str | os.PathLike[str], options: Mapping[str, object] | None
) -> Storage:
    """The storage of the table at a path, reached as the options say, and else as the session's own file systems are.

    What is read of the session must stand in the configuration with which its context was made; see
    `add_store_settings`.

    Raises:
        ConfigError: See `open_storage`.
    """
    told = _read_configuration(spark.sparkContext)
    return open_storage(path, add_store_settings(Options(options), os.fspath(path), told))


def add_lock_settings(spark: SparkSession, options: Options, path: str) -> Options:
    """The options of a writer, by which a lock that lies beside the table is reached as the table itself."""
    if options.find(PROVIDER) not in _STORAGE_LOCKS:
        return options
    return add_store_settings(options, path, _read_configuration(spark.sparkContext))


def _find_setting(context: Any) -> str | None:
    return next(filter(None, map(_read_configuration(context).get, _SETTINGS)), None)


def _read_configuration(context: Any) -> Mapping[str, str]:
    """That with which a context was made; asking the JVM for it takes longer than loading a table."""
    if context not in _configurations:
        _configurations[context] = dict(context.getConf().getAll())
    return _configurations[context]


@cache
def _find_lack(python: str) -> str:
    """Why a Python of this machine cannot run our tasks; "" if it can."""
    found = shutil.which(python)
    if found is None:
        return "there is no such program"
    if Path(found) == Path(sys.executable):
        return ""
    command = [found, "-c", _PROBE]
    try:
        done = subprocess.run(  # noqa: S603  # the program that Spark would run
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    return said[-1] if done.returncode else ""


@contextmanager
def typed_task_errors(*, reading_into: str = "") -> Iterator[None]:
    """Around an action of Spark: what a task raised as an error of ours is raised here as the same class.

    Spark hands on the text of a traceback; the facts of the error stay on the executor.

    Args:
        reading_into: The address of the table for which input is read, and nothing else: a damaged file that is not
            below it, or that Spark does not name, is the input's.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        found = _find_raised(text) or _find_unfit(text) or _find_damaged(text, reading_into=reading_into)
        if found is None:
            raise
        raise found from error


def _find_raised(text: str) -> HudiLocksError | None:
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HudiLocksError):
            return kind(message)
    return None


def _find_unfit(text: str) -> SessionRefused | None:
    for form, phrase in _UNFIT:
        if match := form.search(text):
            return SessionRefused(f"Spark's Python workers {phrase.format(match[1])}; {WAY_OUT}", found=match[1])
    return None


def _find_damaged(text: str, *, reading_into: str) -> DamagedTable | BadInput | None:
    match = _DAMAGED.search(text)
    if match is None:
        return None
    said = match[1].rpartition("Exception: ")[2].strip()
    named = _BASE_FILE.search(match[1])
    file = named[0] if named else None
    if reading_into and (file is None or f"{reading_into.rstrip('/')}/" not in unquote(file)):
        shown = file or "one of its files, which Spark does not name,"
        message = f"the input cannot be read: {shown} is no whole Parquet file ({said}); mend it, or take it away"
        return BadInput(message, path=file)
    message = (
        f"{file or 'a base file'} is no whole Parquet file ({said}); bring it back from a copy, or restore the table"
    )
    return DamagedTable(message, path=file)


@contextmanager
def cancel_on_abort(transaction: Transaction, spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that this thread runs in the block as soon as it is known that they are in vain.

    The heartbeat of the write is lost, so that others may roll it back; or a task has met an earlier write, and would
    meet it again as often as Spark repeats it.

    Raises:
        EarlyConflictMet: A task has met an earlier write; in place of what Spark says of the job.
    """
    tag, context = f"hudi_locks-{transaction.instant}", spark.sparkContext
    context.addJobTag(tag)
    transaction.call_when_lost(lambda _: context.cancelJobsWithTag(tag))
    try:
        with transaction.call_at_conflict(lambda: context.cancelJobsWithTag(tag)):
            yield
    except (PySparkException, Py4JError) as error:
        conflict = None if transaction.lost_because else transaction.find_early_conflict()
        if conflict is None:
            raise
        raise EarlyConflictMet(conflict) from error
    finally:
        context.removeJobTag(tag)


class EarlyConflictMet(Exception):
    """A task met an earlier write before it wrote.

    Attributes:
        conflict: With whom.
    """

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


@contextmanager
def raise_if_rolled_back(transaction: Transaction) -> Iterator[None]:
    """Look, when the block fails for a file or a job, whether the write was rolled back meanwhile.

    Then what it reads may have been cleaned, and what it wrote removed: no file is damaged.

    Raises:
        WriteAborted: It was, with `instant` and `reason` as facts; in place of what failed, which is its cause.
    """
    try:
        yield
    except (PySparkException, Py4JError, DamagedTable, StorageError) as error:
        if reason := _find_reason(transaction):
            message = (
                f"instant {transaction.instant} is given up, and its jobs are cancelled: {reason}. Nothing of it is"
                " visible, and files that it needs may be gone: begin a new write"
            )
            raise WriteAborted(message, instant=transaction.instant, reason=reason) from error
        raise


def _find_reason(transaction: Transaction) -> str:
    with suppress(StorageError, DamagedTable):  # then only the heartbeat knows
        return transaction.find_loss()
    return transaction.lost_because
