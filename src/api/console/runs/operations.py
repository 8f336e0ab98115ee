"""Operations over runs and events, and undos of a run: preview, confirmation, and result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.responses import Response

from api.console.entered import Entered, Fields, Form, attempt, read_as, redisplays
from api.console.forms import paged, read_json
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.runs.routes import RUNS
from api.kernel.routing import ApiRequest, Cursor, QueryId
from api.routers.automation import automation_runs as runs_api
from api.routers.automation import many_runs as api
from api.routers.automation.automation_runs import RUN, UNDO, UNDOS
from api.routers.automation.automations import READ
from api.routers.automation.many_runs import READ_OPERATIONS, WRITE_OPERATIONS
from models.automation.automation_runs.filters import WorkspaceRunQuery
from models.automation.automations.queries import labels_of
from models.automation.inbox.queries import EventQuery
from models.automation.run_operations import commands, queries
from models.automation.run_operations import rules as run_operation_rules
from models.automation.run_operations.commands import undo_run
from models.automation.run_operations.selection import frozen
from models.automation.run_overviews import named
from models.automation.run_undos.commands import get_undo
from models.automation.run_undos.queries import RunUndoDetail, UndoRun, list_undos
from models.core.base import Id, JsonObject
from runtime.errors import PlatformError, RunError, ValidationError
from runtime.ids import parse_id

router = page_router()

_OPERATIONS = f"{RUNS}/operations"
_OPERATION = f"{_OPERATIONS}/{{runOperationId}}"
_PAGE = 50
_COUNTED, _EXAMINED = 20_000, 2_000
"""Runs that the page counts and looks at: fewer than the operation, so that it is quick."""

_SHOW = replace(WRITE_OPERATIONS, idempotent=False, heavy=True, safe=True)


@router.post(f"{_OPERATIONS}/preview", access=paged(_SHOW))
async def preview_operation_by_form(request: ApiRequest, body: Fields) -> Response:
    """Look at what an operation would do, and choose how."""
    return await _form(request, Entered(body.texts))


async def _form(request: ApiRequest, entered: Entered) -> Response:
    """The runs that a form means, what would happen to them, and what can be chosen."""
    body, refusal = Fields.model_validate(entered.texts), entered.refusal
    now = request.work.now
    runs, values = selected(body, now), values_of(body, now)

    async def preview() -> queries.RunOperationPreview:
        operation = operation_of(body, now)
        return await commands.preview_operation(
            request.work, request.actor, operation, counted=_COUNTED, examined=_EXAMINED
        )

    outcome = await attempt(request, preview)
    if isinstance(outcome, PlatformError):
        refusal = refusal or outcome
    return await console_page(
        request,
        "operation_form.html",
        (api.create_run_operation, values),
        action=values["action"],
        of_events=values["action"] == run_operation_rules.OperationAction.REPLAY,
        runs=runs,
        automation=await _replayed_automation(request, values.get("replay")),
        preview=None if isinstance(outcome, PlatformError) else outcome,
        entered=Entered(body.texts, refusal),
    )


async def _replayed_automation(request: ApiRequest, replay: JsonObject | None) -> str | None:
    """The name of the automation that events are replayed for, as far as it is visible."""
    automation_id = None if replay is None else parse_id(replay["automationId"])
    ids = [] if automation_id is None else [automation_id]
    return (await labels_of(request.work, request.actor, ids)).get(ids[0]) if ids else None


@router.post(_OPERATIONS, access=paged(WRITE_OPERATIONS))
@redisplays(_form)
async def begin_operation(request: ApiRequest, body: Fields) -> Response:
    """Begin an operation, and lead to where it is followed."""
    operation = operation_of(body, request.work.now)
    await commands.accept_operation(request.work, request.actor, request.new_id, operation)
    return see_other(_path(request, request.new_id))


@router.get(_OPERATIONS, access=paged(READ_OPERATIONS))
async def get_operations(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the operations over runs of a workspace."""
    turn = request.page("console run operations", _PAGE, cursor)
    listed = await queries.list_operations(request.work, request.actor, turn)
    return await console_page(
        request,
        "operations.html",
        (api.list_run_operations, {"limit": _PAGE}),
        listed=listed,
        cursor=cursor,
        going=any(
            one.status in run_operation_rules.OPEN_OPERATION for one in listed.run_operations
        ),
    )


