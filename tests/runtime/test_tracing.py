"""Traces: off by default, and one from a request over the outbox to what follows from it."""

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import select

from runtime.observability import tracing
from runtime.temporal.outbox import outbox
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.engine import graph, node
from tests.support.spaces import Space

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of the test."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(tracing._Tracing, "tracer", None)  # as before, afterwards
    tracing.trace_with(SimpleSpanProcessor(exporter), "test")
    return exporter


async def started(client: Client, space: Space, **headers: str) -> dict[str, object]:
    """What the outbox says of a new run."""
    made = await publish(client, space, graph=graph(node("a", "transform", output={})))
    path = f"{space.path}/automations/{made['id']}/run"
    run = read(await client.post(path, json={}, headers=headers))
    async with space.database.reading() as work:
        this = select(outbox.c.request).where(outbox.c.subject_id == run["id"])
        request: dict[str, object] = await work.scalar(this)
    return request


async def test_nothing_is_traced_by_default(client: Client, space: Space) -> None:
    assert tracing.tracer() is None
    assert tracing.traceparent() is None
    assert tracing.TRACEPARENT not in await started(client, space)


async def test_a_trace_continues_through_the_outbox(
    client: Client, space: Space, spans: InMemorySpanExporter
) -> None:
    request = await started(client, space, traceparent=REMOTE)
    (own,) = [one for one in spans.get_finished_spans() if one.name == "run_automation"]
    assert own.context is not None
    assert own.parent is not None
    assert f"{own.parent.trace_id:032x}-{own.parent.span_id:016x}" == REMOTE[3:52]
    assert own.attributes == {"http.response.status_code": 200}
    trace, span = own.context.trace_id, own.context.span_id
    assert request[tracing.TRACEPARENT] == f"00-{trace:032x}-{span:016x}-01"

    with tracing.caused_by(request):
        assert tracing.traceparent() == request[tracing.TRACEPARENT]
    assert tracing.traceparent() is None
