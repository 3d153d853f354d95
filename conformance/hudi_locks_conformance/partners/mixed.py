"""Python and JVM contenders for one lock at the same time, each a process of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

from hudi_locks_conformance.history import History
from hudi_locks_conformance.partners.jvm import JvmContender, Partner
from hudi_locks_conformance.storm import finish_process, open_gate, start_process
from hudi_locks_conformance.worker import WorkSpec

__all__ = ["run_mixed_storm"]

_WORKER: Final = ("-m", "hudi_locks_conformance.worker")


def run_mixed_storm(
    provider: str, options: Mapping[str, str], partners: Sequence[Partner], *, ours: int = 4, holds: int = 15
) -> History:
    """Let `ours` Python processes and all `partners` take the table's lock `holds` times each; all that they held.

    All begin at one moment, once the last of them is ready.

    Raises:
        Violation: One of ours failed or did not end.
        RuntimeError: A partner failed.
    """
    history = History()
    with tempfile.TemporaryDirectory(prefix="hudi-locks-mixed-") as folder, ExitStack() as stack:
        for name in ("counter", "listed"):
            Path(folder, name).touch()
        gate = {"gate": folder}
        theirs = [stack.enter_context(JvmContender(partner, "storm", holds, gate)) for partner in partners]
        specs = [
            WorkSpec(f"python-{number}", provider, dict(options), None, None, holds, folder, number)
            for number in range(ours)
        ]
        running = [start_process([*_WORKER, json.dumps(asdict(spec))]) for spec in specs]
        open_gate(Path(folder), running, others=theirs)
        for process in running:
            finish_process(process)
        for contender in theirs:
            history.merge(contender.finish().operations)
        for spec in specs:
            history.merge(History.load(Path(folder, f"{spec.name}.jsonl")).operations)
    return history
