"""Rows of plain resources: access, changes, bounds and pages."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from models.automation.saved_run_filters import FILTERS as SAVED_FILTERS
from models.core.access.rules import Actor
from models.core.pagination import Listed, Page, page_request
from models.core.repository import Repository
from models.messages.webhook_endpoints.store import ENDPOINTS
from models.sources.connections.store import CONNECTIONS
from runtime.errors import ConflictError, NotFoundError
from tests.support.spaces import Space


@dataclass(frozen=True)
class Case:
    rows: Repository[Any]
    values: dict[str, Any]
    other: dict[str, Any]
    """A change."""


def _cases(actor: Actor) -> list[Case]:
    made = {"created_by_user_id": actor.user_id}
    http = {"provider": "http", "config": {}, "sealed_credentials": b"", "shared": False, **made}
    hook = {"url": "https://a.test", "event_types": [], "enabled": True, "sealed_secret": b""}
    saved = {"owner_user_id": actor.user_id, "automation_id": None, "query": {}}
    return [
        Case(SAVED_FILTERS, {"label": "Mine", **saved}, {"label": "Other"}),
        Case(CONNECTIONS, {"label": "Shop", **http}, {"label": "Other"}),
        Case(ENDPOINTS, {**hook, "log_position": 0, **made}, {"description": "Other"}),
    ]


@pytest.mark.parametrize("at", range(3), ids=["filter", "connection", "endpoint"])
async def test_rows_belong_to_their_workspace(space: Space, foreign: Space, at: int) -> None:
    case, stranger = _cases(space.actor)[at], foreign.actor
    rows, row_id = case.rows, uuid4()
    async with space.database.transaction() as work:
        added = await rows.add(work, space.actor, row_id, case.values)
        assert (added.id, added.workspace_id, added.created_at) == (row_id, space.id, work.now)
        assert await rows.find(work, space.actor, row_id, lock=True) == added
        for missing in (
            rows.find(work, stranger, row_id),
            rows.change(work, stranger, row_id, case.other),
            rows.delete(work, stranger, row_id),
        ):
            with pytest.raises(NotFoundError, match=f"The {rows.resource} does not exist"):
                await missing
        changed = await rows.change(work, space.actor, row_id, case.other)
        assert changed.updated_at > added.updated_at, "a version is never repeated"
        assert (await rows.delete(work, space.actor, row_id)).id == row_id
        with pytest.raises(NotFoundError):
            await rows.find(work, space.actor, row_id)


@pytest.mark.parametrize("at", range(3), ids=["filter", "connection", "endpoint"])
async def test_a_bound_counts_the_rows_of_its_owner(
    space: Space, foreign: Space, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    case = _cases(space.actor)[at]
    assert case.rows.limit is not None
    monkeypatch.setattr(case.rows.limit, "most", 1)
    async with space.database.transaction() as work:
        await case.rows.add(work, space.actor, uuid4(), case.values)
        theirs = _cases(foreign.actor)[at]
        await theirs.rows.add(work, foreign.actor, uuid4(), theirs.values)
        refusal = f"The limit of 1 {case.rows.limit.resources} is reached"
        with pytest.raises(ConflictError, match=refusal):
            await case.rows.add(work, space.actor, uuid4(), case.values)


async def test_pages_are_in_order_and_of_what_is_seen(space: Space, foreign: Space) -> None:
    labels = ["b", "a", "c"]
    async with space.database.transaction() as work:
        for actor in (space.actor, foreign.actor):
            values = _cases(actor)[0].values
            for label in labels:
                await SAVED_FILTERS.add(work, actor, uuid4(), {**values, "label": label})
        seen: list[str] = []
        cursor = None
        for _ in range(2):
            page = page_request(space.keys, 2, cursor, "filters")
            shown = await SAVED_FILTERS.page(work, space.actor, page)
            seen += [row.label for row in shown.items]
            cursor = shown.cursor
        assert (seen, cursor) == (["a", "b", "c"], None)


class Things(Listed):
    things: list[str]


class Nested(Things):
    """One more level keeps the order."""


@pytest.mark.parametrize("shape", [Things, Nested])
def test_a_list_is_read_from_its_items_to_its_cursor(shape: type[Things]) -> None:
    listed = shape.of(Page([1, 2], "next"), str)
    assert listed.model_dump_json(by_alias=True) == '{"things":["1","2"],"cursor":"next"}'
    assert list(shape.model_json_schema()["properties"]) == ["things", "cursor"]
    assert shape.of(Page(["a"], None)).model_dump_json() == '{"things":["a"],"cursor":null}'
