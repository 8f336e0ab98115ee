"""An import of more rows than are written together: to others it is one write."""

from collections import Counter

import pytest
from sqlalchemy import select

from activities.sources.reading_process import BATCH
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.tables import record
from models.messages.workspace_events.log import workspace_event
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.spaces import Space

ROWS = BATCH + 10


@pytest.mark.long
async def test_the_rows_of_all_batches_have_a_history_and_one_event(
    client: Client, space: Space, engine: Engine
) -> None:
    assert engine.database is space.database
    lines = "".join(f"Row {number},{number}\n" for number in range(ROWS))
    answer = await client.post(
        f"{space.path}/data-sources/import-spreadsheet",
        json={
            "label": "Many",
            "kind": "inline",
            "format": "csv",
            "text": f"name,place\n{lines}",
            "fields": [],
        },
    )
    assert answer.status_code == 200, answer.text
    result = answer.json()["data"]
    assert result["recordCount"] == ROWS
    database_id, told_type = result["databaseId"], workspace_event.c.type
    place = record.c.data["place"].as_integer().label("place")
    records = select(record.c.id, place).where(record.c.database_id == database_id)
    told = CHANGES_WITH_CREATIONS.c.after["place"].as_integer()
    changes = select(CHANGES_WITH_CREATIONS.c.record_id, CHANGES_WITH_CREATIONS.c.kind, told).where(
        CHANGES_WITH_CREATIONS.c.database_id == database_id
    )
    async with space.database.transaction() as work:
        # Statistics gathered while the import wrote know no row of it: a join of the two by
        # PostgreSQL may then compare each with each.
        rows = await work.rows(records.order_by(record.c.id))
        history = await work.rows(changes.order_by(CHANGES_WITH_CREATIONS.c.record_id))
        events = await work.rows(
            select(told_type, workspace_event.c.data).where(
                workspace_event.c.workspace_id == space.id, told_type.like("record.%")
            )
        )
    assert [row.place for row in rows] == list(range(ROWS))
    assert [tuple(row) for row in history] == [(row.id, "created", row.place) for row in rows]
    assert Counter(row.type for row in events) == {"record.created": 1}
    assert events[0].data == {
        "databaseId": result["databaseId"],
        "runId": result["importId"],
        "count": ROWS,
    }
