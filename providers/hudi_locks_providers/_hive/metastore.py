"""Calls of a Hive Metastore that concern locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable
from hudi_locks_providers._hive.connections import MetastoreConnections, find_user
from hudi_locks_providers._wire.hive_lock import MOST_LETTERS, LockRow

__all__ = ["LockGone", "Metastore"]

_GONE: Final = ("NoSuchLockException", "NoSuchTxnException", "TxnAbortedException")


class LockGone(Exception):  # an answer of the metastore, never seen outside
    """The metastore knows no such lock: it was released, removed, or ran out."""


class Metastore(MetastoreConnections):
    """All calls of one provider. A lock that is not there is a `LockGone`.

    Args:
        options: For the addresses.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options, lock_keys.HIVE_URIS)

    def lock(self, database: str, tables: Sequence[str], *, host: str, agent: str) -> tuple[int, bool]:
        """Ask for an exclusive lock on tables of a database, all in one: its id, and whether it is granted."""
        types = self.types()
        parts = [
            types.LockComponent(
                type=types.LockType.EXCLUSIVE,
                level=types.LockLevel.TABLE,
                dbname=database,
                tablename=table,
                operationType=types.DataOperationType.UNSET,
                isTransactional=None,  # the JVM's client leaves these two out, and old metastores do not know them
                isDynamicPartitionWrite=None,
            )
            for table in tables
        ]
        answer = self.call(
            "lock", types.LockRequest(component=parts, user=find_user(), hostname=host[:MOST_LETTERS], agentInfo=agent)
        )
        return answer.lockid, answer.state == types.LockState.ACQUIRED

    def unlock(self, lock_id: int) -> None:
        """Let go of a lock, granted or waiting; done twice if the first answer is lost, for ids are used once.

        Raises:
            LockGone: There is no such lock; newer metastores do not tell.
        """
        request = self.types().UnlockRequest(lockid=lock_id)
        try:
            self.call("unlock", request)
        except BackendUnavailable:
            self.call("unlock", request)

    def heartbeat(self, lock_id: int) -> None:
        """Tell that the holder lives.

        Raises:
            LockGone: There is no such lock.
        """
        self.call("heartbeat", self.types().HeartbeatRequest(lockid=lock_id, txnid=0))

    def find_locks(self, database: str, table: str) -> list[LockRow]:
        """All locks on a table, granted and waiting, in the order of their ids.

        Hive 2 keeps names as they were sent, and takes `Trips` and `trips` for two tables; later ones keep them in
        small letters, and do not always find them by another form.
        """
        found = self._find_exactly(database, table)
        if not found and (database, table) != (database.lower(), table.lower()):
            found = self._find_exactly(database.lower(), table.lower())
        return sorted(found, key=lambda row: row.lock_id)

    def find_locks_like(self, database: str, prefix: str) -> list[LockRow]:
        """All locks on what has a name in small letters that begins so, in the order of their ids."""
        spelt = dict.fromkeys((database, database.lower()))
        rows = {(row.lock_id, row.table): row for name in spelt for row in self._show(name)}
        return [rows[known] for known in sorted(rows) if rows[known].table.startswith(prefix)]

    def _find_exactly(self, database: str, table: str) -> list[LockRow]:
        return [row for row in self._show(database, table) if (row.database, row.table) == (database, table)]

    def _show(self, database: str, table: str | None = None) -> list[LockRow]:
        types = self.types()
        answer = self.call("show_locks", types.ShowLocksRequest(dbname=database, tablename=table))
        return [LockRow.from_element(one, granted=types.LockState.ACQUIRED) for one in answer.locks or ()]

    def find_setting(self, name: str, default: str) -> str:
        """A setting of the metastore itself; the default if it does not tell."""
        try:
            return str(self.call("get_config_value", name, default))
        except BackendRefused:
            return default

    def _translate(self, method: str, error: Exception) -> Exception:
        name, facts = type(error).__name__, {"uris": self.place, "method": method}
        said = getattr(error, "message", None) or str(error)
        if name in _GONE:
            return LockGone(said)
        if name == "TxnOpenException":
            return BackendRefused(
                f"the metastore ({self.place}) refuses {method}: {said}; the lock belongs to a transaction of Hive,"
                " which is ended by ABORT TRANSACTIONS",
                **facts,
            )
        found = super()._translate(method, error)
        if not isinstance(found, BackendRefused):
            return found
        return BackendRefused(
            f"the metastore ({self.place}) does not do {method}: {said}; a catalog without locks, such as AWS Glue,"
            " cannot be used: take the dynamodb, storage or zookeeper provider",
            **facts,
        )
