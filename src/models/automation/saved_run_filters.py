"""Saved filters of lists of runs: of one member, or shared in a workspace."""

from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.filters import WorkspaceRunQuery, check_filter
from models.automation.automations.queries import open_automations
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Deleted, Id, Input, JsonObject, Label, Moment, Shape, example
from models.core.openapi import documented_as
from models.core.pagination import Listed, PageRequest
from models.core.repository import Bound, Repository
from runtime.database import UnitOfWork, columns_of
from runtime.errors import DeniedError
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of


class SavedRunFilter(SQLModel, table=True):
    """A filter under a name; without `owner_user_id` it is shared.

    It goes with the membership of its owner, and with the automation that it names.
    """

    __tablename__ = "saved_run_filter"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("owner_user_id", "workspace_member.user_id", ondelete="CASCADE"),
        same_workspace("automation_id", "automation.id", ondelete="CASCADE"),
        sa.Index("ix_saved_run_filter_workspace_id", "workspace_id", "owner_user_id"),
        partial_index(
            "ix_saved_run_filter_automation_id", "automation_id", where="automation_id IS NOT NULL"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    owner_user_id: Id | None = None
    automation_id: Id | None = None
    label: str
    query: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


saved_run_filter = table_of(SavedRunFilter)


class CreateRunFilter(Input):
    """Body of create run filter: the parameters of a list of runs, under a name."""

    model_config = example(
        {"label": "Declined cards", "query": {"status": "failed", "errorCode": "declined"}}
    )

    label: Label
    query: WorkspaceRunQuery
    shared: bool = False


class UpdateRunFilter(Input):
    """Body of update run filter; a key that is left out stays as it is."""

    model_config = example({"label": "Declined cards"})

    label: Label | None = None
    query: WorkspaceRunQuery | None = None


class RunFilterShape(Shape):
    """A saved filter; `query` has the parameters of the list."""

    id: Id
    workspace_id: Id
    label: str
    shared: bool
    query: Annotated[JsonObject, documented_as("WorkspaceRunQuery")]
    created_at: Moment
    updated_at: Moment


class RunFilterList(Listed):
    """The saved filters that the caller sees, by name."""

    filters: list[RunFilterShape]


_filter = saved_run_filter.c


def _sees(actor: Actor) -> tuple[sa.ColumnElement[bool], ...]:
    """Shared ones and the caller's own, but none about an automation that is closed to them."""
    open_to_all = _filter.automation_id.is_(None)
    return (
        sa.or_(_filter.owner_user_id.is_(None), _filter.owner_user_id == actor.user_id),
        sa.or_(open_to_all, _filter.automation_id.in_(open_automations(actor, Level.VIEW))),
    )


FILTERS = Repository(
    "filter",
    saved_run_filter,
    SavedRunFilter,
    _sees,
    Bound(saved_run_filter, 100, "saved filters", by=("workspace_id", "owner_user_id")),
    order=("label", "id"),
)
"""A workspace has 100 shared ones, and each member as many."""


async def list_filters(work: UnitOfWork, actor: Actor, page: PageRequest) -> RunFilterList:
    """The saved filters that the caller sees, by name."""
    return RunFilterList.of(await FILTERS.page(work, actor, page), shape_of)


def shape_of(row: SavedRunFilter) -> RunFilterShape:
    """A saved filter on the wire."""
    return RunFilterShape.model_validate({**columns_of(row), "shared": row.owner_user_id is None})


async def create_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: CreateRunFilter
) -> RunFilterShape:
    """Save a filter, of the caller alone or shared.

    Raises ConflictError when there are too many, and DeniedError for a shared one of a caller who
    may not write automations.
    """
    if body.shared:
        _require_write(actor)
    values = {
        "owner_user_id": None if body.shared else actor.user_id,
        "label": body.label,
        **await _query_columns(work, actor, body.query),
    }
    return shape_of(await FILTERS.add(work, actor, filter_id, values))


async def update_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: UpdateRunFilter
) -> RunFilterShape:
    """Give a filter another name or other parameters. Raises NotFoundError and DeniedError."""
    await _require_change(work, actor, filter_id)
    values: JsonObject = {} if body.label is None else {"label": body.label}
    if body.query is not None:
        values |= await _query_columns(work, actor, body.query)
    return shape_of(await FILTERS.change(work, actor, filter_id, values))


async def delete_filter(work: UnitOfWork, actor: Actor, filter_id: Id) -> Deleted:
    """Delete a filter. Raises NotFoundError and DeniedError."""
    await _require_change(work, actor, filter_id)
    return await FILTERS.delete(work, actor, filter_id)


async def _query_columns(work: UnitOfWork, actor: Actor, query: WorkspaceRunQuery) -> JsonObject:
    await check_filter(work, actor, query)
    return {"query": query.wire, "automation_id": query.automation_id}


async def _require_change(work: UnitOfWork, actor: Actor, filter_id: Id) -> None:
    if (await FILTERS.find(work, actor, filter_id)).owner_user_id is None:
        _require_write(actor)


def _require_write(actor: Actor) -> None:
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        raise DeniedError(f"A shared filter needs the scope {Scope.AUTOMATIONS_WRITE}.")
