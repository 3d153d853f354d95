"""Where the driver commits what Spark's own format has staged: PySpark calls the format in processes without a session.

They reach the driver's process by a socket in a folder that only its user can open.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from hudi_locks import errors
from hudi_locks.errors import WriteError
from hudi_locks.spark.datasource import prepare_write, write_staged
from hudi_locks.spark.session import prepare_session
from hudi_locks.spark.staged_frames import read_staged
from hudi_locks.spark.staged_streams import StagedStreams
from hudi_locks.spark.writing.driver_calls import FAMILY
from hudi_locks.table import StagedInput, StagedRows

__all__ = ["CommitServer", "register_format"]

_servers: dict[SparkSession, CommitServer] = {}
_opening = threading.Lock()


def register_format(spark: SparkSession) -> None:
    """Register the format `hudi_locks` in a session: for `spark.read`, `readStream`, `write` and `writeStream`.

    Once is enough. The process that calls this commits what the session writes by the format, so it must live as long
    as its queries do. Needs PySpark 4; streams are written from 4.1 on.

    Args:
        spark: The session; one of Spark Connect can only read, see `HudiLocksDataSource`.

    Raises:
        SessionRefused: The session is one of Spark Connect, was stopped, or its local workers lack this package.
        ProviderLoadError: PySpark is older.
    """
    from hudi_locks.spark.reading.data_source import HudiLocksDataSource  # PySpark 3.5 has no such sources

    prepare_session(spark)
    with _opening:
        server = _servers.get(spark) or _servers.setdefault(spark, CommitServer(spark))
    spark.dataSource.register(type("HudiLocksDataSource", (HudiLocksDataSource,), {"driver": server.address}))


@dataclass
class _Write:
    """A write whose tasks run.

    Attributes:
        options: As the user gave them.
        schema: Of the rows.
        overwrites: Whether the save mode is overwrite.
        staged: Its input.
        deciding: Held while it is committed or given up.
        is_decided: Whether that is over.
    """

    options: Mapping[str, str]
    schema: T.StructType
    overwrites: bool
    staged: StagedInput
    deciding: threading.Lock = field(default_factory=threading.Lock)
    is_decided: bool = False


class CommitServer:
    """Serves the writes of one session. Lives on the driver.

    Attributes:
        address: Of its socket.
    """

    def __init__(self, spark: SparkSession) -> None:
        folder = tempfile.mkdtemp(prefix="hudi-locks-")
        atexit.register(self._close)
        self.address: str = str(Path(folder) / "commits")
        self._spark = spark
        self._writes: dict[str, _Write] = {}
        self._streams = StagedStreams(spark)
        self._listener = Listener(self.address, FAMILY)
        self._is_closed = False
        self._calls: Mapping[str, Callable[..., object]] = {
            "begin": self.begin,
            "commit": self.commit,
            "abort": self.abort,
            "begin_stream": self._streams.begin,
            "commit_stream": self._streams.commit,
            "abort_stream": self._streams.abort,
        }
        threading.Thread(target=self._listen, name="hudi-locks-commits", daemon=True).start()

    def begin(self, options: Mapping[str, str], schema: T.StructType, *, overwrites: bool) -> StagedInput:
        """Check a write before its tasks run, and make its table if there is none.

        Raises:
            HudiLocksError: What `hudi_locks.spark.write` would refuse.
        """
        empty = self._spark.createDataFrame([], schema)
        storage = prepare_write(empty, options, overwrites=overwrites)
        staged = StagedInput.begin(storage)
        self._writes[staged.name] = _Write(options, schema, overwrites, staged)
        return staged

    def commit(self, name: str, files: Sequence[StagedRows]) -> None:
        """Write what was staged, and remove it.

        Raises:
            HudiLocksError: See `hudi_locks.spark.write`.
        """
        write = self._writes.get(name)
        if write is None:
            raise _refuse_decided(name)
        with write.deciding:
            if write.is_decided:
                raise _refuse_decided(name)
            try:
                rows = read_staged(self._spark, write.staged, files, write.schema)
                write_staged(rows, write.options, overwrites=write.overwrites, staged=write.staged)
            finally:
                self._forget(name, write)

    def abort(self, name: str) -> None:
        """Remove what was staged, once no commit of it is at work any more."""
        write = self._writes.get(name)
        if write is not None:
            with write.deciding:
                self._forget(name, write)

    def _forget(self, name: str, write: _Write) -> None:
        write.is_decided = True
        self._writes.pop(name, None)
        with suppress(errors.StorageError):  # the next sweep but for a day removes it
            write.staged.remove_all()

    def _close(self) -> None:
        self._is_closed = True
        self._listener.close()
        shutil.rmtree(Path(self.address).parent, ignore_errors=True)

    def _listen(self) -> None:
        while not self._is_closed:
            with suppress(OSError):  # whoever called is gone again, or the process ends
                called = self._listener.accept()
                threading.Thread(target=self._answer, args=(called,), daemon=True).start()

    def _answer(self, called: Connection[Any, Any]) -> None:
        with closing(called), suppress(OSError, EOFError):
            name, arguments = called.recv()
            try:
                answer: object = self._calls[name](**arguments)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is raised where Spark tells the user
                called.send((type(error).__name__, str(error)))
            else:
                called.send((None, answer))


def _refuse_decided(name: str) -> WriteError:
    message = f"the write whose rows were staged as {name} was committed or given up before; see `hudi-locks timeline`"
    return WriteError(message, staged=name)
