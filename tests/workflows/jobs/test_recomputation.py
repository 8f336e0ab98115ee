"""Values that many records follow from, computed by running workers soon after the write."""

from typing import Any

import pytest
from sqlalchemy import func, select

from models.data.records.tables import record
from models.messages.jobs.store import job
from tests.models.data.records.test_computed import LINE, fill, lookup
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.related import add, add_field, change, make_database, relate
from tests.support.spaces import Space

pytestmark = pytest.mark.long


async def test_values_of_many_dependent_records_are_recomputed_soon(
    engine: Engine, client: Client, space: Space
) -> None:
    del engine
    orders = await make_database(client, space, "Orders", {"label": "Factor", "kind": "number"})
    lines = await make_database(client, space, "Lines", *LINE)
    await relate(client, lines, orders, "Order", cardinality="one", inverseLabel="Lines")
    await lookup(client, lines, "Factors", "order", "factor")
    await add_field(
        client, lines, "Count", "formula", settings={"expression": "record.factors.size()"}
    )
    order = await add(client, orders)
    await fill(space, lines, order, 1_500)
    await change(client, order, data={"factor": 5})

    async def count(*conditions: Any) -> int:
        async with space.database.transaction() as work:
            found = select(func.count()).where(record.c.workspace_id == space.id, *conditions)
            return int(await work.scalar(found))

    async def right() -> bool:
        computed = record.c.computed.contains({"factors": [5], "count": 1})
        return await count(computed) == 1_500

    await eventually(right)
    async with space.database.transaction() as work:
        states = await work.rows(select(job.c.status).where(job.c.workspace_id == space.id))
    assert {state.status for state in states} <= {"running", "succeeded"}
