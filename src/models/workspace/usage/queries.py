"""Counting what a workspace holds and does."""

from typing import Any

from sqlalchemy import Select, func, select

from models.content.files.queries import file_sizes
from models.content.items.joins import ITEM, live_items
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.data.records.counts import number_of_records
from models.messages.webhook_endpoints.queries import endpoints_of
from models.people.members.queries import members_of
from models.people.workspaces.queries import plan_of
from models.workspace.usage.shapes import Activity, Holdings, Usage
from models.workspace.usage.totals import UsageCounter, month_of, month_totals
from runtime.database import UnitOfWork


async def get_usage(work: UnitOfWork, actor: Actor) -> Usage:
    """The plan and the counters of a workspace."""
    place = actor.workspace_id
    kinds = live_items(place, ITEM.kind, func.count().label("count")).group_by(ITEM.kind)
    by_kind = {row.kind: row.count for row in await work.rows(kinds)}
    sizes = file_sizes(place).subquery()
    files = await work.first(
        select(func.count().label("count"), func.sum(sizes.c.byte_size).label("bytes")).select_from(
            sizes
        )
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


async def _count(work: UnitOfWork, rows: Select[Any]) -> int:
    return int(await work.scalar(select(func.count()).select_from(rows.subquery())))
