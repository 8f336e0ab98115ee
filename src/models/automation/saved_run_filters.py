"""Saved filters of lists of runs: of one member, or shared in a workspace."""

from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import (
    ForeignKeyConstraint,
    Index,
    Select,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.filters import WorkspaceRunQuery, check_filter
from models.automation.automations.queries import open_automations
from models.core.access.rules import Actor, Level, Scope
from models.core.base import Deleted, Id, Input, JsonObject, Label, Moment, Nullable, Shape, example
from models.core.bounds import bounded
from models.core.openapi import documented_as
from models.core.pagination import PageRequest
from runtime.database import UnitOfWork
from runtime.errors import DeniedError
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of


class SavedRunFilter(SQLModel, table=True):
    """A filter under a name; without `owner_user_id` it is shared.

    It goes with the membership of its owner, and with the automation that it names.
    """

    __tablename__ = "saved_run_filter"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        same_workspace("owner_user_id", "workspace_member.user_id", ondelete="CASCADE"),
        same_workspace("automation_id", "automation.id", ondelete="CASCADE"),
        Index("ix_saved_run_filter_workspace_id", "workspace_id", "owner_user_id"),
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

MAX_FILTERS = 100
"""Shared ones of a workspace, and as many of each member."""


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


class RunFilterList(Shape):
    """The saved filters that the caller sees, by name."""

    filters: list[RunFilterShape]
    cursor: Nullable[str]


_filter = saved_run_filter.c


async def list_filters(work: UnitOfWork, actor: Actor, page: PageRequest) -> RunFilterList:
    """The saved filters that the caller sees, by name."""
    order = (_filter.label, _filter.id)
    listed = await page.ascending(work, visible(actor), *order, of=SavedRunFilter)
    return RunFilterList(filters=[shape_of(row) for row in listed.items], cursor=listed.cursor)


def visible(actor: Actor) -> Select[Any]:
    """The rows that the caller sees: none about an automation that is closed to them."""
    return select(saved_run_filter).where(
        _filter.workspace_id == actor.workspace_id,
        or_(_filter.owner_user_id.is_(None), _filter.owner_user_id == actor.user_id),
        or_(
            _filter.automation_id.is_(None),
            _filter.automation_id.in_(open_automations(actor, Level.VIEW)),
        ),
    )


def shape_of(row: SavedRunFilter) -> RunFilterShape:
    """A saved filter on the wire."""
    return RunFilterShape(
        id=row.id,
        workspace_id=row.workspace_id,
        label=row.label,
        shared=row.owner_user_id is None,
        query=row.query,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


async def create_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: CreateRunFilter
) -> RunFilterShape:
    """Save a filter, of the caller alone or shared.

    Raises ConflictError when there are too many, and DeniedError for a shared one of a caller who
    may not write automations.
    """
    owner = None if body.shared else actor.user_id
    if body.shared:
        _require_write(actor)
    await check_filter(work, actor, body.query)
    async with bounded(
        work,
        saved_run_filter,
        _filter.workspace_id == actor.workspace_id,
        _filter.owner_user_id.is_not_distinct_from(owner),
        owner=f"{actor.workspace_id}/{owner}",
        most=MAX_FILTERS,
        refusal=f"The limit of {MAX_FILTERS} saved filters is reached; delete some first.",
    ):
        await work.execute(
            insert(saved_run_filter).values(
                id=filter_id,
                workspace_id=actor.workspace_id,
                owner_user_id=owner,
                automation_id=body.query.automation_id,
                label=body.label,
                query=body.query.wire,
                created_at=work.now,
                updated_at=work.now,
            )
        )
    return shape_of(await _load(work, actor, filter_id))


async def update_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: UpdateRunFilter
) -> RunFilterShape:
    """Give a filter another name or other parameters. Raises NotFoundError and DeniedError."""
    await _changeable(work, actor, filter_id)
    values: dict[str, Any] = {"updated_at": work.now}
    if body.label is not None:
        values["label"] = body.label
    if body.query is not None:
        await check_filter(work, actor, body.query)
        values |= {"query": body.query.wire, "automation_id": body.query.automation_id}
    await work.execute(update(saved_run_filter).where(*_this(actor, filter_id)).values(values))
    return shape_of(await _load(work, actor, filter_id))


async def delete_filter(work: UnitOfWork, actor: Actor, filter_id: Id) -> Deleted:
    """Delete a filter. Raises NotFoundError and DeniedError."""
    await _changeable(work, actor, filter_id)
    await work.execute(delete(saved_run_filter).where(*_this(actor, filter_id)))
    return Deleted(id=filter_id)


async def _changeable(work: UnitOfWork, actor: Actor, filter_id: Id) -> None:
    row = await _load(work, actor, filter_id)
    if row.owner_user_id is None:
        _require_write(actor)


async def _load(work: UnitOfWork, actor: Actor, filter_id: Id) -> SavedRunFilter:
    return await work.one(
        visible(actor).where(_filter.id == filter_id), "filter", of=SavedRunFilter
    )


def _this(actor: Actor, filter_id: Id) -> tuple[Any, ...]:
    return _filter.workspace_id == actor.workspace_id, _filter.id == filter_id


def _require_write(actor: Actor) -> None:
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        raise DeniedError(f"A shared filter needs the scope {Scope.AUTOMATIONS_WRITE}.")
