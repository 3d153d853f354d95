"""One look at a cluster's executors before anything is written: do they run this package, and see this table?"""

from __future__ import annotations

import socket
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from pyspark.sql import SparkSession

from hudi_locks.errors import SessionRefused, StorageError
from hudi_locks.redaction import hide_secrets
from hudi_locks.spark.session import WAY_OUT, typed_task_errors
from hudi_locks.storage import Storage
from hudi_locks.table.config import PROPERTIES_PATH

__all__ = ["check_executors"]

_PACKAGE: Final = "hudi-locks"
_MOST_TASKS: Final = 64
_SHARED: Final = (
    "give a path that every machine sees as the same folder: a shared mount, or an address such as s3a:// or hdfs://"
)
_looked: set[tuple[str, Hashable]] = set()
"""The application and the table of each look that found nothing amiss."""


@dataclass(frozen=True)
class _Sight:
    """What one executor sees.

    Attributes:
        host: Its machine.
        release: Of this package, as it is installed there; "" where only its files were sent.
        sees_table: Whether the table is there.
        error: What the store said, if it gave no answer.
    """

    host: str
    release: str
    sees_table: bool
    error: str = ""


@dataclass(frozen=True)
class _Look:
    """The task of a look. Runs on executors.

    Attributes:
        storage: Of the table.
    """

    storage: Storage

    def __call__(self, _: Iterable[int]) -> Iterator[_Sight]:
        host, release = socket.gethostname(), _find_release()
        try:
            yield _Sight(host, release, self.storage.exists(PROPERTIES_PATH))
        except StorageError as error:
            yield _Sight(host, release, sees_table=False, error=str(error))


def _find_release() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return ""


def check_executors(spark: SparkSession, storage: Storage) -> None:
    """Look, once for each application and table, at what executors on other machines run and see.

    Nothing is looked at where Spark runs in the driver's process. On a cluster it takes one small job, which reaches as
    many executors as have a core free for it; one that joins later is not looked at.

    Args:
        spark: The session.
        storage: Of a table that is there.

    Raises:
        SessionRefused: An executor lacks this package, has another release of it, or does not see the table.
    """
    context: Any = spark.sparkContext
    if _is_local(context.master):
        return
    seen = (context.applicationId, storage.place)
    if seen in _looked:
        return
    tasks = max(2, min(context.defaultParallelism, _MOST_TASKS))
    with typed_task_errors():
        sights: list[_Sight] = context.parallelize(range(tasks), tasks).mapPartitions(_Look(storage)).collect()
    _judge(sights, storage.base)
    _looked.add(seen)


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _judge(sights: Iterable[_Sight], path: str) -> None:
    ours = _find_release()
    for sight in sights:
        if sight.release != ours and sight.release and ours:
            message = f"{sight.host} runs hudi-locks {sight.release}, and the driver {ours}; {WAY_OUT}"
            raise SessionRefused(message, host=sight.host, found=sight.release, expected=ours)
        if sight.error:
            message = f"{sight.host} cannot look at the table {path}: {hide_secrets(sight.error)}"
            raise SessionRefused(message, host=sight.host, path=path)
        if not sight.sees_table:
            message = f"{sight.host} does not see the table {path}, which the driver sees; {_SHARED}"
            raise SessionRefused(message, host=sight.host, path=path)
