"""Metrics in the text format of Prometheus: of requests in this process, and of the platform."""

import time
from collections.abc import Iterator, Mapping, Sequence

import psycopg
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import override

from models.automation.run_statistics import attribute_counts
from models.workspace.system import SystemState, ended_work_counts, system_state
from runtime.database import Database
from runtime.observability.logs import describe
from runtime.observability.process_metrics import process_registry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATE_SECONDS = 5.0
"""The time the state of the platform is kept, because any client may request it at any rate."""

_log = structlog.get_logger(__name__)

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one process. No label names a workspace, a person or an id."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._registry = registry = process_registry(database)
        self._requests = Counter(
            "workspace_http_requests",
            "Answered requests.",
            ["operation", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "workspace_http_request_seconds",
            "Seconds until the response started.",
            ["operation"],
            registry=registry,
            buckets=_BUCKETS,
        )
        self._counters: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._is_up = Gauge(
            "workspace_database_up",
            "1 if the database is up, else 0. Then only this process is shown.",
            registry=registry,
        )
        self._platform = CollectorRegistry()
        self._gauges = _Gauges(self._platform)
        self._attributes, self._ends = _attribute_counts(), _ended_work()
        self._platform.register(self._attributes)
        self._platform.register(self._ends)
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

    async def text(self) -> bytes:
        """All metrics; the state of the platform is up to `STATE_SECONDS` old."""
        is_up = time.monotonic() < self._asked + STATE_SECONDS or await self._read()
        self._is_up.set(is_up)
        text = generate_latest(self._registry)
        return text + generate_latest(self._platform) if is_up else text

    async def _read(self) -> bool:
        """Read the state of the platform; False when the database does not tell it."""
        try:
            async with self._database.reading() as work:
                self._gauges.show(await system_state(work))
                self._attributes.counts = await attribute_counts(work)
                self._ends.counts = await ended_work_counts(work)
        except (psycopg.Error, SQLAlchemyError) as error:
            _log.warning("metrics_without_database", **describe(error))
            return False
        self._asked = time.monotonic()
        return True


class _Gauges:
    """The state of the platform, the same in every process that is asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, words: str, *labels: str) -> Gauge:
            return Gauge(f"workspace_{name}", words, labels, registry=registry)

        self._relay = gauge("relay_waiting", "Outbox intents not yet delivered to Temporal.")
        self._lag = gauge("relay_lag_seconds", "Age of the oldest outbox intent.")
        self._retried = gauge("relay_retried", "Outbox intents being retried.")
        self._events = gauge("events_waiting", "Events not yet dispatched to automations.")
        self._events_age = gauge("events_oldest_seconds", "Age of the oldest event.")
        self._open = gauge("open_work", "Open work.", "kind", "status")
        self._open_age = gauge(
            "open_work_oldest_seconds", "Age of the oldest open work.", "kind", "status"
        )
        self._workers = gauge("workers", "Live worker processes.", "queue")

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


class _Counts(Collector):
    """Numbers that the database adds up: the same in every process."""

    def __init__(self, name: str, words: str, labels: Sequence[str]) -> None:
        self._described = name, words, labels
        self.counts: Mapping[tuple[str, ...], int] = {}

    @override
    def collect(self) -> Iterator[Metric]:
        name, words, labels = self._described
        family = CounterMetricFamily(name, words, labels=labels)
        for values, count in self.counts.items():
            family.add_metric(values, count)
        yield family


def _attribute_counts() -> _Counts:
    words = "Ended runs, by counted attribute."
    return _Counts("workspace_runs_by_attribute", words, ["key", "value", "status"])


def _ended_work() -> _Counts:
    words = "Ended work: runs, imports, deliveries, jobs."
    return _Counts("workspace_ended_work", words, ["kind", "status"])
