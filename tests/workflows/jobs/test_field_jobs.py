"""Fields converted and removed by running workers, as the API's callers see it."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from models.data.fields.tables import removed_field
from models.data.records import bulk
from tests.support.client import Client
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space


async def things(client: Client, space: Space, *values: str) -> tuple[Any, list[str]]:
    """A text field and the records that hold these values in it."""
    body = {"label": "Things", "fields": [{"label": "Note", "kind": "text"}]}
    made = (await client.post(f"{space.path}/databases", json=body)).json()["data"]
    path = f"/v1/databases/{made['id']}/records"
    answers = [await client.post(path, json={"data": {"note": value}}) for value in values]
    return made["fields"][1], [answer.json()["data"]["id"] for answer in answers]


async def test_a_conversion_answers_with_the_field_it_made(
    engine: Engine, client: Client, space: Space
) -> None:
    del engine
    field, ids = await things(client, space, "1", "two", "3")
    path = f"/v1/databases/{field['databaseId']}/fields/{field['id']}"
    answer = await client.post(f"{path}/convert", json={"kind": "number"})
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert (data["field"]["kind"], data["converted"], data["lost"]) == ("number", 2, 1)
    records = [(await client.get(f"/v1/records/{id_}")).json()["data"] for id_ in ids]
    assert [one["data"].get("note") for one in records] == [1, None, 3]
    (created,) = (await client.get(f"/v1/records/{ids[1]}/history")).json()["data"]["changes"]
    assert created["after"] == {"title": "", "note": "two"}
    back = await client.post(f"{path}/convert", json={"kind": "select"})
    assert [each["key"] for each in back.json()["data"]["field"]["options"]] == [
        "option_1",
        "option_3",
    ]


@pytest.mark.long
async def test_writers_and_conversions_at_once_leave_values_of_one_kind(
    engine: Engine, client: Client, space: Space
) -> None:
    del engine
    field, ids = await things(client, space, *(str(number) for number in range(20)))
    path = f"/v1/databases/{field['databaseId']}/fields/{field['id']}"

    async def write(id_: str) -> int:
        for number in range(10):
            value: Any = str(number)
            answer = await client.patch(f"/v1/records/{id_}", json={"data": {"note": value}})
            if answer.status_code == 400:
                value = number
                answer = await client.patch(f"/v1/records/{id_}", json={"data": {"note": value}})
            assert answer.status_code == 200, answer.text
        return number

    converting = client.post(f"{path}/convert", json={"kind": "number"})
    converted, _ = await asyncio.gather(converting, asyncio.gather(*map(write, ids)))
    assert converted.status_code == 200, converted.text
    records = [(await client.get(f"/v1/records/{id_}")).json()["data"] for id_ in ids]
    assert [one["data"]["note"] for one in records] == [9] * 20


async def test_the_values_of_a_removed_field_are_removed(
    engine: Engine, client: Client, space: Space, monkeypatch: Any
) -> None:
    del engine
    monkeypatch.setattr(bulk, "MAX_RECORDS", 2)
    field, _ = await things(client, space, *"abcde")
    path = f"/v1/databases/{field['databaseId']}/fields"
    assert (await client.delete(f"{path}/{field['id']}")).status_code == 200

    async def free() -> bool:
        async with space.database.transaction() as work:
            row = select(removed_field.c.id).where(removed_field.c.workspace_id == space.id)
            return await work.first(row) is None

    await eventually(free)
    again = await client.post(path, json={"label": "Note", "kind": "number", "key": "note"})
    assert again.status_code == 201