@router.get(_OPERATION, access=paged(READ_OPERATIONS))
async def get_operation(
    request: ApiRequest,
    cursor: Cursor = None,
    outcome: run_operation_rules.RunOutcome | None = None,
) -> Response:
    """Follow an operation, and see what became of each run."""
    operation_id = request.ids["runOperationId"]
    operation = await queries.operation_detail(request.work, request.actor, operation_id)
    turn = request.page("console results", _PAGE, cursor, operation_id, outcome)
    results = await queries.list_results(request.work, request.actor, operation_id, turn, outcome)
    replayed = await _replayed_automation(request, operation.replay)
    return await console_page(
        request,
        "operation.html",
        api.get_run_operation,
        (api.list_run_operation_results, {"outcome": outcome}),
        operation=operation,
        results=results,
        of_events=operation.action is run_operation_rules.OperationAction.REPLAY,
        automation=replayed,
        labels=await queries.automation_labels(
            request.work, request.actor, [one.run_id for one in results.results]
        ),
        cursor=cursor,
        outcome=outcome,
        outcomes=list(run_operation_rules.RunOutcome),
        going=operation.status in run_operation_rules.OPEN_OPERATION,
        paused=operation.status is run_operation_rules.OperationStatus.PAUSED,
    )


for _verb, _operation, _message in (
    ("pause", api.pause_run_operation, "Operation paused"),
    ("resume", api.resume_run_operation, "Operation resumed"),
    ("cancel", api.cancel_run_operation, "Operation cancelled"),
):
    act(router, f"{_OPERATION}/{_verb}", _operation, message=_message, then=_OPERATION)
act(router, f"{_OPERATION}/undo", api.undo_run_operation, then=f"{_OPERATIONS}/{{answer.id}}")


def _path(request: ApiRequest, operation_id: Id) -> str:
    return f"/workspaces/{request.workspace_id}/runs/operations/{operation_id}"


NONE_TICKED = "No runs selected. Select runs in the list, or apply to all matching runs."
NO_AUTOMATION = "Choose the automation that the events are replayed for."
_FILTER = "filter."


@dataclass(frozen=True, slots=True)
class Selected:
    """The runs of a form: their ids, or a filter. The form of the next page has them hidden.

    With `automation_id` the filter is one of events, which are replayed for this automation.
    """

    run_ids: Sequence[str]
    filters: Mapping[str, str]
    automation_id: str | None = None

    @property
    def hidden(self) -> Mapping[str, str]:
        """The fields that stand for it."""
        if self.run_ids:
            return {"selection": "ticked", **{f"run.{run_id}": "on" for run_id in self.run_ids}}
        fields = {f"{_FILTER}{name}": text for name, text in self.filters.items()}
        if self.automation_id is not None:
            return {"automationId": self.automation_id, **fields}
        return {"selection": "all", **fields}

    @property
    def body(self) -> JsonObject:
        """Its part of the body of the operation."""
        if self.run_ids:
            return {"runIds": list(self.run_ids)}
        return {"filter": dict(self.filters)}


def selected(fields: Fields, now: datetime) -> Selected:
    """The runs that a form means. Raises ValidationError when it means none.

    A period becomes the moments that bound it, so that what is confirmed is what was previewed.
    """
    if action_of(fields) is run_operation_rules.OperationAction.REPLAY:
        return _selected_events(fields, now)
    match fields.texts.get("selection", "ticked"):
        case "all":
            return Selected((), _filters(fields, now))
        case "page":
            run_ids = fields.texts.get("shown", "").split()
        case _:
            run_ids = fields.checked("run")
    if not run_ids:
        raise ValidationError.at("", NONE_TICKED)
    return Selected(run_ids, {})


def _sent_filters(fields: Fields) -> dict[str, str]:
    return {
        name.removeprefix(_FILTER): text
        for name, text in fields.texts.items()
        if name.startswith(_FILTER)
    }


def _filters(fields: Fields, now: datetime) -> dict[str, str]:
    query = read_as(WorkspaceRunQuery, _sent_filters(fields))
    return {name: str(value) for name, value in frozen(query, now).wire.items()}


def _selected_events(fields: Fields, now: datetime) -> Selected:
    filters = _sent_filters(fields)
    automation_id = fields.texts.get("automationId") or filters.pop("automationId", "")
    if not automation_id:
        raise ValidationError.at("automationId", NO_AUTOMATION)
    query = read_as(EventQuery, filters)
    wire = query.until_at_most(now).wire
    return Selected((), {name: str(value) for name, value in wire.items()}, automation_id)


