"""Undoing runs that wrote anything: the records are as before, but for what others wrote."""

import random
from typing import Any

import pytest
from sqlalchemy import select

from models.data.records.tables import record, record_link
from tests.support import related
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.undos import (
    UndoneAutomation,
    Write,
    automation_to_undo,
    created,
    deleted,
    updated,
)

pytestmark = pytest.mark.long

Json = dict[str, Any]
State = dict[str, Json]
ROUNDS = 12
"""Runs that are undone; each has up to ten writes."""


class Tables:
    """Two databases with fields of many kinds, related in both directions."""

    def __init__(self, client: Client, space: Space, chance: random.Random) -> None:
        self.client, self.space, self.chance = client, space, chance
        self.tasks = self.people = self.who = ""
        self.ids: dict[str, list[str]] = {}

    async def fill(self) -> None:
        self.people = await related.make_database(self.client, self.space, "People")
        self.tasks = await related.make_database(
            self.client,
            self.space,
            "Tasks",
            {"label": "State", "kind": "text"},
            {"label": "Points", "kind": "number"},
            {"label": "Done", "kind": "checkbox"},
            {"label": "Data", "kind": "json"},
            {"label": "Tags", "kind": "multi_select", "settings": {"allowCreate": True}},
        )
        self.who = (await related.relate(self.client, self.tasks, self.people, "Who"))["key"]
        self.ids[self.people] = [
            await related.add(self.client, self.people, f"person {number}") for number in range(4)
        ]
        self.ids[self.tasks] = [
            await related.add(self.client, self.tasks, f"task {number}", **self.content())
            for number in range(5)
        ]

    def content(self) -> Json:
        """Some values and links of a task."""
        values = {
            "state": self.chance.choice(["open", "closed", None]),
            "points": self.chance.choice([0, 1.5, None]),
            "done": self.chance.choice([True, False]),
            "data": self.chance.choice([{"a": [1]}, [], None]),
            "tags": self.chance.sample(["red", "green", "blue"], self.chance.randint(0, 2)),
        }
        some = dict(self.chance.sample(sorted(values.items()), self.chance.randint(0, 3)))
        people = self.ids[self.people]
        linked = self.chance.sample(people, self.chance.randint(0, min(3, len(people))))
        return {"data": some, "relations": {self.who: linked}} if linked else {"data": some}

    def write(self) -> tuple[Write, str | None, str]:
        """A write of a node, the record that it takes away if it does, and the database."""
        database = self.chance.choice([self.tasks, self.tasks, self.people])
        ids = self.ids[database]
        content = self.content() if database == self.tasks else {}
        match self.chance.randint(0, 9) if ids else 0:
            case 0 | 1:
                return created(database, title="new", **content), None, database
            case 2:
                gone = self.chance.choice(ids)
                return deleted(gone), gone, database
            case 3:
                archived = self.chance.choice([True, False])
                return updated(self.chance.choice(ids), archived=archived), None, database
            case _:
                title = f"title {self.chance.randint(0, 3)}"
                return updated(self.chance.choice(ids), title=title, **content), None, database

    async def state(self) -> State:
        """Every record outside the trash: its values, whether it is archived, and its links."""
        async with self.space.database.transaction() as work:
            rows = await work.rows(
                select(record).where(
                    record.c.workspace_id == self.space.id, record.c.deleted_at.is_(None)
                )
            )
            links = await work.rows(
                select(record_link)
                .where(record_link.c.workspace_id == self.space.id)
                .order_by(record_link.c.position)
            )
        live = {row.id for row in rows}
        return {
            str(row.id): {
                "title": row.title,
                "archived": row.archived,
                **{key: value for key, value in row.data.items() if value is not None},
                "links": [
                    str(link.target_id)
                    for link in links
                    if link.record_id == row.id and link.target_id in live
                ],
            }
            for row in rows
        }


async def written(tables: Tables, automation: UndoneAutomation) -> str:
    """A run of a few random writes."""
    run = await automation.run()
    for _ in range(tables.chance.randint(1, 10)):
        write, gone, database = tables.write()
        (record_id,) = await automation.write(run, write)
        if gone is not None:
            tables.ids[database].remove(gone)
        elif record_id not in tables.ids[database]:
            tables.ids[database].append(record_id)
    return run


@pytest.fixture(params=[1, 2, 3])
async def tables(request: Any, client: Client, space: Space) -> Tables:
    tables = Tables(client, space, random.Random(request.param))  # noqa: S311  # no secret
    await tables.fill()
    return tables


async def test_records_are_as_before_and_as_after_when_the_undo_is_undone(
    tables: Tables, client: Client, space: Space
) -> None:
    automation = await automation_to_undo(client, space)
    for _ in range(ROUNDS):
        ids = {database: list(some) for database, some in tables.ids.items()}
        before = await tables.state()
        run = await written(tables, automation)
        after = await tables.state()
        undo = await automation.undo(run)
        assert undo["conflicts"] == []
        assert await tables.state() == before
        redo = await automation.undo(run, undoId=undo["id"])
        assert redo["conflicts"] == []
        assert await tables.state() == after
        await automation.undo(run, undoId=redo["id"])
        assert await tables.state() == before
        tables.ids = ids


async def test_several_runs_are_undone_from_the_newest(
    tables: Tables, client: Client, space: Space
) -> None:
    automation = await automation_to_undo(client, space)
    states, runs = [], []
    for _ in range(ROUNDS // 2):
        states.append(await tables.state())
        runs.append(await written(tables, automation))
    while runs:
        undo = await automation.undo(runs.pop())
        assert undo["conflicts"] == []
        assert await tables.state() == states.pop()


async def test_planted_conflicts_stay_and_the_rest_is_reverted(
    tables: Tables, client: Client, space: Space
) -> None:
    automation = await automation_to_undo(client, space)
    for number in range(ROUNDS // 2):
        task = tables.chance.choice(tables.ids[tables.tasks])
        before = await tables.state()
        run = await automation.run(
            updated(task, title=f"run {number}", data={"points": 1_000 + number})
        )
        await written_among(tables, automation, run, without=task)
        mine = f"mine {number}"
        await related.change(client, task, title=mine)
        undo = await automation.undo(run)
        assert [(one["recordId"], one["fieldKey"]) for one in undo["conflicts"]] == [
            (task, "title")
        ]
        expected = {**before, task: {**before[task], "title": mine}}
        assert await tables.state() == expected


async def written_among(
    tables: Tables, automation: UndoneAutomation, run: str, without: str
) -> None:
    """Some more writes of a run, none of a record."""
    ids = {database: list(some) for database, some in tables.ids.items()}
    tables.ids[tables.tasks].remove(without)
    for _ in range(4):
        write, gone, database = tables.write()
        (record_id,) = await automation.write(run, write)
        if gone is not None:
            tables.ids[database].remove(gone)
        elif record_id not in tables.ids[database]:
            tables.ids[database].append(record_id)
    tables.ids = ids
