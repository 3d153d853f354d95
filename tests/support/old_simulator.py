"""The simulator of a table of version 6, whose completed files tell no completion time."""

from __future__ import annotations

import json

from old_archive_files import encode_archive
from transaction_simulator import Simulator

from hudi_locks.format import FIRST_TIME, Instant, State
from hudi_locks.markers import staging_folder
from hudi_locks.storage import Storage
from hudi_locks.timeline import LAYOUT_1
from hudi_locks.timeline.archive import list_archived_times


class OldSimulator(Simulator):
    """Its archiver leaves logs, as JVM Hudi does."""

    layout = LAYOUT_1

    def _archive(self, storage: Storage, instant: Instant, *, is_foreign: bool) -> None:
        told = json.loads(storage.read(self.layout.path(instant)) or b"{}")
        entry = {
            "hoodieCommitMetadata": told,
            "commitTime": instant.requested,
            "actionType": instant.action,
            "actionState": "COMPLETED",
            "stateTransitionTime": instant.completion,
        }
        number = len(storage.list(self.layout.archive)) + 1
        storage.create_if_absent(f"{self.layout.archive}/.commits_.archive.{number}_1-0-1", encode_archive([entry]))
        for state in (State.INFLIGHT, State.REQUESTED):
            storage.delete(self.layout.path(Instant(instant.requested, "commit", state)))
        if not is_foreign:
            storage.delete_folder(staging_folder(instant.requested))
        storage.delete(self.layout.path(instant))

    def list_archived(self) -> set[str]:
        return set(list_archived_times(self.files, self.layout, completed_after=FIRST_TIME))
