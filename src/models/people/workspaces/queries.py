"""Reading workspaces."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, ScalarSelect, Select, Subquery, and_, select

from models.core.access.rules import Principal, Role, Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.people.workspaces.rules import Plan
from models.people.workspaces.shapes import WorkspaceBody, WorkspaceEntry, WorkspaceList
from models.people.workspaces.tables import Workspace, workspace
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

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
    entries = [entry(row, principal, roles[row.id]) for row in shown.items]
    return WorkspaceList(workspaces=entries, cursor=shown.cursor)


async def get_workspace(
    work: UnitOfWork, principal: Principal, workspace_id: Id, role: Role
) -> WorkspaceEntry:
    """One workspace; raises NotFoundError."""
    rows = await _live(work, [workspace_id])
    if not rows:
        raise NotFoundError("workspace")
    return entry(rows[0], principal, role)


def workspace_name_of(workspace_id: ColumnElement[Any]) -> ScalarSelect[Any]:
    """The name of the workspace of a column of the enclosing statement."""
    return select(workspace.c.name).where(workspace.c.id == workspace_id).scalar_subquery()


async def plan_of(work: UnitOfWork, workspace_id: Id) -> Plan:
    """The plan of a workspace."""
    return Plan(await work.scalar(select(workspace.c.plan).where(workspace.c.id == workspace_id)))


def living_workspaces() -> Select[Id]:
    """The ids of the workspaces that were not deleted."""
    return select(workspace.c.id).where(workspace.c.deleted_at.is_(None))


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


def live_workspace_of(noun: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the workspace of a noun's rows, unless it was deleted.

    To be spread: `select(…).join(*live_workspace_of(noun))`.
    """
    live = and_(workspace.c.id == noun.c.workspace_id, workspace.c.deleted_at.is_(None))
    return workspace, live


def every_workspace() -> Subquery:
    """The ids of all workspaces, deleted ones too, to join what each of them has."""
    return select(workspace.c.id).subquery("workspace")


def _living(ids: Sequence[Id]) -> Select[Any]:
    return select(workspace).where(workspace.c.id.in_(ids), workspace.c.deleted_at.is_(None))


async def _live(work: UnitOfWork, ids: Sequence[Id]) -> Sequence[Workspace]:
    oldest_first = _living(ids).order_by(workspace.c.created_at, workspace.c.id)
    return await work.rows(oldest_first.limit(_MAX_LISTED), of=Workspace)
