"""The list of automations, the page of one and of its versions, and pictures of graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from starlette.responses import Response

from api.console.automations.run_forms import WebhookHelp, webhook_help
from api.console.entered import Form
from api.console.forms import done, paged
from api.console.rendering import Shell, console_page, page, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.runs.listing import Filters, Listing, listing
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.automation import automation_runs as runs_api
from api.routers.automation import automations as api
from api.routers.automation.automations import AUTOMATION, AUTOMATIONS, READ, VERSION, WRITE
from models.automation.automation_runs import history
from models.automation.automation_runs.canary_releases import CanaryShare, canary_share
from models.automation.automations import commands, queries, shapes
from models.automation.automations.rules.graph import differences
from models.automation.run_overviews import GraphNodeShape, RunGraph
from models.core.access.rules import Level, Scope
from models.core.base import Id, InputId, JsonObject
from models.core.pauses.rules import PauseCause
from models.core.pauses.store import pauses_of
from models.people.users import display_name
from runtime.errors import ConflictError

router = page_router()

_ONE = AUTOMATION.removeprefix("/v1")


class Publish(Form):
    """The draft that the person has looked at, and a note."""

    draft_version_id: InputId | None = None
    note: str | None = None


class Enable(Form):
    """The state that the automation is to have."""

    enabled: Literal["true", "false"]


@router.get(
    AUTOMATIONS.removeprefix("/v1"),
    access=paged(Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW)),
)
async def get_automations(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the automations of a workspace."""
    rows, following = await rows_of(request, cursor)
    return await console_page(
        request,
        "automations.html",
        (api.list_automations, {"limit": PAGE}),
        api.create_automation,
        rows=rows,
        cursor=cursor,
        next=following,
    )


@router.get(_ONE, access=paged(READ))
async def get_automation_page(request: ApiRequest) -> Response:
    """Look at an automation: its graph, its runs and its versions."""
    shell = await shell_of(request)
    content = await content_of(request, shell)
    return page(request, "automation.html", shell, content=content)


@router.post(f"{_ONE}/enable", access=paged(WRITE))
async def enable_automation(request: ApiRequest, body: Enable) -> Response:
    """Let an automation run by its trigger, or stop that."""
    automation_id = request.ids["automationId"]
    wanted = shapes.UpdateAutomation(enabled=body.enabled == "true")
    found = await commands.update_automation(
        request.work, request.actor, request.services.keys, automation_id, wanted, None
    )
    word = "enabled" if found.enabled else "disabled"
    return done(request, f"Automation {word}", path_of(request))


@router.post(f"{_ONE}/publish", access=paged(WRITE), errors=[ConflictError])
async def publish_draft(request: ApiRequest, body: Publish) -> Response:
    """Publish the draft, if it is the one that the person has looked at."""
    wanted = shapes.PublishAutomation(note=body.note, expectedDraftVersionId=body.draft_version_id)
    found = await commands.publish(
        request.work, request.actor, request.services.keys, request.ids["automationId"], wanted
    )
    return done(request, f"Version {found.version} published", path_of(request))


PAGE = 50
_RUNS, _VERSIONS = 10, 10
PERSON, BREAKER = PauseCause.PERSON, PauseCause.CIRCUIT_BREAKER
_RESTS = {
    PERSON: "Paused: new runs are queued.",
    BREAKER: "Circuit breaker open: new runs are queued.",
    None: "Workspace paused: new runs are queued.",
}
"""The notice about each cause of a pause, and about one of the workspace."""
_ENDED = 20
"""Ended runs that the success rate of the list is of."""


def path_of(request: ApiRequest) -> str:
    """The path of the page of the automation that is asked for."""
    return f"/workspaces/{request.workspace_id}/automations/{request.ids['automationId']}"


