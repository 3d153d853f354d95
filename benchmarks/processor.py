"""What a benchmark cost the processor, which tells more than time where other jobs use the machine too."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["read_cpu"]


def read_cpu() -> float:
    """Processor seconds of this process, the JVM and the Python workers."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while added := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= added
    return sum(ticks[pid] for pid in own) / os.sysconf("SC_CLK_TCK")
