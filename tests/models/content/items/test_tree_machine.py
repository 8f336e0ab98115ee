"""The tree against a model of it: any order of creations, moves, archivings, deletions, returns."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run
from sqlalchemy import delete, select

from models.content.items.commands import archive_item, move_item, restore_item, trash_item
from models.content.items.joins import item
from models.content.items.shapes import MoveItem
from models.core.base import Id
from models.workspace.targets.duplication import duplicate_item
from models.workspace.targets.items import create_item
from models.workspace.targets.shapes import CreateItem
from runtime.database import Database, UnitOfWork
from runtime.errors import ConflictError, NotFoundError, PlatformError, ValidationError
from runtime.ids import new_id
from tests.support.exploring import examples
from tests.support.spaces import Space


@dataclass
class Node:
    """What the model knows of an item."""

    title: str
    parent: Id | None
    archived: bool = False
    deleted_with: Id | None = None


@dataclass
class Forest:
    """What should have happened: the whole of the specification, in plain Python."""

    nodes: dict[Id, Node] = field(default_factory=dict)

    def is_live(self, id_: Id | None) -> bool:
        return id_ is None or self.nodes[id_].deleted_with is None

    def below(self, id_: Id) -> list[Id]:
        """The item and what is below it and not in the trash, from the top down."""
        found = [id_]
        for one in found:
            found += [
                child
                for child, node in self.nodes.items()
                if node.parent == one and node.deleted_with is None
            ]
        return found

    def above(self, id_: Id | None) -> Iterator[Id]:
        while id_ is not None:
            yield id_
            id_ = self.nodes[id_].parent

    def move(self, id_: Id, parent: Id | None) -> type[PlatformError] | None:
        if not self.is_live(id_) or not self.is_live(parent):
            return NotFoundError
        if id_ in self.above(parent):
            return ValidationError
        self.nodes[id_].parent = parent
        return None

    def archive(self, id_: Id) -> type[PlatformError] | None:
        if not self.is_live(id_):
            return NotFoundError
        self.nodes[id_].archived = True
        return None

    def trash(self, id_: Id) -> type[PlatformError] | None:
        if not self.is_live(id_):
            return NotFoundError
        for one in self.below(id_):
            self.nodes[one].deleted_with = id_
        return None

    def restore(self, id_: Id) -> type[PlatformError] | None:
        node = self.nodes[id_]
        if node.deleted_with is None:
            node.archived = False
            return None
        if not self.is_live(node.parent):
            return ConflictError
        for one in self.nodes.values():
            if one.deleted_with == id_:
                one.deleted_with = None
        return None


class TreeMachine(RuleBasedStateMachine):
    """Does the same to the tree and to the model; both must refuse alike and look alike."""

    runner: asyncio.Runner
    database: Database
    space: Space

    def __init__(self) -> None:
        super().__init__()
        self.forest = Forest()

    def act(self, command: Callable[[UnitOfWork], Awaitable[Any]]) -> Any:
        async def acting() -> Any:
            async with self.database.transaction() as work:
                return await command(work)

        return self.runner.run(acting())

    def attempt(
        self,
        expected: type[PlatformError] | None,
        command: Callable[[UnitOfWork], Awaitable[Any]],
    ) -> None:
        if expected is None:
            self.act(command)
        else:
            with pytest.raises(expected):
                self.act(command)

    def chosen(self, number: int) -> Id:
        ids = list(self.forest.nodes)
        return ids[number % len(ids)]

    @initialize()
    def begin(self) -> None:
        async def clear(work: UnitOfWork) -> None:
            await work.execute(delete(item).where(item.c.workspace_id == self.space.id))

        self.act(clear)
        self.make("first", None)

    def make(self, title: str, parent: Id | None) -> None:
        given: dict[str, Any] = {"kind": "folder", "title": title, "parentItemId": parent}
        body = CreateItem.model_validate(given)
        made = self.act(lambda work: create_item(work, self.space.actor, self.space.keys, body))
        self.forest.nodes[made.item.id] = Node(title, parent)

    @rule(title=st.sampled_from(["a", "b"]), at=st.integers(-3, 30))
    def create(self, title: str, at: int) -> None:
        parent = None if at < 0 else self.chosen(at)
        if self.forest.is_live(parent):
            self.make(title, parent)
        else:
            with pytest.raises(NotFoundError):
                self.make(title, parent)

    @rule(which=st.integers(0, 30), at=st.integers(-3, 30))
    def move(self, which: int, at: int) -> None:
        id_, parent = self.chosen(which), None if at < 0 else self.chosen(at)
        body = MoveItem.model_validate({"parentItemId": parent})
        expected = self.forest.move(id_, parent)
        self.attempt(expected, lambda work: move_item(work, self.space.actor, id_, body))

    @rule(which=st.integers(0, 30))
    def archive(self, which: int) -> None:
        id_ = self.chosen(which)
        expected = self.forest.archive(id_)
        self.attempt(
            expected, lambda work: archive_item(work, self.space.actor, id_, archived=True)
        )

    @rule(which=st.integers(0, 30))
    def trash(self, which: int) -> None:
        id_ = self.chosen(which)
        expected = self.forest.trash(id_)
        self.attempt(expected, lambda work: trash_item(work, self.space.actor, id_))

    @rule(which=st.integers(0, 30))
    def restore(self, which: int) -> None:
        id_ = self.chosen(which)
        expected = self.forest.restore(id_)
        self.attempt(expected, lambda work: restore_item(work, self.space.actor, id_))

    @rule(which=st.integers(0, 30))
    def duplicate(self, which: int) -> None:
        id_ = self.chosen(which)
        forest, space = self.forest, self.space
        if not forest.is_live(id_):
            self.attempt(
                NotFoundError,
                lambda work: duplicate_item(work, space.actor, space.keys, id_, new_id()),
            )
            return
        before = forest.below(id_)
        if len(forest.nodes) + len(before) > 40:
            return
        self.act(lambda work: duplicate_item(work, space.actor, space.keys, id_, new_id()))
        rows = {row.id: row for row in self.act(self.rows) if row.id not in forest.nodes}
        (root,) = (row for row in rows.values() if row.parent_item_id not in rows)
        assert root.parent_item_id == forest.nodes[id_].parent
        assert root.title.startswith(forest.nodes[id_].title.split(" copy")[0] + " copy")
        shape = self.shape(before, id_, {one: forest.nodes[one].parent for one in before})
        assert self.shape(rows, root.id, {one: rows[one].parent_item_id for one in rows}) == shape
        for row in rows.values():
            forest.nodes[row.id] = Node(row.title, row.parent_item_id, row.archived)

    @staticmethod
    def shape(ids: Any, root: Id, parents: dict[Id, Id | None]) -> Any:
        """A tree without its names."""

        def of(id_: Id) -> Any:
            return tuple(sorted(of(one) for one in ids if parents[one] == id_ and one != root))

        return of(root)

    async def rows(self, work: UnitOfWork) -> Any:
        return await work.rows(select(item).where(item.c.workspace_id == self.space.id))

    @invariant()
    def both_look_alike(self) -> None:
        seen = {
            row.id: Node(row.title, row.parent_item_id, row.archived, row.deleted_with)
            for row in self.act(self.rows)
        }
        assert seen == self.forest.nodes

    @invariant()
    def what_lives_hangs_on_what_lives(self) -> None:
        for id_, node in self.forest.nodes.items():
            assert not self.forest.is_live(id_) or self.forest.is_live(node.parent)


@pytest.mark.long
def test_the_tree_does_what_the_model_does(database_url: str, space: Space) -> None:
    with asyncio.Runner() as runner:
        TreeMachine.runner = runner
        TreeMachine.space = space
        TreeMachine.database = Database(database_url, pool_size=1)
        try:
            run(
                TreeMachine,
                settings=settings(
                    max_examples=examples(12),
                    stateful_step_count=25,
                    deadline=None,
                    # A sequence of at most 25 steps reads well enough without being made shorter.
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(TreeMachine.database.close())
