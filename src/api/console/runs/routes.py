"""The list of runs with its saved filters, the page of one, and two of them side by side."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

from starlette.responses import Response

from api.console.entered import Entered, Form, attempt, read_as
from api.console.forms import paged
from api.console.rendering import Shell, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.runs import listing as runs_listing
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.automation import automation_runs, automations, many_runs, webhooks
from api.routers.automation.automation_runs import READ_PAGE
from api.routers.automation.many_runs import CHANGE_FILTERS, FILTER, FILTERS
from api.run_events import add_links
from models.automation import saved_run_filters
from models.automation.automation_runs.filters import pair_of
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automations.queries import summary
from models.automation.run_comparisons import NodeComparison, RunComparison, compare
from models.automation.run_overviews import NodeProgress, RunOverview, named, overview
from models.automation.waits import queries as wait_queries
from models.core.access.rules import Level, Scope, level_on
from models.core.base import JsonObject
from runtime.errors import ConflictError, PlatformError, ValidationError

router = page_router()

_MOST_FILTERS = 100
RUNS = "/workspaces/{workspaceId}/runs"


class ListedRuns(runs_listing.Filters):
    """The query of the list: its filters, and where its page begins."""

    cursor: Cursor = None


@router.get(
    RUNS, access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, snapshot=True))
)
async def get_runs(request: ApiRequest, filters: ListedRuns) -> Response:
    """Look through the runs of a workspace."""
    cursor = filters.cursor
    outcome = await attempt(
        request, lambda: runs_listing.listing(request, filters, runs_listing.PAGE, cursor)
    )
    refusal = outcome if isinstance(outcome, PlatformError) else None
    offered = request.page("run_filters", _MOST_FILTERS, None)
    saved_filters = (
        await saved_run_filters.list_filters(request.work, request.actor, offered)
    ).filters
    shell = await shell_of(request)
    answer = page(
        request,
        "runs.html",
        shell,
        listed=runs_listing.Listing([], None) if isinstance(outcome, PlatformError) else outcome,
        entered=Entered({}, refusal),
        filters=filters,
        cursor=cursor,
        statuses=runs_listing.STATUSES,
        counts=await runs_listing.counts_of(request, filters.automation_id),
        sources=runs_listing.SOURCES,
        periods=runs_listing.PERIODS,
        automations=await runs_listing.automation_choices(request, filters.automation_id),
        versions=await runs_listing.version_choices(request, filters.automation_id),
        saved=saved_filters,
        active=next((one for one in saved_filters if one.query == filters.wire), None),
        api=runs_listing.equal_calls(shell, filters),
    )
    # The address of a form has its empty fields, too.
    answer.headers["HX-Push-Url"] = queried(request.url.path, **filters.query(cursor=cursor))
    return answer


@router.get("/runs/{runId}", access=paged(automation_runs.READ_PAGE))
async def get_run_page(request: ApiRequest) -> Response:
    """Look at a run, and follow it while it goes on."""
    shell = await shell_of(request)
    content = await content_of(request, shell)
    return page(request, "run.html", shell, content=content)


@router.get(automation_runs.RUN.removeprefix("/v1"), access=paged(automations.READ))
async def get_run_of_automation(request: ApiRequest) -> Response:
    """Lead to the page of a run, from where its actions are."""
    ids = request.ids
    run = await load_run(request.work, request.actor, ids["automationId"], ids["runId"])
    return see_other(f"/runs/{run.id}")


_MOST_APPROVALS = 20
_READ = re.compile(r"\bdata\.([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class AwaitedEvent(wait_queries.PendingEvent):
    """An event that a node waits for, with data to begin with."""

    @property
    def example(self) -> JsonObject:
        """The keys that the filter of the node reads."""
        return dict.fromkeys(_READ.findall(self.filter or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContent:
    """The content of the page."""

    overview: RunOverview
    seconds: float | None
    may_act: bool
    has_draft: bool
    approvals: Sequence[wait_queries.PendingApproval]
    events: Sequence[AwaitedEvent]
    calls: Mapping[str, str]
    """The equal calls of the API, by what they do."""

    @property
    def path(self) -> str:
        """The path below which the actions are."""
        run = self.overview.run
        return f"/workspaces/{run.workspace_id}/automations/{run.automation_id}/runs/{run.id}"

    @property
    def is_open(self) -> bool:
        return self.overview.run.status in OPEN_RUN

    @property
    def has_failed(self) -> bool:
        """It ended otherwise than it should: a retry may go on from there."""
        return self.overview.run.status in {
            RunStatus.FAILED,
            RunStatus.TIMED_OUT,
            RunStatus.CANCELLED,
        }

    @property
    def progress(self) -> Mapping[str, NodeProgress]:
        """The progress of nodes, by node id."""
        return {node.node_id: node for node in self.overview.nodes}

    @property
    def waits(self) -> str:
        """The pause or the limit that it waits for, in words."""
        waiting_for = self.overview.run.metadata.get("waitingFor")
        return "" if waiting_for is None else runs_listing.wait_words(waiting_for)

    @property
    def attributes(self) -> Sequence[tuple[str, str, str]]:
        """The attributes of the run by key: each with its value, and the filter for both."""
        pairs = sorted((self.overview.run.attributes or {}).items())
        return [(key, value, pair_of(key, value)) for key, value in pairs]

    @property
    def temporal_url(self) -> str | None:
        """The address at which the Temporal UI shows it."""
        link: dict[str, Any] = self.overview.run.metadata["temporal"]
        url = link.get("uiUrl")
        return url if url and url.startswith(("http://", "https://")) else None


async def content_of(request: ApiRequest, shell: Shell) -> RunContent:
    """Everything that the page shows. Raises NotFoundError."""
    shown_run = await overview(request.work, request.actor, request.ids["runId"])
    add_links(request.services.settings, shown_run.run)
    approvals: Sequence[wait_queries.PendingApproval] = ()
    events: Sequence[wait_queries.PendingEvent] = ()
    if shown_run.run.status in OPEN_RUN:
        approvals = await wait_queries.pending_approvals(
            request.work, request.actor, _MOST_APPROVALS, shown_run.run.id
        )
        events = await wait_queries.pending_events(
            request.work, request.actor, _MOST_APPROVALS, shown_run.run.id
        )
    automation = await summary(request.work, request.actor, shown_run.automation.id)
    return RunContent(
        overview=shown_run,
        seconds=runs_listing.seconds_of(shown_run.run, request.work.now),
        may_act=_may_act(request),
        has_draft=automation.draft_version_id is not None,
        approvals=approvals,
        events=[AwaitedEvent(**asdict(one)) for one in events],
        calls=_calls(shown_run, approvals, shell),
    )


def _may_act(request: ApiRequest) -> bool:
    """True for who may cancel and retry; the operation checks it again."""
    assert request.placement is not None
    level = level_on(request.placement, request.actor.role)
    return level >= Level.EDIT and Scope.AUTOMATIONS_WRITE in request.actor.scopes


def _calls(
    found: RunOverview, approvals: Sequence[wait_queries.PendingApproval], shell: Shell
) -> Mapping[str, str]:
    place = {"automation_id": found.run.automation_id, "run_id": found.run.id}
    calls = shell.calls(
        automation_runs.get_run,
        automation_runs.watch_run,
        automation_runs.cancel_automation_run,
        (automation_runs.retry_automation_run, {"from": "failed"}),
        many_runs.compare_automation_runs,
        **place,
    )
    for one in approvals:
        body = {"decision": "approved", "scopeKey": one.scope_key}
        node = quote(one.node_id, safe="")
        decide = shell.call(webhooks.resume_node, body, node=node, **place)
        calls[f"Decide “{one.title}”"] = decide
    return calls


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


@router.get("/runs/{runId}/comparison", access=paged(replace(READ_PAGE, heavy=True)))
async def get_comparison(request: ApiRequest, with_: QueryId | None = None) -> Response:
    """Look at a run beside another one of its automation."""
    run_id = request.ids["runId"]
    automation = await named(request.work, request.actor, run_id)
    outcome = await attempt(
        request, lambda: compare(request.work, request.actor, automation.id, run_id, with_)
    )
    refusal = outcome if isinstance(outcome, PlatformError) else None
    shell = await shell_of(request)
    api = shell.calls(
        (many_runs.compare_automation_runs, {"with": with_}), automation_id=automation.id
    )
    offered = await runs_listing.listing(
        request, runs_listing.Filters(automationId=automation.id), _OFFERED
    )
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
        api=api,
    )


def _choices(
    rows: Sequence[runs_listing.Row], outcome: RunComparison | PlatformError, run_id: object
) -> Sequence[object]:
    """Runs to compare with, the one that was compared among them."""
    runs: dict[object, object] = {row.run.id: row.run for row in rows if row.run.id != run_id}
    if isinstance(outcome, RunComparison):
        runs.setdefault(outcome.reference.id, outcome.reference)
    return list(runs.values())


_CHANGE = replace(paged(CHANGE_FILTERS), joins=True)

_FILTER = FILTER.removeprefix("/v1")


class Save(Form):
    """A name, and the filter as JSON."""

    label: str = ""
    query: str = "{}"
    share: Literal["on"] | None = None


class Rename(Form):
    """The new name."""

    label: str = ""


@router.post(FILTERS.removeprefix("/v1"), access=_CHANGE, errors=[ConflictError])
async def save_filter(request: ApiRequest, body: Save) -> Response:
    """Save a filter, and lead to the runs that fit it."""
    values = {"label": body.label, "query": _read(body.query), "shared": body.share is not None}
    creation = read_as(saved_run_filters.CreateRunFilter, values)
    saved = await saved_run_filters.create_filter(
        request.work, request.actor, request.new_id, creation
    )
    return _led(request, saved)


@router.post(f"{_FILTER}/rename", access=_CHANGE)
async def rename_filter(request: ApiRequest, body: Rename) -> Response:
    """Give a saved filter another name."""
    change = read_as(saved_run_filters.UpdateRunFilter, {"label": body.label})
    filter_id = request.ids["filterId"]
    return _led(
        request,
        await saved_run_filters.update_filter(request.work, request.actor, filter_id, change),
    )


act(router, f"{_FILTER}/delete", many_runs.delete_run_filter, then=RUNS)


def _read(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError:
        raise ValidationError.at("query", "must be JSON") from None
    if not isinstance(value, dict):
        raise ValidationError.at("query", "must be a JSON object")
    return value


def _led(request: ApiRequest, saved: saved_run_filters.RunFilterShape) -> Response:
    """Lead to the runs that fit a filter."""
    place = f"/workspaces/{request.workspace_id}/runs"
    return see_other(f"{place}?{urlencode(saved.query)}" if saved.query else place)
