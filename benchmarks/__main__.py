"""`python -m benchmarks`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.figures import print_figures, save_figures

NAMES = (
    "commits",
    "data_source",
    "early_conflict",
    "early_conflict_checks",
    "early_conflict_markers",
    "early_conflict_writers",
    "filesystem_lock",
    "indexes",
    "key_lookup",
    "lineitem",
    "listing",
    "locks",
    "locks_dynamodb",
    "locks_hive",
    "locks_storage",
    "locks_zookeeper",
    "metadata_table",
    "micro_batches",
    "naming",
    "nbcc_costs",
    "nbcc_peers",
    "nbcc_slices",
    "nbcc_writers",
    "record_index",
)


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    quick: Annotated[bool, typer.Option(help="Less of everything, to see whether it runs.")] = False,  # noqa: FBT002
    json: Annotated[Path | None, typer.Option(help="Also write the figures to this file.")] = None,
    scale: Annotated[float, typer.Option(help="lineitem, indexes: TPC-H scale factor; 5 for 30 million rows.")] = 0.5,
    growth_alone: Annotated[bool, typer.Option(help="commits: only beside so many active instants.")] = False,  # noqa: FBT002
    on_s3: Annotated[bool, typer.Option(help="lineitem, commits (20 ms away).")] = False,  # noqa: FBT002
    rounds: Annotated[int, typer.Option(help="lineitem, indexes: how often each side takes its turn.")] = 3,
) -> None:
    """Run one benchmark and print its figures."""
    if name not in NAMES:
        raise typer.BadParameter(f"{name} is none of {', '.join(NAMES)}")
    module = importlib.import_module(f"benchmarks.{name}")
    own: dict[str, dict[str, Any]] = {
        "lineitem": {"scale": scale, "rounds": rounds, "on_s3": on_s3},
        "indexes": {"scale": scale, "rounds": rounds},
        "commits": {"growth_alone": growth_alone, "on_s3": on_s3},
    }
    figures = module.run(quick=quick, **own.get(name, {}))
    print_figures(figures)
    if json is not None:
        save_figures(figures, json)


if __name__ == "__main__":
    typer.run(main)
