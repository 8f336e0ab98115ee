"""Metrics of a process of the platform: its memory and processor, its children, its connections."""

from collections.abc import Iterator

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from runtime.database import Database


def process_registry(database: Database) -> CollectorRegistry:
    """A registry that shows this process, and the pools of its database."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Children())
    registry.register(_Pools(database))
    return registry


class _Children(Collector):
    """The processes that evaluate, read files or execute suspected work for this one."""

    @override
    def collect(self) -> Iterator[Metric]:
        sizes = []
        for child in psutil.Process().children(recursive=True):
            try:
                sizes.append(child.memory_info().rss)
            except psutil.Error:  # it has ended meanwhile
                continue
        yield GaugeMetricFamily(
            "workspace_child_processes", "Child processes of this process.", len(sizes)
        )
        yield GaugeMetricFamily(
            "workspace_child_processes_resident_memory_bytes",
            "Resident memory of the child processes of this process.",
            sum(sizes),
        )


class _Pools(Collector):
    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    def collect(self) -> Iterator[Metric]:
        pools = self._database.pools()
        gauges = {
            "in_use": ("Database connections in use.", "in_use"),
            "idle": ("Idle database connections.", "idle"),
            "waiting": ("Units of work waiting for a database connection.", "waiting"),
            "max": ("Maximum database connections.", "most"),
        }
        for name, (words, attribute) in gauges.items():
            family = GaugeMetricFamily(
                f"workspace_database_connections_{name}", words, labels=["pool"]
            )
            for pool in pools:
                family.add_metric([pool.name], getattr(pool, attribute))
            yield family
