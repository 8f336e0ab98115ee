"""An import of more rows than are written together: to others it is one write."""

from collections import Counter

from sqlalchemy import func, select

from activities.sources.reading_process import BATCH
from models.data.records.queries.creations import CHANGES
from models.data.records.tables import record
from models.messages.workspace_events.tables import workspace_event
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.spaces import Space

ROWS = BATCH + 10


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
    change, own = CHANGES.c, record.c.database_id == result["databaseId"]
    place = record.c.data["place"].as_integer()
    pairs = select(place, change.kind, change.after["place"].as_integer().label("told"))
    told_type = workspace_event.c.type
    async with space.database.transaction() as work:
        rows = await work.rows(
            pairs.join(CHANGES, change.record_id == record.c.id).where(own).order_by(record.c.id)
        )
        counted = await work.scalar(select(func.count()).select_from(record).where(own))
        events = await work.rows(
            select(told_type, workspace_event.c.data).where(
                workspace_event.c.workspace_id == space.id, told_type.like("record.%")
            )
        )
    assert counted == ROWS
    assert [tuple(row) for row in rows] == [(at, "created", at) for at in range(ROWS)]
    assert Counter(row.type for row in events) == {"record.created": 1}
    assert events[0].data == {
        "databaseId": result["databaseId"],
        "runId": result["importId"],
        "count": ROWS,
    }
