"""Measure the flows, and print what was found beside the limits."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from .flows import FLOWS, SPARK_FLOWS
from .limits import LIMITS
from .passage import Passage, measure_flow

_HEAD: Final = "| flow | files | functions | depth | aim |\n|---|---|---|---|---|"
_QUICK: Final = Path(__file__).parents[2] / "tests" / "support" / "spark_conf"
"""Settings that make Spark quick with a few rows; the driver's flow is the same without them."""


def main(words: Sequence[str]) -> int:
    """Measure what the words ask for; 1 if a flow is over its limit."""
    options = _parse(words)
    found = measure_flows(options.flow or list(LIMITS))
    if options.json:
        print(json.dumps({name: asdict(passage) for name, passage in found.items()}, indent=2))
    else:
        print(render_table(found))
    excess = {name: LIMITS[name].find_excess(passage) for name, passage in found.items()}
    over = [f"{name}: {what}" for name, what in excess.items() if what]
    print(*over, sep="\n", end="\n" if over else "", file=sys.stderr)
    return 1 if over else 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="flow", description="how much code does one operation pass through?")
    parser.add_argument("flow", nargs="*", choices=[[], *LIMITS], help=f"of {', '.join(LIMITS)}; all if none is named")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(words)


def measure_flows(names: Sequence[str]) -> dict[str, Passage]:
    """What each flow passes through; those that need it share one Spark session."""
    with tempfile.TemporaryDirectory() as folder, _open_spark(names) as session:
        return {name: _measure(name, Path(folder, name), session) for name in names}


def _measure(name: str, folder: Path, session: Any) -> Passage:
    flow = SPARK_FLOWS[name](folder, session) if name in SPARK_FLOWS else FLOWS[name](folder)
    return measure_flow(flow)


@contextmanager
def _open_spark(names: Sequence[str]) -> Iterator[Any]:
    if not SPARK_FLOWS.keys() & set(names):
        yield None
        return
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(_QUICK))
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def render_table(found: Mapping[str, Passage]) -> str:
    """A Markdown table."""
    return "\n".join([_HEAD, *(_render_row(name, passage) for name, passage in found.items())])


def _render_row(name: str, passage: Passage) -> str:
    limit = LIMITS[name]
    aim = f"at most {limit.aim_files} files" + (f", depth {limit.aim_depth}" if limit.aim_depth else "")
    return f"| {name} | {passage.files} | {passage.functions} | {passage.depth} | {aim} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
