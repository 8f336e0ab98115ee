"""Pressing a button: it runs an action, and emits an event for automations."""

from models.automation.action_runs.acceptance import ActionRequest, accept, runnable_action
from models.automation.action_runs.shapes import RunAction
from models.automation.actions.queries import visible as visible_action
from models.automation.buttons.rules import USER_KEYS, Pressed, read_button
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.data.records.queries.records import get_record, load_schema_of
from models.data.records.shapes import RecordDetail
from models.messages.events.commands import emit
from models.messages.events.rules import EventKind
from models.people.users.queries import find_user
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError


async def press_button(
    work: UnitOfWork, actor: Actor, record_id: Id, key: str, run_id: Id, body: RunAction
) -> Id:
    """Accept a run of the action behind a button, and emit `button_pressed`.

    Gives the action's id. Raises `NotFoundError` for a record or an action the actor does not
    see, `DeniedError` without edit access to the action, and `ValidationError` for a field that
    is no button, settings that cannot be read, and a disabled action.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    button = read_button(key, schema.fields.get(key))
    await _require_edit(work, actor, button.action_id)
    record = await get_record(work, actor, record_id)
    user = await _user(work, actor)
    bound = await evaluate_bounded(lambda: button.input(_pressed(record, user)))
    action = await runnable_action(work, actor.workspace_id, button.action_id)
    await accept(work, actor, action, ActionRequest(run_id, {**bound, **body.input}))
    payload = {"record": record.to_json(), "user": user, "fieldKey": key}
    kind = EventKind.BUTTON_PRESSED
    await emit(work, actor.workspace_id, kind, schema.database_id, payload, event_id=run_id)
    return button.action_id


async def _require_edit(work: UnitOfWork, actor: Actor, action_id: Id) -> None:
    level = await visible_action.level(work, actor, action_id)
    if level < Level.VIEW:
        raise NotFoundError("action")
    if level < Level.EDIT:
        raise DeniedError("This needs edit access to the action behind the button.")


async def _user(work: UnitOfWork, actor: Actor) -> JsonObject:
    found = await find_user(work, actor.user_id)
    facts = {key: getattr(found, key, None) for key in USER_KEYS}
    return {**facts, "id": str(actor.user_id)}


def _pressed(record: RecordDetail, user: JsonObject) -> Pressed:
    shown = record.to_json()
    groups = ("data", "relations", "computed", "system")
    values = {key: value for group in groups for key, value in shown[group].items()}
    facts = {key: shown[key] for key in ("id", "title", "databaseId")}
    return Pressed(facts, {**values, "title": shown["title"]}, user)
