"""Records against a model of them: any order of creations, changes, links, deletions, returns."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run
from pydantic_core import to_json
from sqlalchemy import select

from models.core.base import Id
from models.data.databases.field_changes import create_field
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.fields.queries import load_schema
from models.data.fields.shapes import CreateField
from models.data.records.commands import write_batch
from models.data.records.details import record_details
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.shapes import BatchResult, RecordBatch, RecordDetail
from models.data.records.tables import record
from runtime.database import Database, UnitOfWork
from runtime.errors import NotFoundError
from tests.support.exploring import examples
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=10)


@dataclass
class Model:
    """What should be known of one record; `parent` is a link, seen while both ends are there.

    `place` is where it stands among the children of its parent.
    """

    data: dict[str, Any]
    parent: Id | None = None
    place: int = 0
    archived: bool = False
    deleted: bool = False
    changes: int = 1


@dataclass
class WorkflowKind:
    """What should have happened: the whole of the specification, in plain Python."""

    members: dict[Id, Model] = field(default_factory=dict)
    behind: int = 1_000
    """The place of a link that is made from the other side; it grows with every transaction."""

    def parents(self, id_: Id) -> list[Id]:
        parent = self.members[id_].parent
        return [] if parent is None or self.members[parent].deleted else [parent]

    def children(self, id_: Id) -> list[Id]:
        linked = [
            (member.place, one)
            for one, member in self.members.items()
            if member.parent == id_ and not member.deleted
        ]
        return [one for _, one in sorted(linked)]

    def link(self, id_: Id, relations: dict[str, list[Id]]) -> None:
        """A record has one parent at most, so that naming another one ends the first."""
        if "children" in relations:
            for child in set(self.children(id_)) - set(relations["children"]):
                self.members[child].parent = None
            for place, child in enumerate(relations["children"]):
                self.members[child].parent, self.members[child].place = id_, place
        if relations.get("parent"):
            if relations["parent"] != [self.members[id_].parent]:
                self.members[id_].place = self.behind
            self.members[id_].parent = relations["parent"][0]
        elif "parent" in relations and self.parents(id_):
            self.members[id_].parent = None

    def changed(self, id_: Id, operation: dict[str, Any]) -> bool:
        """Whether an operation asks for what is not so already."""
        member, relations = self.members[id_], operation.get("relations", {})
        match operation["op"]:
            case "delete":
                return True
            case "archive":
                return not member.archived
            case "restore":
                return member.deleted or member.archived
        data = {**member.data, **operation.get("data", {})}
        return (
            {key: value for key, value in data.items() if value is not None} != member.data
            or relations.get("parent", self.parents(id_)) != self.parents(id_)
            or relations.get("children", self.children(id_)) != self.children(id_)
        )

    def write(self, id_: Id, operation: dict[str, Any]) -> None:
        """The record's own part of an operation."""
        member = self.members[id_]
        match operation["op"]:
            case "delete":
                member.deleted = True
            case "archive":
                member.archived = True
            case "restore":
                member.deleted = member.archived = False
            case _:
                data = {**member.data, **operation.get("data", {})}
                member.data = {key: value for key, value in data.items() if value is not None}


DATA = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["a", "b", "c"]),
        "price": st.none() | st.sampled_from([1, 2.5, 3]),
        "note": st.none() | st.sampled_from(["x", "y"]),
    },
)
OTHERS = st.lists(st.integers(0, 30), max_size=3)


