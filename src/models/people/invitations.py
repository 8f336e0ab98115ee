"""Invitations: how people become members of a workspace."""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.queries import WorkspaceOf
from models.core.access.rules import Actor, Principal, Role
from models.core.base import Id, Input, Moment, Shape
from models.core.pagination import Listed, PageRequest
from models.core.repository import Repository
from models.people import workspaces
from models.people.members import RoleInput, check_role_given, has_address, outranks
from models.people.users import find_user
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of

LIFETIME = timedelta(days=7)
_TOKEN_BYTES = 32


def new_token() -> str:
    """A fresh secret of 256 bits, safe in a path."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class Invitation(SQLModel, table=True):
    """An invitation is open until it is accepted, revoked or past its expiry.

    `email` is in lower case; one person has one open invitation to a workspace.
    """

    __tablename__ = "invitation"
    __table_args__ = (
        sa.UniqueConstraint("digest"),
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["invited_by_user_id"], ["app_user.id"]),
        one_of("role", Role),
        sa.Index("ix_invitation_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        partial_index(
            "uq_invitation_workspace_id_email_open",
            "workspace_id",
            "email",
            where="accepted_at IS NULL AND revoked_at IS NULL",
            unique=True,
        ),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    email: str
    role: str
    digest: bytes = TableField(sa_type=BYTEA)
    invited_by_user_id: Id
    created_at: datetime = TableField(sa_type=Timestamp)
    expires_at: datetime = TableField(sa_type=Timestamp)
    accepted_at: datetime | None = TableField(default=None, sa_type=Timestamp)
    revoked_at: datetime | None = TableField(default=None, sa_type=Timestamp)


invitation = table_of(Invitation)

INVITATIONS = Repository("invitation", invitation, Invitation)

_ADDRESS = r"^[^@\s<>()\",;:\\]+@[^@\s.<>()\",;:\\]+(\.[^@\s.<>()\",;:\\]+)+$"


class CreateInvitation(Input):
    email: Annotated[str, Field(max_length=254, pattern=_ADDRESS)]
    role: RoleInput


class InvitationBody(Shape):
    id: Id
    workspace_id: Id
    email: str
    role: Role
    invited_by_user_id: Id
    created_at: Moment
    expires_at: Moment
    accepted_at: Moment | None
    revoked_at: Moment | None


class IssuedInvitation(Shape):
    """The answer to a creation: the only place the token is ever shown."""

    invitation: InvitationBody
    token: str


class InvitationList(Listed):
    invitations: list[InvitationBody]


OPEN = (invitation.c.accepted_at.is_(None), invitation.c.revoked_at.is_(None))

visible = WorkspaceOf(invitation.c.id)
"""The workspace of an invitation, if it is among the workspaces that are asked for."""


async def list_invitations(work: UnitOfWork, actor: Actor, page: PageRequest) -> InvitationList:
    """The invitations to the workspace, newest first, without their tokens."""
    return InvitationList.of(await INVITATIONS.page(work, actor, page))


def invitations_of(workspace_id: Id) -> sa.Select[Any]:
    """Every invitation to a workspace, also closed ones."""
    return sa.select(invitation).where(invitation.c.workspace_id == workspace_id)


def open_invitation(keys: KeyRing, token: str, now: datetime) -> sa.Select[Any]:
    """The invitation of a token, if it can be accepted."""
    return (
        sa.select(invitation)
        .join(*workspaces.live_workspace_of(invitation))
        .where(
            invitation.c.digest.in_(keys.digests(token.encode("utf-8", "replace"))),
            invitation.c.expires_at > now,
            *OPEN,
        )
    )


async def invited_to(
    work: UnitOfWork, principal: Principal, keys: KeyRing, token: str
) -> workspaces.WorkspaceEntry:
    """The workspace that an open invitation is to, as its person would see it.

    Raises `NotFoundError` for everything else, so that a token tells nothing to others.
    """
    row = await work.first(open_invitation(keys, token, work.now), of=Invitation)
    if row is None or not await is_addressed(work, principal, row):
        raise NotFoundError("invitation")
    return await workspaces.get_workspace(work, principal, row.workspace_id, Role(row.role))


async def is_addressed(work: UnitOfWork, principal: Principal, row: Invitation) -> bool:
    """True for an invitation to the e-mail address of the caller."""
    user = await find_user(work, principal.user_id)
    return user is not None and (user.email or "").lower() == row.email


async def open_invitations(work: UnitOfWork, until: datetime) -> int:
    """The number of open invitations, of all workspaces, that were made before a moment."""
    statement = (
        sa.select(sa.func.count())
        .select_from(invitation)
        .join(*workspaces.live_workspace_of(invitation))
        .where(invitation.c.created_at < until, invitation.c.expires_at > work.now, *OPEN)
    )
    return int(await work.scalar(statement))


async def create_invitation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: CreateInvitation
) -> IssuedInvitation:
    """Invite someone by e-mail address; an earlier open invitation of theirs is revoked.

    Raises `DeniedError` for a role above the actor's own, `ConflictError` for a member.
    """
    check_role_given(actor.role, body.role)
    email = body.email.lower()
    # Two invitations of one person wait for each other.
    await workspaces.lock_members(work, actor.workspace_id)
    if await has_address(work, actor.workspace_id, email):
        raise ConflictError("This person is already a member of the workspace.")
    await work.execute(
        sa.update(invitation)
        .where(invitation.c.workspace_id == actor.workspace_id, invitation.c.email == email, *OPEN)
        .values(revoked_at=work.now)
    )
    token = new_token()
    row = await work.first(
        sa.insert(invitation)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            email=email,
            role=body.role.value,
            digest=keys.digest(token.encode()),
            invited_by_user_id=actor.user_id,
            created_at=work.now,
            expires_at=work.now + LIFETIME,
        )
        .returning(invitation)
    )
    return IssuedInvitation(invitation=InvitationBody.model_validate(row), token=token)


async def revoke_invitation(work: UnitOfWork, actor: Actor, invitation_id: Id) -> InvitationBody:
    """Close an open invitation for ever; a closed one is returned as it is.

    Raises `NotFoundError`.
    """
    this = (invitation.c.workspace_id == actor.workspace_id, invitation.c.id == invitation_id)
    await work.execute(sa.update(invitation).where(*this, *OPEN).values(revoked_at=work.now))
    return InvitationBody.model_validate(await INVITATIONS.find(work, actor, invitation_id))


async def accept_invitation(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], keys: KeyRing, token: str
) -> workspaces.WorkspaceEntry:
    """Make the caller a member, if the invitation is open and to their e-mail address.

    A member keeps the stronger role. Raises `NotFoundError` for everything else, so that a token
    tells nothing to those it was not made for.
    """
    statement = open_invitation(keys, token, work.now).with_for_update(of=invitation)
    row = await work.first(statement, of=Invitation)
    if row is None or not await is_addressed(work, principal, row):
        raise NotFoundError("invitation")
    await work.execute(
        sa.update(invitation).where(invitation.c.id == row.id).values(accepted_at=work.now)
    )
    role = Role(row.role)
    current = roles.get(row.workspace_id)
    if current is not None and outranks(current, role):
        role = current
    await workspaces.add_member(work, row.workspace_id, principal.user_id, role)
    return await workspaces.get_workspace(work, principal, row.workspace_id, role)
