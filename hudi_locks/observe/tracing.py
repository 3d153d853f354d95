"""Spans: what a writer does, for a trace. Here are their names, and what stands for a span where tracing is off.

`hudi_locks.observe.open_telemetry` makes real ones; only `hudi_locks.tracing=true` imports it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, Protocol, TypeVar

__all__ = ["NO_SPAN", "Span", "SpanName", "SpanValue", "Tracing"]

SpanValue = str | int | float | bool | Sequence[str] | None
"""Of an attribute; None for one that is left out."""
T = TypeVar("T")


class SpanName(enum.Enum):
    """Names of spans. They stand in docs/metrics.md, and do not change."""

    WRITE = "hudi.write"
    ATTEMPT = "hudi.write.attempt"
    BEGIN = "hudi.begin"
    PLACE = "hudi.place"
    WRITE_FILES = "hudi.write_files"
    PUBLISH = "hudi.publish"
    CONFLICT_CHECK = "hudi.conflict_check"
    FINALIZE = "hudi.finalize"
    LOCK = "hudi.lock"
    LOCK_ACQUIRE = "hudi.lock.acquire"
    COMPACTION = "hudi.compaction"
    LOG_COMPACTION = "hudi.logcompaction"
    CLUSTERING = "hudi.clustering"
    CLEAN = "hudi.clean"
    ARCHIVE = "hudi.archive"
    ROLLBACK = "hudi.rollback"
    RESTORE = "hudi.restore"


class Span:
    """A span that nobody sees. As a context manager a span is the present one of its thread, and ends with the block.

    Attributes:
        is_on: Whether somebody sees it.
        traceparent: What others link to it by, as W3C writes it; "" if nobody sees it.
    """

    is_on: bool = False
    traceparent: str = ""

    def note(self, **attributes: SpanValue) -> None:
        """Give it attributes; each is shown as `hudi.` and its name."""

    def link(self, traceparent: str) -> None:
        """Point to another span; a text that names none is passed over."""

    def end(self) -> None:
        """End it, unless it has ended."""

    @contextmanager
    def entering(self, context: AbstractContextManager[T]) -> Iterator[T]:
        """The context, of which this span covers the entry alone."""
        with ExitStack() as stack:
            with self:
                entered = stack.enter_context(context)
            yield entered

    def __enter__(self) -> Span:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Nothing ends."""


NO_SPAN: Final = Span()


class Tracing(Protocol):
    """What makes spans for one writer."""

    def start(self, name: SpanName, attributes: Mapping[str, SpanValue], within: Span | None) -> Span:
        """A span that begins now.

        Args:
            name: Its name.
            attributes: As `Span.note` takes them.
            within: The span that it is a part of; None for the present one of the thread.
        """

    def event(self, name: str, attributes: Mapping[str, SpanValue]) -> None:
        """Something that happened in the present span of the thread."""

    def note(self, attributes: Mapping[str, SpanValue]) -> None:
        """Give attributes to the present span of the thread."""
