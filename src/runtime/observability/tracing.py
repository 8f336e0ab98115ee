"""Traces by OpenTelemetry, from a request over the outbox to the activities that follow.

Nothing is traced until `configure_tracing` is called, which processes do when
`OTEL_EXPORTER_OTLP_ENDPOINT` is set. Until then each of these functions is one comparison. Spans
carry names of operations and statuses, no ids of users and no data.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span, Tracer


TRACEPARENT = "traceparent"
"""The header, and the key of a request in the outbox, that says what caused it (W3C)."""


class _Tracing:
    """The tracer of this process, once there is one."""

    tracer: "Tracer | None" = None


def configure_tracing(endpoint: str | None, service: str) -> None:
    """Send the spans of this process to an OTLP endpoint (HTTP), if there is one."""
    if endpoint is None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # costs a process nothing that does not trace
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # as above

    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    trace_with(BatchSpanProcessor(exporter), service)


def trace_with(processor: "SpanProcessor", service: str) -> None:
    """Trace from now on."""
    from opentelemetry import trace  # noqa: PLC0415  # as above
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # as above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # as above

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    _Tracing.tracer = provider.get_tracer("workspace")


def tracer() -> "Tracer | None":
    """The tracer of this process, None when nothing is traced."""
    return _Tracing.tracer


_NOTHING: AbstractContextManager[None] = nullcontext()


def request_span(
    name: str, headers: Sequence[tuple[bytes, bytes]]
) -> "AbstractContextManager[Span | None]":
    """The span of a request, which continues the trace that its headers name."""
    if _Tracing.tracer is None:
        return _NOTHING
    carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers}
    return _span(_Tracing.tracer, name, carrier)


@contextmanager
def _span(tracer: "Tracer", name: str, carrier: Mapping[str, str]) -> "Iterator[Span]":
    from opentelemetry.propagate import extract  # noqa: PLC0415  # as above
    from opentelemetry.trace import SpanKind  # noqa: PLC0415  # as above

    context = extract(carrier)
    with tracer.start_as_current_span(name, context=context, kind=SpanKind.SERVER) as span:
        yield span


def traceparent() -> str | None:
    """The name of the current span; None when nothing is traced."""
    if _Tracing.tracer is None:
        return None
    from opentelemetry.propagate import inject  # noqa: PLC0415  # as above

    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier.get(TRACEPARENT)


def caused_by(request: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Let what happens in the block follow from what a request in the outbox names."""
    parent = request.get(TRACEPARENT)
    if _Tracing.tracer is None or parent is None:
        return _NOTHING
    return _following(parent)


@contextmanager
def _following(parent: str) -> Iterator[None]:
    from opentelemetry import context  # noqa: PLC0415  # as above
    from opentelemetry.propagate import extract  # noqa: PLC0415  # as above

    token = context.attach(extract({TRACEPARENT: parent}))
    try:
        yield
    finally:
        context.detach(token)
