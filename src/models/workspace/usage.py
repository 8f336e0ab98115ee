"""The holdings and activity of a workspace, as its plan is talked about."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.queries import runs_since
from models.content.files.queries import file_sizes
from models.content.items.joins import ITEM, live_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, Moment, Shape
from models.data.records.queries import number_of_records
from models.messages.webhook_endpoints.store import deliveries_since, endpoints_of
from models.people.api_keys import keys_of
from models.people.invitations import invitations_of
from models.people.members import members_of
from models.people.request_logs import calls_since
from models.people.workspaces import Plan, every_workspace, plan_of
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, table_of


class UsageTotal(SQLModel, table=True):
    """The rows of one counter that a workspace made from the begin of `month` to `counted_until`.

    Rows made later are counted when the counter is read.

    Rows that can no longer change are counted once, and kept as such totals. A read adds the rows
    since, so that it costs as much at the end of a month as at its begin.
    """

    __tablename__ = "usage_total"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_usage_total_counted_until", "counted_until"),
    )

    workspace_id: Id = Field(primary_key=True)
    counter: str = Field(primary_key=True)
    month: datetime = Field(sa_type=Timestamp)
    number: int = Field(sa_type=sa.BigInteger)
    counted_until: datetime = Field(sa_type=Timestamp)


usage_total = table_of(UsageTotal)


class Holdings(Shape):
    """The current contents of a workspace, without the trash."""

    members: int
    items: int
    databases: int
    records: int
    automations: int
    files: int
    file_bytes: int
    webhook_endpoints: int


class Activity(Shape):
    """The activity of a workspace since `since`, the start of this month in UTC.

    API calls are counted as far back as they are logged, and show up within a second.
    """

    since: Moment
    automation_runs: int
    api_calls: int
    webhook_deliveries: int


class Usage(Shape):
    """The plan of a workspace and its counters. A plan is a name: none sets a limit."""

    plan: Plan
    holds: Holdings
    this_month: Activity


async def get_usage(work: UnitOfWork, actor: Actor) -> Usage:
    """The plan and the counters of a workspace."""
    place = actor.workspace_id
    kinds = live_items(place, ITEM.kind, sa.func.count().label("count")).group_by(ITEM.kind)
    by_kind = {row.kind: row.count for row in await work.rows(kinds)}
    sizes = file_sizes(place).subquery()
    files = await work.first(
        sa.select(
            sa.func.count().label("count"), sa.func.sum(sizes.c.byte_size).label("bytes")
        ).select_from(sizes)
    )
    assert files is not None
    this_month = await month_totals(work, place)
    return Usage(
        plan=await plan_of(work, place),
        holds=Holdings(
            members=await _count(work, members_of(place)),
            items=sum(by_kind.values()),
            databases=by_kind.get(ItemKind.DATABASE, 0),
            records=await work.scalar(number_of_records(place)),
            automations=by_kind.get(ItemKind.AUTOMATION, 0),
            files=files.count,
            file_bytes=int(files.bytes or 0),
            webhook_endpoints=await _count(work, endpoints_of(place)),
        ),
        this_month=Activity(
            since=month_of(work.now),
            automation_runs=this_month[UsageCounter.AUTOMATION_RUNS],
            api_calls=this_month[UsageCounter.API_CALLS],
            webhook_deliveries=this_month[UsageCounter.WEBHOOK_DELIVERIES],
        ),
    )


async def _count(work: UnitOfWork, rows: sa.Select[Any]) -> int:
    return int(await work.scalar(sa.select(sa.func.count()).select_from(rows.subquery())))


class FirstStep(StrEnum):
    """The steps by which a new workspace is set up, in this order."""

    TABLE = "table"
    AUTOMATION = "automation"
    RUN = "run"
    INVITATION = "invitation"
    API_KEY = "api_key"


async def steps_done(work: UnitOfWork, workspace_id: Id) -> Collection[FirstStep]:
    """The first steps that members of a workspace have finished."""
    items = live_items(workspace_id, ITEM.id)
    other_members = members_of(workspace_id).offset(1)
    ever = datetime.min.replace(tzinfo=UTC)
    conditions: Mapping[FirstStep, sa.ColumnElement[bool]] = {
        FirstStep.TABLE: sa.exists(items.where(ITEM.kind == ItemKind.DATABASE)),
        FirstStep.AUTOMATION: sa.exists(items.where(ITEM.kind == ItemKind.AUTOMATION)),
        FirstStep.RUN: sa.exists(runs_since(workspace_id, ever)),
        FirstStep.INVITATION: sa.or_(
            sa.exists(other_members), sa.exists(invitations_of(workspace_id))
        ),
        FirstStep.API_KEY: sa.exists(keys_of(workspace_id)),
    }
    columns = [condition.label(step.value) for step, condition in conditions.items()]
    row = await work.first(sa.select(*columns))
    assert row is not None, "a select without a table has one row"
    return [step for step in conditions if getattr(row, step.value)]


SETTLED_AFTER = timedelta(minutes=10)
"""Rows older than this are all committed: no transaction takes nearly as long."""
COUNTED_EVERY = timedelta(minutes=10)
WORKSPACES_AT_ONCE = 100


class UsageCounter(StrEnum):
    AUTOMATION_RUNS = "automation_runs"
    API_CALLS = "api_calls"
    WEBHOOK_DELIVERIES = "webhook_deliveries"


RowsSince = Callable[[Id, datetime, datetime | None], sa.Select[Any]]
_ROWS: Mapping[UsageCounter, RowsSince] = {
    UsageCounter.AUTOMATION_RUNS: runs_since,
    UsageCounter.API_CALLS: calls_since,
    UsageCounter.WEBHOOK_DELIVERIES: deliveries_since,
}


def month_of(now: datetime) -> datetime:
    """The begin of a moment's month in UTC."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