class RecordMachine(RuleBasedStateMachine):
    """Does the same to the records and to the model; both must refuse alike and look alike."""

    runner: asyncio.Runner
    database: Database
    space: Space
    database_id: Id

    def __init__(self) -> None:
        super().__init__()
        self.workflow_kind = WorkflowKind()

    def act(self, command: Callable[[UnitOfWork], Awaitable[Any]]) -> Any:
        async def acting() -> Any:
            async with self.database.transaction() as work:
                return await command(work)

        return self.runner.run(acting())

    @initialize()
    def begin(self) -> None:
        async def prepare(work: UnitOfWork) -> Id:
            fields = [{"label": "Price", "kind": "number"}, {"label": "Note", "kind": "text"}]
            body = CreateDatabase.model_validate({"label": "WorkflowKind", "fields": fields})
            made = await create_database(work, self.space.actor, body)
            relation = {
                "databaseId": str(made.id),
                "cardinality": "one",
                "inverseLabel": "Children",
            }
            parent = {"label": "Parent", "kind": "relation", "settings": relation}
            await create_field(work, self.space.actor, made.id, CreateField.model_validate(parent))
            return made.id

        self.database_id = self.act(prepare)
        self.attempt([{"op": "create", "title": "first"}])

    def chosen(self, number: int) -> Id:
        ids = list(self.workflow_kind.members)
        return ids[number % len(ids)]

    @rule(data=DATA, parent=st.none() | st.integers(0, 30), children=st.none() | OTHERS)
    def create(self, data: Any, parent: int | None, children: list[int] | None) -> None:
        self.attempt([{"op": "create", "data": data, "relations": self.named(parent, children)}])

    @rule(
        which=st.integers(0, 30),
        data=DATA,
        parent=st.none() | st.just(-1) | st.integers(0, 30),
        children=st.none() | OTHERS,
    )
    def update(self, which: int, data: Any, parent: int | None, children: list[int] | None) -> None:
        relations = self.named(parent, children)
        self.attempt(
            [{"op": "update", "recordId": self.chosen(which), "data": data, "relations": relations}]
        )

    @rule(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["create", "update", "archive", "delete", "restore"]),
                st.integers(0, 30),
                DATA,
                st.none() | st.integers(0, 30),
            ),
            min_size=1,
            max_size=6,
            unique_by=lambda step: step[1],
        )
    )
    def batch(self, steps: list[Any]) -> None:
        operations: list[dict[str, Any]] = []
        met: set[Id] = set()
        for op, which, data, parent in steps:
            operation: dict[str, Any] = {"op": op}
            if op in {"create", "update"}:
                operation |= {"data": data, "relations": self.named(parent, None)}
            if op != "create":
                operation["recordId"] = self.chosen(which)
                if operation["recordId"] in met:
                    continue
                met.add(operation["recordId"])
            operations.append(operation)
        self.attempt(operations)

    def named(self, parent: int | None, children: list[int] | None) -> dict[str, list[Id]]:
        relations: dict[str, list[Id]] = {}
        if children is not None:
            relations["children"] = list(dict.fromkeys(map(self.chosen, children)))
        if parent is not None:
            relations["parent"] = [] if parent < 0 else [self.chosen(parent)]
        return relations

    def attempt(self, operations: list[dict[str, Any]]) -> None:
        body = RecordBatch.model_validate_json(to_json({"operations": operations}))

        async def writing(work: UnitOfWork) -> BatchResult | None:
            try:
                async with work.savepoint():
                    return await write_batch(work, self.space.actor, self.database_id, body)
            except NotFoundError:
                return None

        written = self.act(writing)
        if not self.expect(operations, written):
            assert written is None

    def expect(self, operations: list[dict[str, Any]], written: BatchResult | None) -> bool:
        """Let the model do the same; False, and nothing done, when it must be refused."""
        known = {id_: replace(one) for id_, one in self.workflow_kind.members.items()}
        workflow_kind = WorkflowKind(known, self.workflow_kind.behind + 1)
        ids = [operation.get("recordId") for operation in operations]
        for id_, operation in zip(ids, operations, strict=True):
            if (
                id_ is not None
                and workflow_kind.members[id_].deleted
                and operation["op"] != "restore"
            ):
                return False
        changed = [
            id_ is not None and workflow_kind.changed(id_, operation)
            for id_, operation in zip(ids, operations, strict=True)
        ]
        for id_, operation in zip(ids, operations, strict=True):
            if id_ is not None:
                workflow_kind.write(id_, operation)
        targets = [
            one for op in operations for some in op.get("relations", {}).values() for one in some
        ]
        if any(workflow_kind.members[one].deleted for one in targets):
            return False
        assert written is not None
        for shown, operation, change in zip(written.records, operations, changed, strict=True):
            if operation["op"] == "create":
                title = operation.get("title", "")
                data = {"title": title, **operation.get("data", {})}
                workflow_kind.members[shown.id] = Model(
                    {k: v for k, v in data.items() if v is not None}
                )
            workflow_kind.members[shown.id].changes += change
        for shown, operation in zip(written.records, operations, strict=True):
            workflow_kind.link(shown.id, operation.get("relations", {}))
        self.workflow_kind = workflow_kind
        return True

    async def shown(self, work: UnitOfWork) -> dict[Id, RecordDetail]:
        schema = await load_schema(work, self.space.id, self.database_id)
        rows: Sequence[Any] = await work.rows(
            select(record).where(
                record.c.database_id == self.database_id, record.c.deleted_at.is_(None)
            )
        )
        details = await record_details(work, self.space.actor, schema, rows)
        return {detail.id: detail for detail in details}

    @invariant()
    def both_look_alike(self) -> None:
        workflow_kind = self.workflow_kind
        live = {id_: one for id_, one in workflow_kind.members.items() if not one.deleted}
        shown = self.act(self.shown)
        assert shown.keys() == live.keys()
        for id_, member in live.items():
            assert shown[id_].data == member.data
            assert shown[id_].archived == member.archived
            assert shown[id_].relations["parent"] == [
                str(one) for one in workflow_kind.parents(id_)
            ]
            assert shown[id_].relations["children"] == [
                str(one) for one in workflow_kind.children(id_)
            ]

    @invariant()
    def history_tells_how_it_came(self) -> None:
        async def read(work: UnitOfWork) -> Any:
            mine = CHANGES_WITH_CREATIONS.c.database_id == self.database_id
            return await work.rows(
                select(CHANGES_WITH_CREATIONS).where(mine).order_by(CHANGES_WITH_CREATIONS.c.id)
            )

        replayed: dict[Id, dict[str, Any]] = {id_: {} for id_ in self.workflow_kind.members}
        counted = dict.fromkeys(self.workflow_kind.members, 0)
        for one in self.act(read):
            values = replayed[one.record_id]
            for key, value in (one.before or {}).items():
                if key not in {"parent", "children"}:
                    assert values.pop(key) == value
            values.update(one.after or {})
            counted[one.record_id] += 1
        for id_, member in self.workflow_kind.members.items():
            own = {
                key: value
                for key, value in replayed[id_].items()
                if key in {"title", "price", "note"}
            }
            assert own == member.data
            assert counted[id_] == member.changes


@pytest.fixture
def machine(database_url: str, space: Space) -> Iterator[type[RecordMachine]]:
    with asyncio.Runner() as runner:
        RecordMachine.runner = runner
        RecordMachine.space = space
        RecordMachine.database = Database(database_url, pool_size=1)
        yield RecordMachine
        runner.run(RecordMachine.database.close())


@pytest.mark.long
def test_records_do_what_the_model_does(machine: type[RecordMachine]) -> None:
    run(
        machine,
        settings=settings(
            max_examples=examples(10),
            stateful_step_count=20,
            # A sequence of at most 20 steps reads well enough without being made shorter.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_another_order_of_links_is_a_change(machine: type[RecordMachine]) -> None:
    state = machine()
    state.begin()
    state.batch([("update", 0, {}, 0), ("create", 1, {}, 0)])
    for children in ([1, 0], [1, 0], [0, 1]):
        state.update(0, {}, None, children)
        state.both_look_alike()
        state.history_tells_how_it_came()
    assert state.workflow_kind.members[state.chosen(0)].changes == 4
