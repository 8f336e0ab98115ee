"""Telling members something, in the transaction of what it is about."""

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, JsonObject
from models.messages.notifications.rules import NotificationKind
from models.messages.notifications.tables import notification
from models.people.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.ids import new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What is told; with a `key`, telling the same user the same again changes nothing."""

    kind: NotificationKind
    title: str
    body: str = ""
    item_id: Id | None = None
    record_id: Id | None = None
    run_id: Id | None = None
    actor_user_id: Id | None = None
    data: JsonObject = field(default_factory=dict)
    key: str | None = None


async def notify(
    work: UnitOfWork, workspace_id: Id, user_ids: Collection[Id], notice: Notice
) -> list[Id]:
    """Tell the users who are members of the workspace; the users told, in order of their ids."""
    members = await work.rows(
        select(workspace_member.c.user_id)
        .where(
            workspace_member.c.workspace_id == workspace_id,
            workspace_member.c.user_id.in_(sorted(user_ids)),
        )
        .order_by(workspace_member.c.user_id)
    )
    told = [row.user_id for row in members]
    rows = [
        {
            "id": new_id()
            if notice.key is None
            else derived_id("notification", notice.key, workspace_id, user_id),
            "workspace_id": workspace_id,
            "user_id": user_id,
            "kind": notice.kind.value,
            "title": notice.title,
            "body": notice.body,
            "item_id": notice.item_id,
            "record_id": notice.record_id,
            "run_id": notice.run_id,
            "actor_user_id": notice.actor_user_id,
            "data": notice.data,
            "created_at": work.now,
        }
        for user_id in told
    ]
    if rows:
        # Row by row: a statement for all has room for some thousand members.
        await work.execute(upsert(notification).on_conflict_do_nothing(index_elements=["id"]), rows)
    return told
