"""The page of two runs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from api.console.entered import attempt
from api.console.forms import paged
from api.console.rendering import page
from api.console.routing import page_router
from api.console.runs.listing import Filters, Row, listing
from api.console.shell import shell_of
from api.console.words import curl, queried
from api.kernel.routing import ApiRequest, QueryId
from api.routers.automation.run_pages import READ
from models.automation.run_comparisons.queries import compare
from models.automation.run_comparisons.shapes import NodeComparison, RunComparison
from models.automation.run_overviews.queries import named
from runtime.errors import PlatformError

router = page_router()

_OFFERED = 50
_NODES = 80
"""Nodes of a page; the operation has more."""
_EXPLAINED = 10
"""Nodes whose inputs and outputs the page tells by path."""
_DIFFERENCES = 6
"""Differences of one value that the page tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two runs as a page tells them."""

    comparison: RunComparison

    @property
    def nodes(self) -> Sequence[NodeComparison]:
        """The nodes that the page has room for, from the first that differs at the latest."""
        nodes = self.comparison.nodes
        place = next((index for index, one in enumerate(nodes) if self.is_first(one)), 0)
        start = max(0, min(place - 5, len(nodes) - _NODES))
        return nodes[start : start + _NODES]

    @property
    def explained(self) -> Sequence[NodeComparison]:
        """The nodes whose values are told by path."""
        return [one for one in self.nodes if one.differs][:_EXPLAINED]

    @property
    def is_cut(self) -> bool:
        """There are more nodes than the page tells."""
        return self.comparison.trimmed or len(self.nodes) < len(self.comparison.nodes)

    def is_first(self, node: NodeComparison) -> bool:
        """True for the node with which the runs part."""
        first = self.comparison.first_divergence
        return first is not None and (first.node_id, first.scope_key) == (
            node.node_id,
            node.scope_key,
        )


@router.get("/runs/{runId}/comparison", access=paged(replace(READ, heavy=True)))
async def get_comparison(request: ApiRequest, with_: QueryId | None = None) -> Response:
    """Look at a run beside another one of its automation."""
    run_id = request.ids["runId"]
    automation = await named(request.work, request.actor, run_id)
    outcome = await attempt(
        request, lambda: compare(request.work, request.actor, automation.id, run_id, with_)
    )
    refusal = outcome if isinstance(outcome, PlatformError) else None
    shell = await shell_of(request)
    place = f"/v1/workspaces/{request.actor.workspace_id}/automations/{automation.id}"
    path = queried(f"{place}/runs/{run_id}/comparison", **{"with": with_})
    offered = await listing(request, Filters(automationId=automation.id), _OFFERED)
    return page(
        request,
        "comparison.html",
        shell,
        automation=automation,
        run_id=run_id,
        compared=None if isinstance(outcome, PlatformError) else Compared(comparison=outcome),
        problem=refusal,
        most=_DIFFERENCES,
        choices=_choices(offered.rows, outcome, run_id),
        call=curl(shell.base, "GET", path),
    )


def _choices(
    rows: Sequence[Row], outcome: RunComparison | PlatformError, run_id: object
) -> Sequence[object]:
    """Runs to compare with, the one that was compared among them."""
    runs: dict[object, object] = {row.run.id: row.run for row in rows if row.run.id != run_id}
    if isinstance(outcome, RunComparison):
        runs.setdefault(outcome.reference.id, outcome.reference)
    return list(runs.values())
