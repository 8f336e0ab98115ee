"""A new automation, and what it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from starlette.responses import Response

from api.console.entered import BLANK, Entered, attempt, read_as
from api.console.forms import Form, paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest
from api.routers.automation.automations import AUTOMATIONS
from models.automation.automations.commands import create_automation
from models.automation.automations.shapes import AutomationDetail, CreateAutomation
from models.core.access.rules import Level, Scope
from models.core.base import JsonObject
from runtime.errors import PlatformError

router = page_router()

_ALL = AUTOMATIONS.removeprefix("/v1")

_SHOW_NEW = paged(Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT))

_CREATE = replace(_SHOW_NEW, idempotent=True, joins=True)


class ExampleName(StrEnum):
    HELLO = "hello"
    APPROVAL = "approval"
    WEBHOOK = "webhook"


class NewAutomation(Form):
    """A name, and the example to begin with."""

    label: str = ""
    example: ExampleName = ExampleName.HELLO


@router.get(f"{_ALL}/new", access=_SHOW_NEW)
async def get_new_automation(request: ApiRequest) -> Response:
    """Choose what a new automation begins with."""
    return await _form(request, NewAutomation(), BLANK)


@router.post(_ALL, access=_CREATE)
async def create_automation_by_form(request: ApiRequest, body: NewAutomation) -> Response:
    """Create an automation whose draft is the example, and lead to the draft."""

    async def create() -> AutomationDetail:
        example = EXAMPLES[body.example]
        creation = read_as(
            CreateAutomation,
            {
                "label": body.label,
                "enabled": True,
                "graph": example.graph,
                "triggerConfig": example.trigger_config,
            },
        )
        return await create_automation(request.work, request.actor, request.services.keys, creation)

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        return await _form(request, body, Entered({"label": body.label}, outcome))
    return see_other(f"/workspaces/{request.workspace_id}/automations/{outcome.id}/edit")


async def _form(request: ApiRequest, body: NewAutomation, entered: Entered) -> Response:
    shell = await shell_of(request)
    path = f"/v1/workspaces/{request.workspace_id}/automations"
    return page(
        request,
        "new_automation.html",
        shell,
        body=body,
        entered=entered,
        examples=EXAMPLES,
        call=curl(shell.base, "POST", path, '{"label": "Hello"}'),
    )


@dataclass(frozen=True, slots=True)
class Example:
    """An automation that does something as it stands."""

    title: str
    sentence: str
    trigger_config: JsonObject
    graph: JsonObject


def _node(node_id: str, kind: str, label: str, **config: object) -> JsonObject:
    return {"id": node_id, "kind": kind, "label": label, "config": config}


_GREETING = {"type": "template", "value": "Hello {{ trigger.name }}!"}
_HELLO = Example(
    title="Hello",
    sentence="Takes a name and outputs a greeting.",
    trigger_config={"kind": "manual"},
    graph={
        "nodes": [_node("greet", "transform", "Greet", output={"text": _GREETING})],
        "edges": [],
        "testPayloads": [{"id": "ada", "name": "Ada", "payload": {"name": "Ada"}}],
    },
)
_APPROVAL = Example(
    title="Approval",
    sentence="Asks for approval, then branches on the answer.",
    trigger_config={"kind": "manual"},
    graph={
        "nodes": [
            _node(
                "ask", "approval", "Ask the owner", role="owner", allowSelf=True, title="Continue?"
            ),
            _node("approved", "transform", "Continue", output={"approved": True}),
            _node("rejected", "transform", "Stop", output={"approved": False}),
        ],
        "edges": [
            {"from": "ask", "to": "approved", "outcome": "approved"},
            {"from": "ask", "to": "rejected", "outcome": "rejected"},
        ],
    },
)
_WEBHOOK = Example(
    title="Webhook with a response",
    sentence="Runs on a signed HTTP call and responds with the data it received.",
    trigger_config={"kind": "webhook", "respond": "wait"},
    graph={
        "nodes": [
            _node(
                "answer",
                "respond",
                "Respond",
                status=200,
                body={"received": {"type": "trigger", "value": "body"}},
            )
        ],
        "edges": [],
        "testPayloads": [
            {"id": "call", "name": "A call", "payload": {"method": "POST", "body": {"order": 1}}}
        ],
    },
)
EXAMPLES: Mapping[ExampleName, Example] = {
    ExampleName.HELLO: _HELLO,
    ExampleName.APPROVAL: _APPROVAL,
    ExampleName.WEBHOOK: _WEBHOOK,
}
