"""Spans that were ended, by an SDK of the test's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from hudi_locks.observe import SpanName

__all__ = ["EndedSpans", "keep_spans", "name_of", "told"]


@dataclass(frozen=True)
class EndedSpans:
    """What an exporter got."""

    exporter: InMemorySpanExporter

    def named(self, name: SpanName) -> list[ReadableSpan]:
        """Those of one name, in the order in which they ended."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name.value]

    def tree(self) -> set[tuple[str, str]]:
        """The names of each span and of its parent; "" for none."""
        spans = self.exporter.get_finished_spans()
        names = {name_of(span.get_span_context()): span.name for span in spans}
        return {(span.name, names[name_of(span.parent)] if span.parent else "") for span in spans}

    def text(self) -> str:
        """All of all of them."""
        return "\n".join(span.to_json() for span in self.exporter.get_finished_spans())


@contextmanager
def keep_spans() -> Iterator[EndedSpans]:
    """A context in which tracers are those of an SDK that keeps all spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", provider.get_tracer)
        yield EndedSpans(exporter)
    provider.shutdown()


def name_of(context: SpanContext | None) -> tuple[int, int]:
    """Ids of trace and span."""
    assert context is not None
    return context.trace_id, context.span_id


def told(span: ReadableSpan) -> Mapping[str, Any]:
    """Its attributes."""
    return dict(span.attributes or {})
