"""What a call passes through in the package, as the interpreter's profiling hook sees it."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hudi_locks

__all__ = ["Passage", "measure", "measure_flow"]


@dataclass(frozen=True)
class Passage:
    """What one call passed through.

    Attributes:
        files: How many files of the package it entered.
        functions: How many different functions of the package it called.
        depth: The most functions of the package that were under way at once; those of other packages between them do
            not count.
    """

    files: int
    functions: int
    depth: int


def measure(action: Callable[[], object], folder: Path) -> Passage:
    """Run `action`, and count what the calling thread passes through in the source files below `folder`.

    What other threads and processes do meanwhile does not count, nor does what runs while a module is imported, nor
    comprehensions, which are functions in some Python versions only.
    """
    recorder = _Recorder(f"{folder}/", inspect.currentframe())
    before = sys.getprofile()
    with _collecting_later():
        sys.setprofile(recorder)
        try:
            action()
        finally:
            sys.setprofile(before)
    return Passage(len({code.co_filename for code in recorder.seen}), len(recorder.seen), recorder.deepest)


def measure_flow(flow: AbstractContextManager[Callable[[], object]]) -> Passage:
    """What the call that a flow yields passes through in `hudi_locks`; what goes before and after it does not count."""
    with flow as call:
        return measure(call, Path(hudi_locks.__file__).parent)


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Finalizers of what earlier calls left run on whichever thread the garbage collector stops."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass
class _Recorder:
    """The profiling hook, called at each call and return on one thread; a generator that goes on is called again."""

    prefix: str
    bottom: FrameType | None
    seen: set[CodeType] = field(default_factory=set)
    deepest: int = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and self._counts(frame.f_code):
            codes = list(self._walk(frame))
            if all(code.co_name != "<module>" for code in codes):
                self.seen.add(frame.f_code)
                self.deepest = max(self.deepest, sum(map(self._counts, codes)))

    def _counts(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.prefix) and not code.co_name.endswith("comp>")

    def _walk(self, frame: FrameType | None) -> Iterator[CodeType]:
        while frame is not None and frame is not self.bottom:
            yield frame.f_code
            frame = frame.f_back
