"""Registers the kit's markers, so that `--strict-markers` knows them; nothing else."""

from __future__ import annotations

from typing import Any

__all__ = ["pytest_configure"]


def pytest_configure(config: Any) -> None:
    """See pytest."""
    config.addinivalue_line("markers", "conformance(id): a check of the lock provider conformance kit")
