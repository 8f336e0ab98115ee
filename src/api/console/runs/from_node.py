"""A run that begins at a node of an earlier one: which node, on which version, with what."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from starlette.responses import Response

from api.console.automations.run_forms import faults_of
from api.console.entered import attempt, read_as
from api.console.forms import Form, paged, read_object
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl, indented
from api.kernel.routing import ApiRequest
from api.routers.automation.automation_runs import RUN, START
from models.automation.automation_runs.commands import run_from_node
from models.automation.automation_runs.queries import load_run
from models.automation.automation_runs.shapes import AutomationRunDetail, RunFromNode
from models.automation.run_overviews.queries import overview
from models.core.base import JsonObject
from runtime.errors import PlatformError, RunError

router = page_router()

_PATH = f"{RUN.removeprefix('/v1')}/from-node"
_SHOW = replace(paged(START), idempotent=False, starts_run=False)


class FromNode(Form):
    """The node, the version, the payload, and outputs in place of the ones that the run had."""

    node_id: str = ""
    version: Literal["original", "published"] = "original"
    payload: str = "{}"
    outputs: str = "{}"
    alone: Literal["on"] | None = None


@router.get(_PATH, access=_SHOW)
async def get_from_node(request: ApiRequest, node_id: str | None = None) -> Response:
    """Choose where a run begins, and what it begins with."""
    run = await load_run(
        request.work, request.actor, request.ids["automationId"], request.ids["runId"]
    )
    begin = FromNode(nodeId=node_id or "", payload=indented(run.trigger_payload))
    return await _form(request, begin, None)


@router.post(_PATH, access=paged(START), errors=[RunError])
async def run_from_chosen_node(request: ApiRequest, body: FromNode) -> Response:
    """Begin a run at a node, and lead to it."""

    async def run() -> AutomationRunDetail:
        automation_id, run_id = request.ids["automationId"], request.ids["runId"]
        earlier = await load_run(request.work, request.actor, automation_id, run_id)
        outputs = read_object("outputs", body.outputs)
        values: JsonObject = {
            "nodeId": body.node_id,
            "replayOfRunId": str(run_id),
            "triggerPayload": read_object("payload", body.payload),
        }
        if body.version == "original":
            values["automationVersionId"] = str(earlier.automation_version_id)
        if body.alone is not None:
            values["nodes"] = [body.node_id]
        elif outputs:
            values["nodes"] = outputs
        wanted = read_as(RunFromNode, values)
        return await run_from_node(request.work, request.actor, automation_id, wanted)

    outcome = await attempt(request, run)
    if isinstance(outcome, PlatformError):
        return await _form(request, body, outcome)
    return see_other(f"/runs/{outcome.id}")


async def _form(request: ApiRequest, body: FromNode, refusal: PlatformError | None) -> Response:
    viewed = await overview(request.work, request.actor, request.ids["runId"])
    shell = await shell_of(request)
    place = f"/v1/workspaces/{viewed.run.workspace_id}/automations/{viewed.automation.id}"
    call = f'{{"nodeId": "{_first(viewed.graph.nodes)}", "replayOfRunId": "{viewed.run.id}"}}'
    return page(
        request,
        "from_node.html",
        shell,
        viewed=viewed,
        body=body,
        faults=[] if refusal is None else faults_of(refusal),
        call=curl(shell.base, "POST", f"{place}/run-from-node", call),
        refusal=refusal,
    )


def _first(nodes: Sequence[object]) -> str:
    return str(getattr(nodes[0], "id", "")) if nodes else ""
