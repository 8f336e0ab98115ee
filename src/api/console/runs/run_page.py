"""The page of a run: the run as the API shows it, and what the reader may do with it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from api.console.runs.listing import seconds_of
from api.console.runs.wait_words import wait_words
from api.console.words import curl
from api.kernel.request import ApiRequest
from api.run_links import add_links
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.run_queries import pair_of
from models.automation.automations.queries import summary
from models.automation.run_overviews.queries import overview
from models.automation.run_overviews.shapes import NodeProgress, RunOverview
from models.automation.waits.pending import (
    PendingApproval,
    PendingEvent,
    pending_approvals,
    pending_events,
)
from models.core.access.placement import level_on
from models.core.access.rules import Level, Scope
from models.core.base import JsonObject

_MOST_APPROVALS = 20
_READ = re.compile(r"\bdata\.([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class AwaitedEvent(PendingEvent):
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
    approvals: Sequence[PendingApproval]
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
        return "" if waiting_for is None else wait_words(waiting_for)

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


async def content_of(request: ApiRequest, base: str) -> RunContent:
    """Everything that the page shows. Raises NotFoundError."""
    shown_run = await overview(request.work, request.actor, request.ids["runId"])
    add_links(request.services.settings, shown_run.run)
    approvals: Sequence[PendingApproval] = ()
    events: Sequence[PendingEvent] = ()
    if shown_run.run.status in OPEN_RUN:
        approvals = await pending_approvals(
            request.work, request.actor, _MOST_APPROVALS, shown_run.run.id
        )
        events = await pending_events(
            request.work, request.actor, _MOST_APPROVALS, shown_run.run.id
        )
    automation = await summary(request.work, request.actor, shown_run.automation.id)
    return RunContent(
        overview=shown_run,
        seconds=seconds_of(shown_run.run, request.work.now),
        may_act=_may_act(request),
        has_draft=automation.draft_version_id is not None,
        approvals=approvals,
        events=[AwaitedEvent(**asdict(one)) for one in events],
        calls=_calls(shown_run, approvals, base),
    )


def _may_act(request: ApiRequest) -> bool:
    """True for who may cancel and retry; the operation checks it again."""
    assert request.placement is not None
    level = level_on(request.placement, request.actor.role)
    return level >= Level.EDIT and Scope.AUTOMATIONS_WRITE in request.actor.scopes


def _calls(
    found: RunOverview, approvals: Sequence[PendingApproval], base: str
) -> Mapping[str, str]:
    run = found.run
    path = f"/v1/workspaces/{run.workspace_id}/automations/{run.automation_id}/runs/{run.id}"
    calls = {
        "Read it": curl(base, "GET", f"/v1/runs/{run.id}"),
        "Follow it": curl(base, "GET", f"/v1/runs/{run.id}/events"),
        "Cancel it": curl(base, "POST", f"{path}/cancel", "{}"),
        "Run it again": curl(base, "POST", f"{path}/retry", '{"from": "failed"}'),
        "Compare it": curl(base, "GET", f"{path}/comparison"),
    }
    for one in approvals:
        body = json.dumps({"decision": "approved", "scopeKey": one.scope_key})
        resume = f"{path}/nodes/{quote(one.node_id, safe='')}/resume"
        calls[f"Decide “{one.title}”"] = curl(base, "POST", resume, body)
    return calls