def action_of(fields: Fields) -> run_operation_rules.OperationAction:
    """The action of a form. Raises ValidationError."""
    text = fields.texts.get("action", "")
    if text not in set(run_operation_rules.OperationAction):
        raise ValidationError.at("action", "Choose cancel, retry, resume, undo or replay.")
    return run_operation_rules.OperationAction(text)


def operation_of(fields: Fields, now: datetime) -> queries.CreateRunOperation:
    """The body of the operation that a form stands for. Raises ValidationError."""
    return read_as(queries.CreateRunOperation, values_of(fields, now))


def values_of(fields: Fields, now: datetime) -> JsonObject:
    """The same as JSON, for the equal call. Raises ValidationError."""
    texts, action = fields.texts, action_of(fields)
    selection = selected(fields, now)
    values: JsonObject = {"action": action.value}
    if action is run_operation_rules.OperationAction.REPLAY:
        values["replay"] = {
            "automationId": selection.automation_id,
            "version": texts.get("version", "published"),
            "test": "test" in texts,
            "filter": dict(selection.filters),
        }
    else:
        values |= selection.body
    if action is run_operation_rules.OperationAction.RETRY:
        values["retry"] = {"from": texts.get("from", "failed")}
        values["retry"] |= {"version": "published"} if texts.get("version") == "published" else {}
        values["retry"] |= {"again": True} if "again" in texts else {}
    if action is run_operation_rules.OperationAction.RESUME:
        node_id = {"nodeId": texts["nodeId"]} if texts.get("nodeId") else {}
        values["resume"] = {**node_id, "data": read_json("data", texts.get("data", "{}"))}
    if texts.get("rate"):
        values["rate"] = _number(texts["rate"])
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValidationError.at("rate", "must be a number") from None


_UNDO = f"{RUN.removeprefix('/v1')}/undo"
_ONE = f"{UNDOS.removeprefix('/v1')}/{{undoId}}"
_LISTED = 20
"""Undos of the run that the page lists."""


class Confirm(Form):
    """The undo of the run to undo, if it is not the run itself."""

    undo_id: Id | None = None


@router.get(_UNDO, access=replace(paged(UNDO), idempotent=False, writes=True), errors=[RunError])
async def preview_run_undo(request: ApiRequest, undo_id: QueryId | None = None) -> Response:
    """Look at what the undo of a run would revert."""
    body = UndoRun(preview=True, undoId=undo_id)
    place = request.ids["automationId"], request.ids["runId"]
    outcome = await attempt(
        request, lambda: undo_run(request.work, request.actor, *place, body, request.new_id)
    )
    if isinstance(outcome, PlatformError):
        return await _page(request, None, undo_id, outcome)
    return await _page(request, outcome, undo_id)


@router.post(_UNDO, access=paged(UNDO), errors=[RunError])
async def confirm_run_undo(request: ApiRequest, body: Confirm) -> Response:
    """Undo a run, and lead to the undo."""
    place = request.ids["automationId"], request.ids["runId"]
    wanted = UndoRun(undoId=body.undo_id)
    undo = await undo_run(request.work, request.actor, *place, wanted, request.new_id)
    return see_other(f"{request.url.path}s/{undo.id}")


@router.get(_ONE, access=paged(READ))
async def get_run_undo(request: ApiRequest) -> Response:
    """Look at an undo of a run."""
    place = request.ids["automationId"], request.ids["runId"]
    undo = await get_undo(request.work, request.actor, *place, request.ids["undoId"])
    return await _page(request, undo, None)


async def _page(
    request: ApiRequest,
    undo: RunUndoDetail | None,
    undo_id: Id | None,
    refusal: PlatformError | None = None,
) -> Response:
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    turn = request.page("console run undos", _LISTED, None, run_id)
    listed = await list_undos(request.work, request.actor, automation_id, run_id, turn)
    shell = await shell_of(request)
    preview = {"preview": True} if undo_id is None else {"preview": True, "undoId": str(undo_id)}
    place = {"automation_id": automation_id, "run_id": run_id}
    return page(
        request,
        "undo.html",
        shell,
        automation=await named(request.work, request.actor, run_id),
        run_id=run_id,
        undo=undo,
        undo_id=undo_id,
        problem=refusal,
        listed=listed.run_undos,
        place=f"/workspaces/{request.workspace_id}/automations/{automation_id}/runs/{run_id}",
        api=shell.calls((runs_api.undo_automation_run, preview), **place),
    )