async def automation_of(request: ApiRequest) -> shapes.AutomationDetail:
    """The automation that is asked for. Raises NotFoundError."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    return await queries.detail(request.work, request.actor, keys, automation_id)


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """An automation in the list, with its last run and how its last runs ended."""

    automation: shapes.AutomationSummary
    last: history.LastRun | None
    outcomes: history.Outcomes | None


async def rows_of(
    request: ApiRequest, cursor: str | None
) -> tuple[Sequence[AutomationRow], str | None]:
    """A page of the list, and where the next begins."""
    page = request.page("automations", PAGE, cursor)
    listed = await queries.list_automations(request.work, request.actor, page)
    ids = [one.id for one in listed.automations]
    last = await history.last_runs_of(request.work, request.actor, ids)
    outcomes = await history.recent_outcomes(request.work, request.actor, ids, _ENDED)
    rows = [
        AutomationRow(one, last.get(one.id), outcomes.get(one.id)) for one in listed.automations
    ]
    return rows, listed.cursor


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph that is drawn; what its nodes are given is not in it."""

    graph: RunGraph
    changes: JsonObject = field(default_factory=dict)
    """The changes of nodes and of edges, by their ids, where two versions are drawn in one."""
    notes: Sequence[JsonObject] = ()
    """The notes of the graph, which are listed below it."""

    @property
    def nodes(self) -> Sequence[GraphNodeShape]:
        return self.graph.nodes

    @property
    def data(self) -> JsonObject:
        """The picture as JSON in the page."""
        drawn: JsonObject = self.graph.model_dump(mode="json", by_alias=True)
        return {**drawn, "changes": self.changes}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationContent:
    """The content of the page of one automation."""

    automation: shapes.AutomationDetail
    picture: Picture | None
    example: JsonObject
    """The payload that a run by hand starts with, unless the person writes another."""
    may_act: bool
    versions: Sequence[shapes.AutomationVersionShape]
    runs: Listing
    canary: CanaryShare | None
    rests: str | None
    """The reason why its runs rest, in a sentence."""
    webhook: WebhookHelp | None
    calls: Mapping[str, str]

    @property
    def path(self) -> str:
        """The path below which the actions are."""
        one = self.automation
        return f"/workspaces/{one.workspace_id}/automations/{one.id}"

    @property
    def has_errors(self) -> bool:
        """Something keeps it from being published."""
        return any(issue.severity == "error" for issue in self.automation.reference_issues)


async def content_of(request: ApiRequest, shell: Shell) -> AutomationContent:
    """Everything that the page of one automation shows. Raises NotFoundError."""
    work, actor, automation_id = request.work, request.actor, request.ids["automationId"]
    automation = await queries.detail(work, actor, request.services.keys, automation_id)
    page = request.page("automation_versions", _VERSIONS, None, automation_id)
    versions = await queries.list_versions(work, actor, automation_id, page)
    return AutomationContent(
        automation=automation,
        picture=None if automation.graph is None else picture_of(automation.graph),
        example=_example(automation),
        may_act=await queries.may_edit(work, actor, automation_id),
        versions=versions.versions,
        runs=await listing(request, Filters(automationId=automation_id), _RUNS),
        canary=await canary_share(work, actor, automation_id),
        rests=await _rests(request),
        webhook=webhook_help(automation, shell.base),
        calls=_calls(automation, shell),
    )


async def _rests(request: ApiRequest) -> str | None:
    workspace_id, automation_id = request.actor.workspace_id, request.ids["automationId"]
    pauses = await pauses_of(request.work, workspace_id, [automation_id, workspace_id])
    for place, words in _RESTS.items():
        row = pauses.get((workspace_id if place is None else automation_id, place or PERSON))
        if row is not None:
            again = " Resuming." if row.resumed_at is not None else ""
            return f"{words} {row.reason}".strip() + again
    return None


def _example(found: shapes.AutomationDetail) -> JsonObject:
    payloads = [] if found.graph is None else found.graph.get("testPayloads") or []
    example: JsonObject = payloads[0].get("payload", {}) if payloads else {}
    return example


def _calls(found: shapes.AutomationDetail, shell: Shell) -> Mapping[str, str]:
    return shell.calls(
        api.get_automation,
        (runs_api.run_automation, {"triggerPayload": {}}),
        api.publish_automation,
        (api.update_automation, {"enabled": not found.enabled}),
        runs_api.list_automation_runs,
        api.list_automation_versions,
    )


