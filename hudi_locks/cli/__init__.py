"""The command line: `hudi-locks`."""

from hudi_locks.cli.main import main

__all__ = ["main"]
