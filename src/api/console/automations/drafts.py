"""The editor of drafts: its canvas, and the texts of its JSON."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from starlette.responses import Response

from api.console.automations.routes import Picture, automation_of, path_of, picture_of
from api.console.entered import Form, attempt, read_as
from api.console.forms import paged, read_json
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import indented, queried
from api.console.workspace.settings import Notice
from api.kernel.routing import ApiRequest, QueryId
from api.routers.automation import automations as api
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automations import commands, queries, shapes
from models.automation.automations.rules.graph.compiler import ReferenceIssue
from models.automation.automations.rules.graph.differences import difference
from models.automation.automations.rules.graph.shapes import Graph
from models.core.base import Id, JsonObject
from models.core.values import InputMoment
from runtime.errors import ConflictError, Detail, PlatformError, ValidationError

router = page_router()

_ONE = AUTOMATION.removeprefix("/v1")
_SHOW = replace(paged(WRITE), idempotent=False)
_SEND = replace(paged(WRITE), joins=True)
_BLANK: JsonObject = {
    "nodes": [
        {
            "id": "greet",
            "kind": "transform",
            "config": {"output": {"text": {"type": "template", "value": "Hello!"}}},
        }
    ],
    "edges": [],
}
"""A graph to begin with, where there is none."""


class Draft(Form):
    """A draft as a person wrote it, and the state of the automation that it was written on."""

    graph: str = ""
    trigger: str = ""
    draft_version_id: str = ""
    updated_at: InputMoment | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A fault, where it is and on which line of the text; `line` is 0 where no line tells it."""

    name: str
    line: int
    message: str
    severity: str = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The texts of an editor, and what was found about them."""

    graph: str
    trigger: str
    on: Draft | None = None
    """The state that it was written on; None for the state as it is now."""
    picture: Picture | None = None
    places: Sequence[Place] = ()
    refusal: PlatformError | None = None


@router.get(f"{_ONE}/edit", access=_SHOW)
async def get_editor(
    request: ApiRequest,
    tab: Literal["json"] | None = None,
    run: QueryId | None = None,
    notice: Notice | None = None,
) -> Response:
    """Look at the draft, or at what a draft would begin with: on a canvas, or as JSON.

    The canvas shows the data of `run`. Without scripts both are the texts of the JSON.
    """
    automation = await automation_of(request)
    # Stored JSON has no order of its own; a person reads the nodes first, each from its id on.
    graph = Graph.model_validate(automation.graph or _BLANK).to_json()
    text = indented(graph)
    texts = Written(
        graph=text,
        trigger=indented(automation.trigger_config or {"kind": "manual"}),
        picture=picture_of(graph),
        places=places_of(text, automation.reference_issues),
    )
    return await _editor(request, automation, texts, notice, tab=tab or "canvas", run_id=run)


@router.get(f"{_ONE}/edit/changes", access=_SHOW)
async def get_changes(request: ApiRequest) -> Response:
    """Look at what publishing the draft would change: a part of the editor."""
    automation = await automation_of(request)
    old = changes = None
    if automation.published_version_id is not None:
        place = request.work, request.actor, automation.id
        old = await queries.version_detail(*place, automation.published_version_id)
        graph, trigger = automation.graph or {}, automation.trigger_config or {}
        changes = difference(old.graph, graph, old.trigger_config, trigger)
    return await console_page(request, "draft_changes.html", old=old, changes=changes)


@router.post(f"{_ONE}/edit/check", access=replace(paged(READ), safe=True))
async def check_draft(request: ApiRequest, body: Draft) -> Response:
    """Find what is wrong with a draft, and draw it, without saving it."""

    async def check() -> Sequence[ReferenceIssue]:
        draft = read_as(shapes.ValidateAutomation, _content(body))
        found = await commands.validate(
            request.work, request.actor, request.ids["automationId"], draft
        )
        return found.reference_issues

    outcome = await attempt(request, check)
    written = _written(body, outcome)
    return await _editor(request, await automation_of(request), written, is_check=True)


@router.post(f"{_ONE}/edit", access=_SEND)
async def save_draft(request: ApiRequest, body: Draft) -> Response:
    """Save a draft, unless someone else has changed it since it was read."""
    outcome = await attempt(request, lambda: _save(request, body))
    if isinstance(outcome, PlatformError):
        written = _written(body, outcome)
        return await _editor(request, await automation_of(request), written)
    return see_other(queried(f"{path_of(request)}/edit", tab="json", notice=Notice.SAVED))


@router.post(f"{_ONE}/edit/publish", access=_SEND)
async def publish_written_draft(request: ApiRequest, body: Draft) -> Response:
    """Save a draft and publish it, both or neither."""

    async def publish() -> shapes.AutomationDetail:
        saved = await _save(request, body)
        wanted = read_as(
            shapes.PublishAutomation,
            {"note": body.note or None, "expectedDraftVersionId": str(saved.draft_version_id)},
        )
        place = request.services.keys, request.ids["automationId"]
        return await commands.publish(request.work, request.actor, *place, wanted)

    outcome = await attempt(request, publish)
    if isinstance(outcome, PlatformError):
        written = _written(body, outcome)
        return await _editor(request, await automation_of(request), written)
    return see_other(path_of(request))


act(router, f"{_ONE}/edit/discard", api.discard_draft, then=_ONE)


async def _save(request: ApiRequest, body: Draft) -> shapes.AutomationDetail:
    values = _content(body)
    if body.draft_version_id:
        values["expectedDraftVersionId"] = body.draft_version_id
    wanted = read_as(shapes.UpdateAutomation, values)
    place = request.services.keys, request.ids["automationId"]
    return await commands.update_automation(
        request.work, request.actor, *place, wanted, body.updated_at
    )


def _content(body: Draft) -> JsonObject:
    """The graph and the trigger that were written. Raises ValidationError."""
    return {
        "graph": _read("graph", body.graph),
        "triggerConfig": _read("triggerConfig", body.trigger),
    }


def _read(name: str, text: str) -> JsonObject:
    value = read_json(name, text)
    if not isinstance(value, dict):
        raise ValidationError.at(name, "Enter a JSON object.")
    return value


def _written(body: Draft, outcome: object) -> Written:
    """The texts as they were sent, with the picture and the faults of the graph."""
    on = None if isinstance(outcome, ConflictError) else body
    written = Written(graph=body.graph, trigger=body.trigger, on=on, picture=_picture(body.graph))
    if isinstance(outcome, PlatformError):
        details = outcome.details if isinstance(outcome, ValidationError) else ()
        return replace(written, places=places_of(body.graph, details), refusal=outcome)
    assert isinstance(outcome, Sequence), "a check finds issues"
    return replace(written, places=places_of(body.graph, outcome))


def _picture(text: str) -> Picture | None:
    """The picture of a graph that was written, if it can be read as one."""
    try:
        return picture_of(read_as(Graph, _read("graph", text)).to_json())
    except ValidationError:
        return None


async def _editor(
    request: ApiRequest,
    automation: shapes.AutomationDetail,
    written: Written,
    notice: Notice | None = None,
    *,
    is_check: bool = False,
    tab: Literal["canvas", "json", "texts"] = "texts",
    run_id: Id | None = None,
) -> Response:
    shell = await shell_of(request)
    return page(
        request,
        "editor.html",
        shell,
        automation=automation,
        at=path_of(request),
        written=written,
        tab=tab,
        run_id=run_id,
        user_id=request.actor.user_id,
        refusal=None if is_check else written.refusal,
        is_conflict=isinstance(written.refusal, ConflictError),
        notice=notice,
        calls=shell.calls(
            api.update_automation,
            api.validate_automation,
            api.publish_automation,
            api.discard_draft,
        ),
    )


_NODE = re.compile(r"graph\.nodes\.(\d+)(?:\.|$)")
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*")')
_TOLD_LINE = re.compile(r"\bat line (\d+),")
_MOST = 50


def places_of(text: str, faults: Sequence[Detail] | Sequence[ReferenceIssue]) -> Sequence[Place]:
    """The places of faults in the text of a graph, in the order in which they were told."""
    ids = list(_ids(text))
    return [_place(text, ids, one) for one in faults[:_MOST]]


def _place(text: str, ids: Sequence[tuple[str, int]], fault: Detail | ReferenceIssue) -> Place:
    lines = dict(reversed(ids))
    if isinstance(fault, ReferenceIssue):
        line = lines.get(fault.node_id, 0)
        return Place(fault.node_id, line, fault.message, fault.severity.value)
    name, line = fault.path, 0
    if (told := _TOLD_LINE.search(fault.message)) and fault.path == "graph":
        line = int(told[1])
    elif node := _NODE.match(fault.path):
        node_id = _node_id(text, int(node[1]))
        line = lines.get(node_id, 0)
    return Place(name, line, fault.message)


def _node_id(text: str, number: int) -> str:
    """The id of a node by its number, as far as the text can be read."""
    try:
        return str(json.loads(text)["nodes"][number]["id"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _ids(text: str) -> Iterator[tuple[str, int]]:
    """The ids that are written in a text, each with its line."""
    for match in _ID.finditer(text):
        try:
            yield json.loads(match[1]), text.count("\n", 0, match.start()) + 1
        except ValueError:
            continue