_VERSION = VERSION.removeprefix("/v1")
_OFFERED = 100
"""Versions to compare with, the newest ones."""


@router.get(_VERSION, access=paged(READ))
async def get_version_page(request: ApiRequest, against: QueryId | None = None) -> Response:
    """Look at a version, and at what it has otherwise than another."""
    work, actor, automation_id = request.work, request.actor, request.ids["automationId"]
    automation = await queries.summary(work, actor, automation_id)
    version = await _version(request, request.ids["versionId"])
    earlier = None if against is None else await _version(request, against)
    picture, changes = _compared(earlier, version)
    offered = request.page("automation_versions", _OFFERED, None, automation_id)
    versions = (await queries.list_versions(work, actor, automation_id, offered)).versions
    return await console_page(
        request,
        "version.html",
        api.get_automation_version,
        api.restore_automation_version,
        automation=automation,
        version=version,
        other=earlier,
        picture=picture,
        changes=changes,
        versions=[one for one in versions if one.id != version.id],
        author=await display_name(work, version.created_by_user_id),
        may_act=await queries.may_edit(work, actor, automation_id),
    )


act(router, f"{_VERSION}/restore", api.restore_automation_version, then=f"{_ONE}/edit")


async def _version(request: ApiRequest, version_id: Id) -> shapes.AutomationVersionDetail:
    automation_id = request.ids["automationId"]
    return await queries.version_detail(request.work, request.actor, automation_id, version_id)


def _compared(
    other: shapes.AutomationVersionDetail | None, version: shapes.AutomationVersionDetail
) -> tuple[Picture, differences.GraphDifference | None]:
    """The picture of a version, or of two of them with the differences."""
    if other is None:
        return picture_of(version.graph), None
    changes = differences.difference(
        other.graph, version.graph, other.trigger_config, version.trigger_config
    )
    return picture_of_both(other.graph, version.graph, changes), changes


def picture_of(graph: JsonObject) -> Picture:
    """The picture of a stored graph."""
    return Picture(_drawn(graph), notes=graph.get("notes") or ())


def picture_of_both(
    before: JsonObject, after: JsonObject, changes: differences.GraphDifference
) -> Picture:
    """Two graphs in one picture, with what is added, removed and changed."""
    union = _drawn(differences.united(before, after))
    edge_changes = {(edge.source, edge.target): edge.change.value for edge in changes.edges}
    edges = {
        edge.id: edge_changes[edge.source, edge.target]
        for edge in union.edges
        if (edge.source, edge.target) in edge_changes
    }
    return Picture(
        union,
        {"nodes": {node.id: node.change.value for node in changes.nodes}, "edges": edges},
        notes=after.get("notes") or (),
    )


def _drawn(graph: JsonObject) -> RunGraph:
    """The nodes, and the edges between them that lead forward.

    A draft may name nodes that are not there and lead in circles, and so may two versions in one
    picture. Neither has a place in layers.
    """
    nodes = graph.get("nodes") or []
    ids = {node["id"] for node in nodes}
    ways = [one for one in graph.get("edges") or [] if one["from"] in ids and one["to"] in ids]
    forward = _without_circles(ways)
    edges = [{**edge, "id": f"edge-{number}"} for number, edge in enumerate(forward)]
    return RunGraph.model_validate({"nodes": nodes, "edges": edges})


def _without_circles(edges: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The edges, except each that would close a circle with earlier edges."""
    following: dict[str, list[str]] = {}
    forward = []
    for edge in edges:
        if not _leads(following, edge["to"], edge["from"]):
            following.setdefault(edge["from"], []).append(edge["to"])
            forward.append(edge)
    return forward


def _leads(following: Mapping[str, Sequence[str]], start: str, end: str) -> bool:
    """True when one node leads to another, or is the same."""
    reached, waiting = {start}, [start]
    while waiting and end not in reached:
        ahead = [node for node in following.get(waiting.pop(), ()) if node not in reached]
        reached.update(ahead)
        waiting.extend(ahead)
    return end in reached
