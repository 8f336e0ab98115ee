"""Converting fields and removing their values: whole or not at all, under concurrent changes and
failures.
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, text

from activities.jobs.records import FieldConversion, FieldRemoval
from activities.jobs.transactions import JobActivities
from models.core.access.rules import Role
from models.core.base import Id
from models.data.databases import field_conversion
from models.data.databases.field_conversion import conversion_value
from models.data.fields.commands import own_schema, share_schema
from models.data.fields.tables import removed_field
from models.data.records import bulk
from models.data.records.commands import create_record, update_record
from models.data.records.shapes import CreateRecord, UpdateRecord
from models.data.records.tables import record
from models.messages.jobs.store import job
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]
TEXT = {"label": "Note", "kind": "text"}


class Things:
    """A database with records whose `note` holds these values."""

    def __init__(self, client: Client, space: Space, made: Json, ids: Sequence[str]) -> None:
        self.client = client
        self.space = space
        self.made = made
        self.ids = ids
        self.jobs = JobActivities(
            space.database,
            {
                WorkflowKind.FIELD_CONVERSION: FieldConversion(),
                WorkflowKind.FIELD_REMOVAL: FieldRemoval(),
            },
        )

    @classmethod
    async def of(
        cls, client: Client, space: Space, values: Sequence[Any], *fields: Json, field: Json = TEXT
    ) -> "Things":
        body = {"label": "Things", "fields": [field, *fields]}
        made = (await client.post(f"{space.path}/databases", json=body)).json()["data"]
        ids = []
        for value in values:
            data = {} if value is None else {"note": value}
            answer = await client.post(f"/v1/databases/{made['id']}/records", json={"data": data})
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["data"]["id"])
        return cls(client, space, made, ids)

    @property
    def path(self) -> str:
        field = next(each for each in self.made["fields"] if each["key"] == "note")
        return f"/v1/databases/{self.made['id']}/fields/{field['id']}"

    async def field(self, key: str = "note") -> Json:
        answer = await self.client.get(f"{self.space.path}/databases/{self.made['id']}")
        fields: list[Json] = answer.json()["data"]["fields"]
        return next(each for each in fields if each["key"] == key)

    async def values(self) -> list[Any]:
        answers = [await self.client.get(f"/v1/records/{id_}") for id_ in self.ids]
        return [answer.json()["data"]["data"].get("note") for answer in answers]

    async def preview(self, **body: Any) -> Json:
        answer = await self.client.post(f"{self.path}/convert", json={**body, "preview": True})
        assert answer.status_code == 200, answer.text
        data: Json = answer.json()["data"]
        return data

    async def accept(self, monkeypatch: pytest.MonkeyPatch, **body: Any) -> str:
        """Ask for a conversion without waiting for it; gives the job's id."""
        monkeypatch.setattr("api.routers.data.databases.CONVERSION_SECONDS", 0)
        headers = {"Idempotency-Key": uuid4().hex}
        answer = await self.client.post(f"{self.path}/convert", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (409, "in_progress"), answer.text
        async with self.space.database.transaction() as work:
            row = await work.first(
                select(job.c.id)
                .where(job.c.workspace_id == self.space.id)
                .order_by(job.c.id.desc())
                .limit(1)
            )
        assert row is not None
        return str(row.id)

    async def finish(self, job_id: str) -> str:
        while (outcome := await self.jobs.advance_job(job_id)) == "more":
            pass
        if outcome == "failed":
            while await self.jobs.undo_job(job_id, "failed") == "more":
                pass
        return outcome

    async def staged(self) -> int:
        async with self.space.database.transaction() as work:
            count: int = await work.scalar(
                select(func.count()).where(conversion_value.c.workspace_id == self.space.id)
            )
        return count

    async def job(self, job_id: str) -> Any:
        async with self.space.database.transaction() as work:
            return await work.first(select(job).where(job.c.id == job_id))


async def test_a_preview_changes_nothing(client: Client, space: Space) -> None:
    things = await Things.of(client, space, ["1", "two", None, "3.50"])
    before = await things.field()
    found = await things.preview(kind="number", settings={"precision": 1})
    assert {name: found[name] for name in ("total", "examined", "convertible", "lost")} == {
        "total": 3,
        "examined": 3,
        "convertible": 2,
        "lost": 1,
    }
    assert found["samples"] == [
        {"recordId": things.ids[1], "from": "two", "to": None},
        {"recordId": things.ids[0], "from": "1", "to": 1},
        {"recordId": things.ids[3], "from": "3.50", "to": 3.5},
    ]
    assert found["field"] == {**before, "kind": "number", "settings": {"precision": 1}}
    assert await things.field() == before
    assert await things.values() == ["1", "two", None, "3.50"]


async def test_a_preview_shows_the_options_that_would_be(client: Client, space: Space) -> None:
    things = await Things.of(client, space, ["Red", "blue", "red"])
    grown = await things.preview(kind="select")
    assert [each["name"] for each in grown["field"]["options"]] == ["Red", "blue"]
    assert grown["lost"] == 0
    fixed = await things.preview(kind="select", options=[{"name": "Blue"}])
    assert [each["key"] for each in fixed["field"]["options"]] == ["blue"]
    assert (fixed["convertible"], fixed["lost"]) == (1, 2)


async def test_nothing_is_seen_until_all_is_converted(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_conversion, "CHUNK", 2)
    monkeypatch.setattr("models.data.databases.field_conversion.CHUNK", 2)
    monkeypatch.setattr(field_conversion, "APPLY_BATCH", 2)
    values = [str(number) for number in range(5)] + ["x", None]
    things = await Things.of(client, space, values, field={**TEXT, "defaultValue": "7"})
    values[-1] = "7"
    job_id = await things.accept(monkeypatch, kind="number")
    steps = 0
    while await things.jobs.advance_job(job_id) == "more":
        steps += 1
        assert await things.values() == values
        assert (await things.field())["kind"] == "text"
    assert steps == 4
    field = await things.field()
    assert (field["kind"], field["defaultValue"]) == ("number", "7")
    assert await things.values() == [0, 1, 2, 3, 4, None, 7]
    assert (await things.job(job_id)).result == {"converted": 6, "lost": 1}
    assert await things.staged() == 0


async def test_writers_meanwhile_are_heard(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_conversion, "CHUNK", 3)
    monkeypatch.setattr("models.data.databases.field_conversion.CHUNK", 3)
    things = await Things.of(client, space, ["1", "2", "3", "4"])
    job_id = await things.accept(monkeypatch, kind="number")
    while not (await things.job(job_id)).progress.get("read"):
        assert await things.jobs.advance_job(job_id) == "more"
    changes = [{"note": "10"}, {"note": None}, {"title": "only"}]
    for id_, data in zip(things.ids, changes, strict=False):
        answer = await client.patch(f"/v1/records/{id_}", json={"data": data})
        assert answer.status_code == 200, answer.text
    path = f"/v1/databases/{things.made['id']}/records"
    for value in ("5", "6"):
        new = await client.post(path, json={"data": {"note": value}})
        things.ids = [*things.ids, new.json()["data"]["id"]]
    assert await things.jobs.advance_job(job_id) == "more", "one chunk to catch up with"
    assert await things.finish(job_id) == "done"
    assert await things.values() == [10, None, 3, 4, 5, 6]
    assert (await things.job(job_id)).result == {"converted": 5, "lost": 0}


async def test_the_last_step_waits_for_writers(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1"])
    job_id = await things.accept(monkeypatch, kind="number")
    assert await things.jobs.advance_job(job_id) == "more"
    async with space.database.transaction() as work:
        things.ids = [*things.ids, await _write(work, things, "2")]
        finishing = asyncio.create_task(things.finish(job_id))
        assert await _waits(finishing)
    assert await finishing == "done"
    assert await things.values() == [1, 2]


async def test_writers_do_not_wait_long_for_the_last_step(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1"])
    monkeypatch.setattr("models.data.fields.commands.LOCK_WAIT", "50ms")
    records = f"/v1/databases/{things.made['id']}/records"
    async with space.database.transaction() as work:
        await own_schema(work, Id(things.made["id"]))
        answers = [
            await client.patch(f"/v1/records/{things.ids[0]}", json={"data": {"note": "2"}}),
            await client.post(records, json={"data": {"note": "3"}}),
        ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]) == (409, "in_progress"), answer.text
        assert answer.headers["retry-after"] == "2"
        assert "fields of this database are being changed" in answer.json()["message"]
    assert await things.values() == ["1"]
    changed = await client.patch(f"/v1/records/{things.ids[0]}", json={"data": {"note": "2"}})
    assert changed.status_code == 200


async def test_the_planner_knows_what_is_staged_before_it_is_applied(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1", "2", "3"])
    job_id = await things.accept(monkeypatch, kind="number")
    assert await things.jobs.advance_job(job_id) == "more"
    assert (await things.job(job_id)).progress["read"]
    async with space.database.transaction() as work:
        known = await work.scalar(
            text("SELECT reltuples FROM pg_class WHERE oid = 'field_conversion_value'::regclass")
        )
        assert known == await work.scalar(select(func.count()).select_from(conversion_value))
    assert await things.finish(job_id) == "done"


async def test_a_removal_waits_for_writers(client: Client, space: Space) -> None:
    things = await Things.of(client, space, ["1"])
    async with space.database.transaction() as work:
        await share_schema(work, Id(things.made["id"]))
        removing = asyncio.create_task(client.delete(things.path))
        assert await _waits(removing)
        body = UpdateRecord.model_validate({"data": {"note": "2"}})
        await update_record(work, space.actor, Id(things.ids[0]), body)
    assert (await removing).status_code == 200
    assert await _left(space) == (0, 0)


async def _write(work: UnitOfWork, things: Things, value: str) -> str:
    """A record whose transaction has not ended."""
    body = CreateRecord.model_validate({"data": {"note": value}})
    database_id = Id(things.made["id"])
    return str((await create_record(work, things.space.actor, database_id, body)).id)


async def _waits(task: asyncio.Task[Any]) -> bool:
    done, _ = await asyncio.wait([task], timeout=0.5)
    return not done


async def test_records_in_the_trash_are_converted_and_not_counted(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1", "2"])
    await client.delete(f"/v1/records/{things.ids[1]}")
    assert (await things.preview(kind="number"))["total"] == 1
    job_id = await things.accept(monkeypatch, kind="number")
    assert await things.finish(job_id) == "done"
    assert (await things.job(job_id)).result == {"converted": 1, "lost": 0}
    async with space.database.transaction() as work:
        data = await work.scalar(select(record.c.data).where(record.c.id == things.ids[1]))
    assert data == {"note": 2}


async def test_options_grow_by_what_writers_bring_meanwhile(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_conversion, "CHUNK", 1)
    monkeypatch.setattr("models.data.databases.field_conversion.CHUNK", 1)
    things = await Things.of(client, space, ["Red", "Blue"], field={**TEXT, "defaultValue": "red"})
    job_id = await things.accept(monkeypatch, kind="multi_select")
    while not (await things.job(job_id)).progress.get("read"):
        await things.jobs.advance_job(job_id)
    await client.patch(f"/v1/records/{things.ids[0]}", json={"data": {"note": "Red, Green"}})
    assert await things.finish(job_id) == "done"
    field = await things.field()
    assert [option["key"] for option in field["options"]] == ["red", "blue", "green"]
    assert field["defaultValue"] == '["red"]'
    assert await things.values() == [["red", "green"], ["blue"]]


@pytest.mark.parametrize("change", ["settings", "deleted", "options"])
async def test_a_field_that_changes_meanwhile_stays_what_it_is(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    options = [{"name": "A"}, {"name": "B"}]
    field = {"label": "Note", "kind": "select", "options": options}
    things = await Things.of(client, space, ["a", "b"], field=field)
    job_id = await things.accept(monkeypatch, kind="text")
    assert await things.jobs.advance_job(job_id) == "more"
    assert await things.staged() == 2
    bodies = {"settings": {"settings": {"allowCreate": True}}, "options": {"options": options[:1]}}
    if change == "deleted":
        assert (await client.delete(things.path)).status_code == 200
    else:
        assert (await client.patch(things.path, json=bodies[change])).status_code == 200
    assert await things.finish(job_id) == "failed"
    assert await things.staged() == 0
    kept = {"settings": ["a", "b"], "options": ["a", None], "deleted": [None, None]}
    assert await things.values() == kept[change]
    assert (await things.job(job_id)).status == "failed"


async def test_a_last_step_that_fails_leaves_nothing(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1", "2"])
    before = await things.field()
    job_id = await things.accept(monkeypatch, kind="number")
    assert await things.jobs.advance_job(job_id) == "more"

    async def broken(*_: object) -> None:
        raise RuntimeError("between the values and their end")

    with monkeypatch.context() as patched:
        patched.setattr("models.data.databases.field_changes.recompute_dependents", broken)
        with pytest.raises(RuntimeError):
            await things.jobs.advance_job(job_id)
    assert (await things.field(), await things.values()) == (before, ["1", "2"])
    assert await things.finish(job_id) == "done"
    assert await things.values() == [1, 2]


async def test_one_conversion_at_a_time(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = await Things.of(client, space, ["1"])
    job_id = await things.accept(monkeypatch, kind="number")
    other = await client.post(f"{things.path}/convert", json={"kind": "date"})
    assert (other.status_code, other.json()["error"]) == (409, "in_progress")
    assert await things.finish(job_id) == "done"


async def test_a_repeated_request_has_the_first_outcome(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.routers.data.databases.CONVERSION_SECONDS", 0)
    things = await Things.of(client, space, ["1", "x"])
    headers = {"Idempotency-Key": uuid4().hex}

    async def ask() -> Any:
        path = f"{things.path}/convert"
        return await client.post(path, json={"kind": "number"}, headers=headers)

    assert [(await ask()).json()["error"] for _ in range(2)] == ["in_progress"] * 2
    async with space.database.transaction() as work:
        rows = await work.rows(select(job.c.id).where(job.c.workspace_id == space.id))
    assert len(rows) == 1
    assert await things.finish(str(rows[0].id)) == "done"
    answers = [await ask() for _ in range(2)]
    assert answers[0].json()["data"] == {"field": await things.field(), "converted": 1, "lost": 1}
    assert answers[1].content == answers[0].content


async def test_dependent_values_are_computed_again(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    formula = {
        "label": "Twice",
        "kind": "formula",
        "settings": {"expression": "string(record.note) + '!'"},
    }
    number = {"label": "Note", "kind": "number"}
    things = await Things.of(client, space, [1], formula, field=number)
    job_id = await things.accept(monkeypatch, kind="percent")
    assert await things.finish(job_id) == "done"
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(job.c.input).where(
                job.c.workspace_id == space.id, job.c.workflow_kind == "recomputation"
            )
        )
    assert [row.input["keys"] for row in rows] == [["twice"]]


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        ({"kind": "text"}, 422, None),
        ({"kind": "formula"}, 422, None),
        ({"kind": "relation"}, 422, None),
        ({"kind": "person"}, 422, None),
        ({"kind": "created_at"}, 422, None),
        ({"kind": "texts"}, 400, "kind"),
        ({}, 400, "kind"),
        ({"kind": "number", "options": [{"name": "a"}]}, 400, "options"),
        ({"kind": "number", "settings": {"precision": -1}}, 400, "settings.precision"),
        ({"kind": "select", "options": [{"name": "a", "key": "A"}]}, 400, "options.0.key"),
        ({"kind": "number", "preview": 1}, 400, "preview"),
        ({"kind": "number", "expectedUpdatedAt": "now"}, 400, "expectedUpdatedAt"),
        ({"kind": "number", "expectedUpdatedAt": "2020-01-01T00:00:00.000Z"}, 409, None),
    ],
)
async def test_bad_conversions_are_refused(
    client: Client, space: Space, body: Json, status: int, path: str | None
) -> None:
    things = await Things.of(client, space, [])
    for preview in (True, False):
        answer = await client.post(f"{things.path}/convert", json={"preview": preview, **body})
        assert answer.status_code == status, answer.text
        if path is not None:
            assert answer.json()["details"][0]["path"] == path
    async with space.database.transaction() as work:
        assert await work.first(select(job).where(job.c.workspace_id == space.id)) is None


async def test_the_title_stays_text(client: Client, space: Space) -> None:
    things = await Things.of(client, space, [])
    title = await things.field("title")
    path = f"/v1/databases/{things.made['id']}/fields/{title['id']}/convert"
    answer = await client.post(path, json={"kind": "long_text"})
    assert (answer.status_code, answer.json()["error"]) == (422, "unsupported")


async def test_readers_preview_nothing(client: Client, space: Space) -> None:
    things = await Things.of(client, space, ["secret"])
    _, token = await space.member(Role.VIEWER)
    body = {"kind": "number", "preview": True}
    answer = await client.with_token(token).post(f"{things.path}/convert", json=body)
    assert answer.status_code == 403


async def test_values_of_a_removed_field_go_chunk_by_chunk(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_RECORDS", 2)
    things = await Things.of(client, space, ["a"] * 5)
    assert (await client.delete(things.path)).status_code == 200
    async with space.database.transaction() as work:
        job_id = await work.scalar(select(job.c.id).where(job.c.workspace_id == space.id))
    assert await _left(space) == (3, 1)
    assert await things.jobs.advance_job(str(job_id)) == "more"
    assert await _left(space) == (1, 1)
    assert await things.finish(str(job_id)) == "done"
    assert await _left(space) == (0, 0)
    body = {"label": "Note", "kind": "number", "key": "note"}
    again = await client.post(f"/v1/databases/{things.made['id']}/fields", json=body)
    assert again.status_code == 201


async def _left(space: Space) -> tuple[int, int]:
    """Records with values of the removed field, and keys that are not free yet."""
    async with space.database.transaction() as work:
        values = await work.scalar(
            select(func.count()).where(
                record.c.workspace_id == space.id, record.c.data.has_key("note")
            )
        )
        keys = await work.scalar(
            select(func.count()).where(removed_field.c.workspace_id == space.id)
        )
    return values, keys
