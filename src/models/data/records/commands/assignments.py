"""Notifications of assignments: to those whom a write has put into a person field."""

from collections.abc import Iterator, Sequence

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.joins import item_of_database
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.record_changes.rules import ChangeKind
from models.data.records.rules.write.writes import Planned
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify_each
from models.messages.notifications.rules import about
from models.people.users.queries import display_name
from runtime.database import UnitOfWork
from runtime.ids import parse_id


async def notify_assigned(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[Planned]
) -> None:
    """Notify who is in a person field now and was not before; rows that come in tell nobody."""
    keys = [key for key, spec in schema.fields.items() if spec.kind is FieldKind.PERSON]
    if not keys or actor.principal.bulk:
        return
    assigned = [(plan, dict(_added(plan, keys))) for plan in plans]
    # Who takes something on needs nobody to tell them, and costs no statement.
    if not any(people.keys() - {actor.person} for _, people in assigned):
        return
    item_id = await work.scalar(item_of_database(schema.workspace_id, schema.database_id))
    name = await display_name(work, actor.person)
    notices = [
        ([user_id], _notice(actor, plan, item_id, name, key))
        for plan, people in assigned
        for user_id, key in people.items()
    ]
    await notify_each(work, schema.workspace_id, notices)


def _notice(actor: Actor, plan: Planned, item_id: Id, name: str, key: str) -> Notice:
    return Notice(
        kind=NotificationKind.ASSIGNMENT,
        title=about(f"{name} assigned “{plan.after.title}” to you"),
        item_id=item_id,
        record_id=plan.after.id,
        run_id=actor.principal.run_id,
        actor_user_id=actor.person,
        data={"fieldKey": key},
    )


def _added(plan: Planned, keys: Sequence[str]) -> Iterator[tuple[Id, str]]:
    """The people a write has assigned, and the field that says so."""
    if plan.kind in {None, ChangeKind.DELETED}:
        return
    for key in keys:
        before = () if plan.before is None else plan.before.data.get(key) or ()
        for text in plan.after.data.get(key) or ():
            user_id = parse_id(text) if isinstance(text, str) else None
            if user_id is not None and text not in before:
                yield user_id, key
