"""Members in a bundle."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, Select, Text, any_, func, literal, or_, select

from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import USER, Stage
from models.people.members.queries import members_of
from models.people.users.tables import app_user
from models.people.workspaces.tables import workspace, workspace_member
from runtime.database import UnitOfWork


def _rows(workspace_id: Id) -> Select[Any]:
    return members_of(workspace_id)


async def _identify(
    work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]
) -> Mapping[str, str]:
    """People are known by their e-mail address; an id alone says nothing on another platform.

    Nobody enters a workspace that is there already by a bundle: only its members are known.
    """
    emails = {row["email"].lower() for row in rows if row.get("email")}
    address = func.lower(app_user.c.email)
    there = select(workspace.c.id).where(workspace.c.id == target.workspace_id).exists()
    members = select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == target.workspace_id
    )
    users = await work.rows(
        select(app_user.c.id, address.label("email"))
        .where(
            address == any_(literal(list(emails), ARRAY(Text))),
            or_(~there, app_user.c.id.in_(members)),
        )
        .order_by(app_user.c.created_at.desc(), app_user.c.id.desc())
    )
    known: dict[str, list[str]] = {}
    for user in users:
        known.setdefault(user.email, []).append(str(user.id))
    named = {row["user_id"]: known.get((row.get("email") or "").lower(), []) for row in rows}
    # Of several people with one address it is the one whose id it was, or else the first.
    return {own: own if own in ids else ids[-1] for own, ids in named.items() if ids}


MEMBERS = BundleKind(
    name="member",
    stage=Stage.CREATING,
    file="members.ndjson",
    table=workspace_member,
    rows=_rows,
    references={"user_id": USER},
    required=("user_id",),
    order=("user_id",),
    identity="user_id",
    identify=_identify,
    of_members=True,
)
