"""Counting what a workspace holds and does."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from models.automation.automation_runs.queries import runs_since
from models.content.files.queries import file_sizes
from models.content.items.joins import ITEM, live_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.data.records.queries.records import live_records
from models.messages.webhook_endpoints.queries import deliveries_since, endpoints_of
from models.people.members.queries import members_of
from models.people.request_logs.queries import calls_since
from models.people.workspaces.queries import plan_of
from models.workspace.usage.shapes import Activity, Holdings, Usage
from runtime.database import UnitOfWork


async def get_usage(work: UnitOfWork, actor: Actor) -> Usage:
    """The plan and the counters of a workspace."""
    place, month = actor.workspace_id, month_of(work.now)
    kinds = live_items(place, ITEM.kind, func.count().label("count")).group_by(ITEM.kind)
    by_kind = {row.kind: row.count for row in await work.rows(kinds)}
    sizes = file_sizes(place).subquery()
    files = await work.first(
        select(func.count().label("count"), func.sum(sizes.c.byte_size).label("bytes")).select_from(
            sizes
        )
    )
    assert files is not None
    return Usage(
        plan=await plan_of(work, place),
        holds=Holdings(
            members=await _count(work, members_of(place)),
            items=sum(by_kind.values()),
            databases=by_kind.get(ItemKind.DATABASE, 0),
            records=await _count(work, live_records(place)),
            automations=by_kind.get(ItemKind.AUTOMATION, 0),
            files=files.count,
            file_bytes=int(files.bytes or 0),
            webhook_endpoints=await _count(work, endpoints_of(place)),
        ),
        this_month=Activity(
            since=month,
            automation_runs=await _count(work, runs_since(place, month)),
            api_calls=await _count(work, calls_since(place, month)),
            webhook_deliveries=await _count(work, deliveries_since(place, month)),
        ),
    )


def month_of(now: datetime) -> datetime:
    """The begin of a moment's month in UTC."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


async def _count(work: UnitOfWork, rows: Select[Any]) -> int:
    return int(await work.scalar(select(func.count()).select_from(rows.subquery())))
