"""Spans by the API of OpenTelemetry. The process's own SDK decides which are kept, and where they go.

Attributes and errors are shown without secrets; stacks are not shown, since they repeat what other libraries said.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hudi_locks.observe.tracing import Span, SpanName, SpanValue
from hudi_locks.redaction import hide_secrets

__all__ = ["OpenTelemetry"]

_NAME: Final = "hudi_locks"
_PREFIX: Final = "hudi."
_PARENT: Final = "traceparent"
_W3C: Final = TraceContextTextMapPropagator()


class OpenTelemetry:
    """Makes the spans of one writer; see `Tracing`. Thread-safe. Runs on the driver.

    Args:
        told: Attributes of every span.
    """

    def __init__(self, told: Mapping[str, SpanValue]) -> None:
        self._tracer: Any = trace.get_tracer(_NAME, _find_version())
        self._told = dict(told)

    def start(self, name: SpanName, attributes: Mapping[str, SpanValue], within: Span | None) -> Span:
        """See `Tracing.start`."""
        parent = within.context if isinstance(within, _OpenSpan) else None
        told = _spell({**self._told, **attributes})
        return _OpenSpan(self._tracer.start_span(name.value, context=parent, attributes=told))

    def event(self, name: str, attributes: Mapping[str, SpanValue]) -> None:
        """See `Tracing.event`."""
        trace.get_current_span().add_event(name, _spell(attributes))

    def note(self, attributes: Mapping[str, SpanValue]) -> None:
        """See `Tracing.note`."""
        trace.get_current_span().set_attributes(_spell(attributes))


class _OpenSpan(Span):
    is_on = True

    def __init__(self, span: Any) -> None:
        self._span = span
        self._attached: Any = None
        self._has_ended = False
        self.context: Any = trace.set_span_in_context(span)
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, self.context)
        self.traceparent = carrier.get(_PARENT, "")

    def note(self, **attributes: SpanValue) -> None:
        """See `Span.note`."""
        self._span.set_attributes(_spell(attributes))

    def link(self, traceparent: str) -> None:
        """See `Span.link`."""
        other = trace.get_current_span(_W3C.extract({_PARENT: traceparent}, context.Context())).get_span_context()
        if other.is_valid:
            self._span.add_link(other)

    def end(self) -> None:
        """See `Span.end`."""
        if not self._has_ended:
            self._has_ended = True
            self._span.end()

    def __enter__(self) -> Span:
        self._attached = context.attach(self.context)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        context.detach(self._attached)
        if error is not None:
            kind_name, message = type(error).__name__, hide_secrets(str(error))
            self._span.add_event("exception", {"exception.type": kind_name, "exception.message": message})
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, f"{kind_name}: {message}"))
        self.end()


def _find_version() -> str | None:
    try:
        return version("hudi-locks")
    except PackageNotFoundError:  # bare files on the path
        return None


def _spell(attributes: Mapping[str, SpanValue]) -> dict[str, Any]:
    return {f"{_PREFIX}{name}": _show(value) for name, value in attributes.items() if value is not None}


def _show(value: SpanValue) -> Any:
    if isinstance(value, str):
        return hide_secrets(value)
    return value if isinstance(value, (int, float)) else [hide_secrets(text) for text in value or ()]
