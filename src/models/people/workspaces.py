"""Workspaces and who belongs to them: their plans, rows, reading, changing and deletion."""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Actor, Principal, Role, Scope
from models.core.base import Deleted, Id, Input, Label, Moment, Shape
from models.core.pagination import Listed, PageRequest
from models.core.purging import MAX_ROWS, purge
from models.people.users import make_platform_admin, sync_profile
from runtime.configuration.sections import DEVELOPMENT_ISSUER
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of


class Plan(StrEnum):
    """The plan of a workspace; plans do not set limits."""

    FREE = "free"
    TEAM = "team"
    BUSINESS = "business"
    ENTERPRISE = "enterprise"


def slug_from(name: str) -> str:
    """A slug made of a name: its ASCII letters and digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:40].strip("-") or "workspace"


def numbered(slug: str, number: int) -> str:
    """`slug-2`, `slug-3`, …; the first is the slug itself."""
    return slug if number == 1 else f"{slug}-{number}"


class Workspace(SQLModel, table=True):
    """The boundary of everything: no row of another table is seen across it."""

    __tablename__ = "workspace"
    __table_args__ = (
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("plan", Plan),
        partial_index("uq_workspace_slug", "slug", where="deleted_at IS NULL", unique=True),
    )

    id: Id = TableField(primary_key=True)
    name: str
    slug: str
    icon: str | None = None
    plan: str = TableField(
        default=Plan.FREE.value, sa_column_kwargs={"server_default": Plan.FREE.value}
    )
    created_by_user_id: Id
    created_at: datetime = TableField(sa_type=Timestamp)
    updated_at: datetime = TableField(sa_type=Timestamp)
    deleted_at: datetime | None = TableField(default=None, sa_type=Timestamp)


class WorkspaceMember(SQLModel, table=True):
    """The role of a user in a workspace; leaving deletes the row, and every right with it."""

    __tablename__ = "workspace_member"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        one_of("role", Role),
        sa.Index("ix_workspace_member_user_id", "user_id"),
    )

    workspace_id: Id = TableField(primary_key=True)
    user_id: Id = TableField(primary_key=True)
    role: str
    created_at: datetime = TableField(sa_type=Timestamp)


workspace = table_of(Workspace)
workspace_member = table_of(WorkspaceMember)

Slug = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$")]
Icon = Annotated[str, Field(min_length=1, max_length=200)]


class WorkspaceBody(Shape):
    id: Id
    name: str
    slug: str
    icon: str | None
    created_at: Moment


class WorkspaceEntry(Shape):
    """A workspace with the `permissions` of the caller."""

    workspace: WorkspaceBody
    role: Role
    permissions: list[Scope]


class WorkspaceList(Listed):
    workspaces: list[WorkspaceEntry]


class CreateWorkspace(Input):
    name: Label
    slug: Slug | None = None
    icon: Icon | None = None


class UpdateWorkspace(Input):
    """Body of update workspace. Missing or null keys are not changed; a null `icon` is removed."""

    name: Label | None = None
    slug: Slug | None = None
    icon: Icon | None = None


class ChangePlan(Input):
    """The plan of a workspace from now on."""

    plan: Annotated[Plan, Field(strict=False)]


class PlanBody(Shape):
    """The plan of a workspace."""

    plan: Plan


_MAX_LISTED = 1000


async def list_workspaces(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role]
) -> list[WorkspaceEntry]:
    """The workspaces these roles are held in, oldest first."""
    rows = await _live(work, list(roles))
    return [entry(row, principal, roles[row.id]) for row in rows]


async def page_of_workspaces(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], page: PageRequest
) -> WorkspaceList:
    """As `list_workspaces`, page by page."""
    columns = workspace.c
    shown = await page.ascending(
        work, _living(list(roles)), columns.created_at, columns.id, of=Workspace
    )
    return WorkspaceList.of(shown, lambda row: entry(row, principal, roles[row.id]))


async def get_workspace(
    work: UnitOfWork, principal: Principal, workspace_id: Id, role: Role
) -> WorkspaceEntry:
    """One workspace; raises NotFoundError."""
    rows = await _live(work, [workspace_id])
    if not rows:
        raise NotFoundError("workspace")
    return entry(rows[0], principal, role)


def workspace_name_of(workspace_id: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """The name of the workspace of a column of the enclosing statement."""
    return sa.select(workspace.c.name).where(workspace.c.id == workspace_id).scalar_subquery()


async def name_of(work: UnitOfWork, workspace_id: Id) -> str:
    return str(await work.scalar(sa.select(workspace.c.name).where(workspace.c.id == workspace_id)))


async def plan_of(work: UnitOfWork, workspace_id: Id) -> Plan:
    return Plan(
        await work.scalar(sa.select(workspace.c.plan).where(workspace.c.id == workspace_id))
    )


def living_workspaces() -> sa.Select[Id]:
    """The ids of the workspaces that were not deleted."""
    return sa.select(workspace.c.id).where(workspace.c.deleted_at.is_(None))


async def is_open_workspace(work: UnitOfWork, workspace_id: Id) -> bool:
    """True when there is a workspace of this id that was not deleted."""
    return bool(await _live(work, [workspace_id]))


def entry(row: Workspace, principal: Principal, role: Role) -> WorkspaceEntry:
    """A workspace row as a caller with this role sees it."""
    held = principal.effective_scopes(role)
    return WorkspaceEntry(
        workspace=WorkspaceBody.model_validate(row),
        role=role,
        permissions=[scope for scope in Scope if scope in held],
    )


def live_workspace_of(resource: sa.FromClause) -> tuple[sa.FromClause, sa.ColumnElement[bool]]:
    """The join to the workspace of a resource's rows, unless it was deleted.

    To be spread: `select(…).join(*live_workspace_of(resource))`.
    """
    live = sa.and_(workspace.c.id == resource.c.workspace_id, workspace.c.deleted_at.is_(None))
    return workspace, live


def every_workspace() -> sa.Subquery:
    """The ids of all workspaces, deleted ones too, to join what each of them has."""
    return sa.select(workspace.c.id).subquery("workspace")


def _living(ids: Sequence[Id]) -> sa.Select[Any]:
    return sa.select(workspace).where(workspace.c.id.in_(ids), workspace.c.deleted_at.is_(None))


async def _live(work: UnitOfWork, ids: Sequence[Id]) -> Sequence[Workspace]:
    oldest_first = _living(ids).order_by(workspace.c.created_at, workspace.c.id)
    return await work.rows(oldest_first.limit(_MAX_LISTED), of=Workspace)


DeletionHandler = Callable[[UnitOfWork, Id], Awaitable[None]]
"""Takes the workspace that was deleted."""

_HANDLERS: list[DeletionHandler] = []


def on_workspace_deletion(handler: DeletionHandler) -> None:
    """Call `handler` in the transaction of each deletion; registering it again changes nothing.

    Resources of higher domains say here what they then do; `models.registrations` lists them.
    """
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def workspace_deleted(work: UnitOfWork, workspace_id: Id) -> None:
    """Call the handlers for a workspace that was deleted."""
    for handler in _HANDLERS:
        await handler(work, workspace_id)


_NUMBERED = 6


async def create_workspace(
    work: UnitOfWork, principal: Principal, body: CreateWorkspace
) -> WorkspaceEntry:
    """A workspace owned by the caller; raises ConflictError when the slug it asks for is taken."""
    row = await _insert(work, principal.user_id, body.name, body.slug, body.icon)
    return entry(row, principal, Role.OWNER)


async def update_workspace(work: UnitOfWork, actor: Actor, body: UpdateWorkspace) -> WorkspaceEntry:
    """Change name, slug or icon; raises ConflictError when the slug is taken."""
    given = body.model_dump(exclude_unset=True)
    values = {key: value for key, value in given.items() if value is not None or key == "icon"}
    try:
        async with work.savepoint():
            await work.execute(
                sa.update(workspace)
                .where(workspace.c.id == actor.workspace_id)
                .values(**values, updated_at=work.now)
            )
    except IntegrityError as error:
        raise ConflictError(f"The slug {body.slug} is taken. Choose another.") from error
    return await get_workspace(work, actor.principal, actor.workspace_id, actor.role)


async def change_plan(work: UnitOfWork, actor: Actor, body: ChangePlan) -> PlanBody:
    """Put a workspace on another plan."""
    this = sa.update(workspace).where(workspace.c.id == actor.workspace_id)
    await work.execute(this.values(plan=body.plan.value, updated_at=work.now))
    return PlanBody(plan=body.plan)


async def delete_workspace(work: UnitOfWork, actor: Actor) -> Deleted:
    """Close a workspace for everyone; its keys stop with it, and its slug is free again."""
    await work.execute(
        sa.update(workspace)
        .where(workspace.c.id == actor.workspace_id, workspace.c.deleted_at.is_(None))
        .values(deleted_at=work.now, updated_at=work.now)
    )
    await workspace_deleted(work, actor.workspace_id)
    return Deleted(id=actor.workspace_id)


async def lock_members(work: UnitOfWork, workspace_id: Id) -> None:
    """Have other changes of the members of a workspace wait for this one, at its row."""
    await work.execute(
        sa.select(workspace.c.id).where(workspace.c.id == workspace_id).with_for_update()
    )


async def add_member(work: UnitOfWork, workspace_id: Id, user_id: Id, role: Role) -> None:
    """Make a user a member, or change what they are."""
    statement = upsert(workspace_member).values(
        workspace_id=workspace_id, user_id=user_id, role=role.value, created_at=work.now
    )
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "user_id"], set_={"role": role.value}
        )
    )


async def ensure_first_workspace(work: UnitOfWork, email: str, name: str) -> tuple[Id, Id]:
    """The first workspace of a person and the person's user id, made if they are not there.

    The person is who the development issuer calls by their e-mail address, and becomes a platform
    administrator (interface.md#platform-administrators).
    """
    user_id = await sync_profile(
        work,
        issuer=DEVELOPMENT_ISSUER,
        subject=email.lower(),
        email=email,
        name=name,
        platform_admin=True,
    )
    await make_platform_admin(work, user_id)
    first = (
        sa.select(workspace.c.id)
        .where(workspace.c.created_by_user_id == user_id, workspace.c.deleted_at.is_(None))
        .order_by(workspace.c.created_at, workspace.c.id)
        .limit(1)
    )
    existing: Id | None = await work.scalar(first)
    if existing is not None:
        return existing, user_id
    row = await _insert(work, user_id, f"{name}'s workspace", None, None)
    return row.id, user_id


async def create_hidden_workspace(
    work: UnitOfWork, workspace_id: Id, name: str, user_id: Id
) -> None:
    """A workspace that is filled before anyone sees it; again, the same one.

    To everyone it is like a deleted one, until `reveal_workspace`.
    """
    await work.execute(
        upsert(workspace)
        .values(
            id=workspace_id,
            name=name,
            slug=slug_from(name),
            created_by_user_id=user_id,
            created_at=work.now,
            updated_at=work.now,
            deleted_at=work.now,
        )
        .on_conflict_do_nothing()
    )


async def reveal_workspace(work: UnitOfWork, workspace_id: Id, user_id: Id) -> None:
    """Let its members see a workspace that was hidden; without an owner it gets this one."""
    condition = workspace.c.id == workspace_id
    name = await work.scalar(sa.select(workspace.c.name).where(condition))
    for slug in _slugs(name, workspace_id):
        taken = sa.select(workspace.c.id).where(
            workspace.c.slug == slug, workspace.c.deleted_at.is_(None)
        )
        if await work.scalar(taken) is None:
            break
    await work.execute(
        sa.update(workspace)
        .where(condition)
        .values(slug=slug, deleted_at=None, updated_at=work.now)
    )
    owners = sa.select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == workspace_id,
        workspace_member.c.role == Role.OWNER.value,
    )
    if await work.scalar(owners) is None:
        await add_member(work, workspace_id, user_id, Role.OWNER)


async def _insert(
    work: UnitOfWork, user_id: Id, name: str, slug: str | None, icon: str | None
) -> Workspace:
    """A workspace with its owner, under the wanted slug or the first free one made of the name."""
    row_id = new_id()
    for candidate in [slug] if slug else _slugs(name, row_id):
        statement = (
            upsert(workspace)
            .values(
                id=row_id,
                name=name,
                slug=candidate,
                icon=icon,
                created_by_user_id=user_id,
                created_at=work.now,
                updated_at=work.now,
            )
            .on_conflict_do_nothing()
            .returning(workspace)
        )
        row = await work.first(statement, of=Workspace)
        if row is not None:
            await add_member(work, row_id, user_id, Role.OWNER)
            return row
    raise ConflictError(f"The slug {slug} is taken. Choose another, or leave it empty.")


def _slugs(name: str, row_id: Id) -> list[str]:
    """The slugs to try in turn; the last is free, for it carries the id."""
    slug = slug_from(name)
    free = f"{slug}-{row_id.hex[-12:]}"
    return [*(numbered(slug, number) for number in range(1, _NUMBERED)), free]


async def purge_workspace(work: UnitOfWork, workspace_id: Id, limit: int = MAX_ROWS) -> int:
    """Remove a workspace; returns the number of removed rows. Call it until that is 0."""
    return await purge(
        work, workspace, sa.select(workspace.c.id).where(workspace.c.id == workspace_id), limit
    )
