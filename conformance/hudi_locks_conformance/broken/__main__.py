"""Write the table of broken providers into a page: `python -m hudi_locks_conformance.broken PAGE`."""

from __future__ import annotations

import sys
from pathlib import Path

from hudi_locks_conformance.broken.table import write_table

if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
