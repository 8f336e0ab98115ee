"""Figures as ratios, and what a node costs in history."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from bench.platform import Platform
from runtime.temporal.workflow_kinds import WorkflowKind


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the sorted values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Figure:
    """One comparison: pairs of ours and the floor's, one pair per round."""

    name: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    pairs: list[tuple[float, float]] = field(default_factory=list)
    tails: str = ""

    def add(self, ours: float, floor: float) -> None:
        self.pairs.append((ours, floor))

    def tail(self, ours: Sequence[float], floor: Sequence[float]) -> None:
        """Note p99 and maximum of single times, given in seconds."""
        self.tails = " · ".join(
            f"{who} p99 {quantile(values, 0.99) * 1000:.0f} max {max(values) * 1000:.0f} ms"
            for who, values in (("ours", ours), ("floor", floor))
        )

    @property
    def medians(self) -> tuple[float, float]:
        """Ours and the floor's."""
        ours, floor = zip(*self.pairs, strict=True)
        return median(ours), median(floor)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios."""
        return median(ours / floor for ours, floor in self.pairs)

    @property
    def target(self) -> str:
        return f"≥ {self.at_least}" if self.at_least is not None else f"≤ {self.at_most}"

    @property
    def holds(self) -> bool:
        if self.at_least is not None:
            return self.ratio >= self.at_least
        assert self.at_most is not None
        return self.ratio <= self.at_most

    def to_json(self) -> dict[str, Any]:
        ours, floor = self.medians
        return {
            "name": self.name,
            "unit": self.unit,
            "ours": ours,
            "floor": floor,
            "ratio": self.ratio,
            "target": self.target,
            "holds": self.holds,
            "rounds": self.pairs,
            "tails": self.tails or None,
        }


def print_table(part: str, figures: Sequence[Figure]) -> None:
    """One line per figure."""
    table = Table(title=f"{part}: medians of interleaved rounds")
    for column in ("Figure", "Ours", "Floor", "Ratio", "Rounds", "Target", ""):
        table.add_column(column)
    for figure in figures:
        ours, floor = figure.medians
        rounds = " ".join(f"{ours / floor:.2f}" for ours, floor in figure.pairs)
        table.add_row(
            figure.name,
            f"{ours:.1f} {figure.unit}",
            f"{floor:.1f} {figure.unit}",
            f"{figure.ratio:.2f}",
            rounds,
            figure.target,
            "holds" if figure.holds else "MISSED",
        )
    console = Console(width=140)
    console.print(table)
    for figure in figures:
        if figure.tails:
            console.print(f"{figure.name}, last round: {figure.tails}")


async def histories(platform: Platform, client: Client, graphs: dict[str, Any]) -> None:
    """Print history events and bytes per node of each graph."""
    for name, graph in graphs.items():
        automation = await platform.publish(name, graph)
        run_id = await platform.start(automation)
        while not await platform.is_over(run_id):
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        handle = client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
        described = await handle.describe()
        nodes = len(graph["nodes"])
        size = described.raw_description.workflow_execution_info.history_size_bytes
        Console().print(
            f"{name}: {described.history_length} events, {size} bytes for {nodes} nodes ="
            f" {described.history_length / nodes:.1f} events and {size / nodes / 1024:.2f} KiB"
            " per node"
        )