async def month_totals(work: UnitOfWork, workspace_id: Id) -> dict[UsageCounter, int]:
    """Count what a workspace made this month, by counter."""
    kept = await _kept(work, workspace_id)
    month = month_of(work.now)
    return {
        counter: number + await _count(work, rows(workspace_id, since, None))
        for counter, rows in _ROWS.items()
        for number, since in [_settled(kept.get(counter), month)]
    }


async def settle_totals(work: UnitOfWork) -> int:
    """Bring the totals of some workspaces up to date, the longest uncounted first.

    Returns their number; repeat until 0.
    """
    until = work.now - SETTLED_AFTER
    workspace = every_workspace()
    due = (
        sa.select(workspace.c.id)
        .outerjoin(
            usage_total,
            (usage_total.c.workspace_id == workspace.c.id)
            & (usage_total.c.counter == UsageCounter.API_CALLS),
        )
        .where(
            sa.or_(
                usage_total.c.counted_until.is_(None),
                usage_total.c.counted_until < until - COUNTED_EVERY,
            )
        )
        .order_by(usage_total.c.counted_until.nulls_first(), workspace.c.id)
        .limit(WORKSPACES_AT_ONCE)
    )
    workspace_ids = [row.id for row in await work.rows(due)]
    for workspace_id in workspace_ids:
        await _settle(work, workspace_id, until)
    return len(workspace_ids)


async def _settle(work: UnitOfWork, workspace_id: Id, until: datetime) -> None:
    kept, month = await _kept(work, workspace_id), month_of(until)
    values = []
    for counter, rows in _ROWS.items():
        number, since = _settled(kept.get(counter), month)
        number += await _count(work, rows(workspace_id, since, until))
        values.append(
            {
                "workspace_id": workspace_id,
                "counter": counter.value,
                "month": month,
                "number": number,
                "counted_until": until,
            }
        )
    statement = insert(usage_total).values(values)
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "counter"],
            set_={name: statement.excluded[name] for name in ("month", "number", "counted_until")},
            # Of two sweeps at once the later one counted on from what it read.
            where=usage_total.c.counted_until < statement.excluded.counted_until,
        )
    )


async def _kept(work: UnitOfWork, workspace_id: Id) -> dict[str, UsageTotal]:
    rows = await work.rows(
        sa.select(usage_total).where(usage_total.c.workspace_id == workspace_id), of=UsageTotal
    )
    return {row.counter: row for row in rows}


def _settled(kept: UsageTotal | None, month: datetime) -> tuple[int, datetime]:
    """The number that is counted of a month already, and the moment from which it is not."""
    return (0, month) if kept is None or kept.month != month else (kept.number, kept.counted_until)
