"""The same with somebody who restores: writes are undone, with the logs that others' base files name."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from old_logging_simulator import OldLoggingSimulator, choose_crash, choose_lost, play_alone

from hudi_locks.errors import DamagedTable, SavepointRefused, StorageError, WriteAborted, WriteError
from hudi_locks.format import Instant, RestorePlan, State
from hudi_locks.services import Restorer
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome

__all__ = ["OldRestoringSimulator", "play_old_restores"]


class OldRestoringSimulator(OldLoggingSimulator):
    """What a restore has undone is no lost write."""

    def writers(self, name: str, group: str, **how: Any) -> None:
        """Nobody begins to write beside a restore."""
        for number in range(4):
            with contextlib.suppress(WriteAborted):
                self.writer(f"{name}.{number}", group, **how)
            self.look()
            self.doze()

    def restorer(self, name: str, *, rounds: int = 3, **how: Any) -> None:
        """Goes back to one of the last writes, a few times."""
        restorer = Restorer(self.transactions(name, **how).coordinator)
        for _ in range(rounds):
            self.doze()
            if aims := self._list_aims():
                with contextlib.suppress(StorageError, WriteError, DamagedTable, SavepointRefused):
                    restorer.run(self.rng.choice(aims))
            self.look()

    def _list_aims(self) -> list[str]:
        """Where a restore is not finished, that one's."""
        timeline = Timeline.load(self.files, self.layout)
        unfinished = [plan.savepoint for plan in self._read_plans(timeline.pending(("restore",))) if plan.savepoint]
        return unfinished or [one.requested for one in timeline.completed((self.action,))[-4:]]

    def look(self) -> None:
        """While a write is being undone, who slept may make its completed file again for a moment."""
        if not Timeline.load(self.files, self.layout).pending(("restore",)):
            super().look()

    def spawn_services(self, lock: Any) -> None:
        super().spawn_services(lock)
        self.spawn_twice("restorer", self.restorer, lock)

    def clean_up(self) -> None:
        self.recover()
        if Timeline.load(self.files, self.layout).pending(("restore",)):
            self.restorer("last restorer", all_dead=True, rounds=2)
        super().clean_up()

    def list_undone(self) -> set[str]:
        """Requested times of all writes that restores were to undo."""
        timeline = Timeline.load(self.files, self.layout)
        restores = [one for one in timeline.instants if one.action == "restore"]
        return {requested for plan in self._read_plans(restores) for requested, _ in plan.instants}

    def _read_plans(self, restores: Any) -> list[RestorePlan]:
        paths = [self.layout.path(Instant(one.requested, "restore", State.REQUESTED)) for one in restores]
        return [RestorePlan.decode(data, path) for path in paths if (data := self.files.read(path))]

    def _wrong_answers(self) -> str:
        undone = self.list_undone()
        kept = {name: outcome for name, outcome in self.outcomes.items() if self.begun.get(name) not in undone}
        back = [name for name, outcome in self.outcomes.items() if name not in kept and self._is_back(name, outcome)]
        self.outcomes = kept
        return f"{back} were undone, and are completed" if back else super()._wrong_answers()

    def _is_back(self, name: str, outcome: Outcome) -> bool:
        return self.begun[name] in self.logged(Timeline.load(self.files, self.layout))


def play_old_restores(seed: int, *, rng: random.Random | None = None) -> OldRestoringSimulator:
    """See `play_alone`."""
    simulator = OldRestoringSimulator(rng or random.Random(seed), crash=choose_crash(seed), lost=choose_lost(seed))
    play_alone(simulator, seed)
    return simulator
