"""A new automation, begun with an example."""

from dataclasses import replace

from starlette.responses import Response

from api.console.automations.examples import EXAMPLES, ExampleName
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
from runtime.errors import PlatformError

router = page_router()

_ALL = AUTOMATIONS.removeprefix("/v1")
_SHOW = paged(Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT))
_CREATE = replace(_SHOW, idempotent=True, joins=True)


class NewAutomation(Form):
    """A name, and the example to begin with."""

    label: str = ""
    example: ExampleName = ExampleName.HELLO


@router.get(f"{_ALL}/new", access=_SHOW)
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
