"""Metrics in the text format of Prometheus: of requests in this process, and of the platform."""

import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from models.automation.run_statistics.queries import attribute_counts
from models.workspace.system.queries import system_state
from models.workspace.system.shapes import SystemState
from runtime.database import UnitOfWork

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATE_SECONDS = 5.0
"""The time the state of the platform is kept: anybody may ask for it, as often as they like."""

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one process. No label names a workspace, a person or an id."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "workspace_http_requests",
            "Requests that were answered.",
            ["operation", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "workspace_http_request_seconds",
            "Seconds until the answer of a request began.",
            ["operation"],
            registry=registry,
            buckets=_BUCKETS,
        )
        self._counters: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges = _Gauges(registry)
        self._attributes = _AttributeCounts()
        registry.register(self._attributes)
        self._asked = float("-inf")

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count a request. It takes some microseconds."""
        counter = self._counters.get((operation, status))
        if counter is None:
            counter = self._requests.labels(operation, str(status))
            self._counters[operation, status] = counter
        counter.inc()
        histogram = self._histograms.get(operation)
        if histogram is None:
            histogram = self._histograms[operation] = self._seconds.labels(operation)
        histogram.observe(seconds)

    async def text(self, work: UnitOfWork) -> bytes:
        """All metrics; the state of the platform is up to `STATE_SECONDS` old."""
        if time.monotonic() >= self._asked + STATE_SECONDS:
            self._asked = time.monotonic()
            self._gauges.show(await system_state(work))
            self._attributes.counts = await attribute_counts(work)
        return generate_latest(self._registry)


class _Gauges:
    """The state of the platform, the same in every process that is asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, words: str, *labels: str) -> Gauge:
            return Gauge(f"workspace_{name}", words, labels, registry=registry)

        self._relay = gauge("relay_waiting", "Intents that Temporal has not been told yet.")
        self._lag = gauge("relay_lag_seconds", "Age of the oldest of them.")
        self._retried = gauge("relay_retried", "Those that could not be delivered at once.")
        self._events = gauge("events_waiting", "Events that no automation has answered yet.")
        self._events_age = gauge("events_oldest_seconds", "Age of the oldest of them.")
        self._open = gauge("open_work", "Accepted work that has not ended.", "kind", "status")
        self._open_age = gauge(
            "open_work_oldest_seconds", "Age of the oldest of it.", "kind", "status"
        )
        self._workers = gauge("workers", "Worker processes that are alive.", "queue")

    def show(self, state: SystemState) -> None:
        """Set all gauges."""
        self._relay.set(state.relay.waiting)
        self._lag.set(state.relay.oldest_seconds or 0)
        self._retried.set(state.relay.retried)
        self._events.set(state.events.waiting)
        self._events_age.set(state.events.oldest_seconds or 0)
        self._open.clear()
        self._open_age.clear()
        for one in state.work:
            self._open.labels(one.kind, one.status).set(one.count)
            self._open_age.labels(one.kind, one.status).set(one.oldest_seconds)
        for queue in state.queues:
            self._workers.labels(queue.name.value).set(queue.workers)


class _AttributeCounts(Collector):
    """Runs that ended, by the attributes that the operator counts; the same in every process."""

    def __init__(self) -> None:
        self.counts: Mapping[tuple[str, str, str], int] = {}

    @override
    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "workspace_runs_by_attribute",
            "Runs that ended, by a counted attribute.",
            labels=["key", "value", "status"],
        )
        for labels, runs in self.counts.items():
            family.add_metric(labels, runs)
        yield family
