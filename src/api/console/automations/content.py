"""The content of the pages of automations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.console.automations.pictures import Picture, picture_of
from api.console.runs.listing import Filters, Listing, listing
from api.console.words import curl
from api.kernel.request import ApiRequest
from models.automation.automation_runs.canary_releases import CanaryShare, canary_share
from models.automation.automation_runs.last_results import LastRun, last_runs_of
from models.automation.automation_runs.recent_runs import Outcomes, recent_outcomes
from models.automation.automations import queries
from models.automation.automations.shapes import (
    AutomationDetail,
    AutomationSummary,
    AutomationVersionShape,
)
from models.core.base import JsonObject
from models.core.pauses.queries import pauses_of
from models.core.pauses.rules import PauseCause

PAGE = 50
_RUNS, _VERSIONS = 10, 10
PERSON, BREAKER = PauseCause.PERSON, PauseCause.CIRCUIT_BREAKER
_RESTS = {
    PERSON: "It is paused: runs are accepted, and rest.",
    BREAKER: "Its circuit breaker is open: runs rest.",
    None: "The workspace is paused: runs are accepted, and rest.",
}
"""The notice about each cause of a pause, and about one of the workspace."""
_ENDED = 20
"""Ended runs that the success rate of the list is of."""


def path_of(request: ApiRequest) -> str:
    """The path of the page of the automation that is asked for."""
    return f"/workspaces/{request.workspace_id}/automations/{request.ids['automationId']}"


async def automation_of(request: ApiRequest) -> AutomationDetail:
    """The automation that is asked for. Raises NotFoundError."""
    keys, automation_id = request.services.keys, request.ids["automationId"]
    return await queries.detail(request.work, request.actor, keys, automation_id)


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """An automation in the list, with its last run and how its last runs ended."""

    automation: AutomationSummary
    last: LastRun | None
    outcomes: Outcomes | None


async def rows_of(
    request: ApiRequest, cursor: str | None
) -> tuple[Sequence[AutomationRow], str | None]:
    """A page of the list, and where the next begins."""
    page = request.page("automations", PAGE, cursor)
    listed = await queries.list_automations(request.work, request.actor, page)
    ids = [one.id for one in listed.automations]
    last = await last_runs_of(request.work, request.actor, ids)
    outcomes = await recent_outcomes(request.work, request.actor, ids, _ENDED)
    rows = [
        AutomationRow(one, last.get(one.id), outcomes.get(one.id)) for one in listed.automations
    ]
    return rows, listed.cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationContent:
    """The content of the page of one automation."""

    automation: AutomationDetail
    picture: Picture | None
    example: JsonObject
    """The payload that a run by hand starts with, unless the person writes another."""
    may_act: bool
    versions: Sequence[AutomationVersionShape]
    runs: Listing
    canary: CanaryShare | None
    rests: str | None
    """The reason why its runs rest, in a sentence."""
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


async def content_of(request: ApiRequest, base: str) -> AutomationContent:
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
        calls=_calls(automation, base),
    )


async def _rests(request: ApiRequest) -> str | None:
    workspace_id, automation_id = request.actor.workspace_id, request.ids["automationId"]
    pauses = await pauses_of(request.work, workspace_id, [automation_id, workspace_id])
    for place, words in _RESTS.items():
        row = pauses.get((workspace_id if place is None else automation_id, place or PERSON))
        if row is not None:
            again = " It is being resumed." if row.resumed_at is not None else ""
            return f"{words} {row.reason}".strip() + again
    return None


def _example(found: AutomationDetail) -> JsonObject:
    payloads = [] if found.graph is None else found.graph.get("testPayloads") or []
    example: JsonObject = payloads[0].get("payload", {}) if payloads else {}
    return example


def _calls(found: AutomationDetail, base: str) -> Mapping[str, str]:
    path = f"/v1/workspaces/{found.workspace_id}/automations/{found.id}"
    verb, enabled = ("Disable", "false") if found.enabled else ("Enable", "true")
    return {
        "Read it": curl(base, "GET", path),
        "Run it": curl(base, "POST", f"{path}/run", '{"triggerPayload": {}}'),
        "Publish the draft": curl(base, "POST", f"{path}/publish", "{}"),
        f"{verb} it": curl(base, "PATCH", path, f'{{"enabled": {enabled}}}'),
        "List its runs": curl(base, "GET", f"{path}/runs"),
        "List its versions": curl(base, "GET", f"{path}/versions"),
    }
