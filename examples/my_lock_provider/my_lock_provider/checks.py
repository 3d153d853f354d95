"""A check of our own beside the kit's: `hudi-locks conformance --checks my_lock_provider.checks`."""

from pathlib import Path

from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Level, check


@check("X1", "nothing-beside-the-file", why="a backup of the file alone must hold all locks", level=Level.CORE)
def nothing_beside_the_file(bench: Bench) -> None:
    """Between two requests everything is in the one file: SQLite keeps no journal beside it."""
    file = Path(bench.harness.options["my.sqlite.file"])
    provider = bench.provider()
    lease = bench.acquire(provider, bench.scope())
    beside = [path.name for path in file.parent.glob(f"{file.name}-*")]
    bench.expect(not beside, f"beside {file.name} there is {', '.join(beside)}")
    provider.release(lease)
