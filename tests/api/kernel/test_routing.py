"""Operations that only pass on: what is given to the command or the query, by its name."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Annotated, Any, cast
from uuid import UUID, uuid4

import pytest

from api.kernel.request import QueryId, WholeLimit
from api.kernel.routing import Access, ApiRequest, Data, Route, Router
from models.core.access.rules import Actor
from models.core.base import Id, Input, Shape
from models.core.openapi import documented_as
from models.core.pagination import Page, PageRequest
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

RULE, NEW, SPACE = uuid4(), uuid4(), uuid4()
PATH = "/v1/workspaces/{workspaceId}/rules/{alertRuleId}/{wordName}"


class Note(Input):
    text: str


class Seen(Shape):
    """All that a command was given."""

    of: dict[str, Any]


def _route(
    calls: Callable[..., Awaitable[Any]], declared: Any = None, method: str = "GET"
) -> Route:
    async def operate() -> None:
        """Operate.

        At length.
        """

    router = Router(tags=["probes"])
    router.add(method, PATH, declared or operate, access=Access(), calls=calls)
    (route,) = router.routes
    return route


def _request() -> ApiRequest:
    request = SimpleNamespace(
        work="work",
        actor=SimpleNamespace(workspace_id=SPACE),
        principal="principal",
        roles="roles",
        placement="placement",
        services=SimpleNamespace(keys="keys"),
        new_id=NEW,
        ids={"workspaceId": SPACE, "alertRuleId": RULE},
        path_params={"workspaceId": str(SPACE), "alertRuleId": str(RULE), "wordName": "blue"},
        page=lambda *asked: asked,
        array=lambda page: Data(page.items),
    )
    return cast("ApiRequest", request)


async def test_names_of_the_request_and_of_the_path_are_given() -> None:
    async def command(
        work: UnitOfWork, actor: Actor, keys: KeyRing, workspace_id: Id, rule_id: Id, name: str
    ) -> Seen:
        assert actor.workspace_id == SPACE
        return Seen(of={"work": work, "keys": keys, "at": [workspace_id, rule_id, name]})

    operation = _route(command).operation
    answer = await operation.endpoint(_request())
    assert answer.data.of == {"work": "work", "keys": "keys", "at": [SPACE, RULE, "blue"]}
    assert (operation.query, operation.body) == ({}, None)


async def test_another_id_is_that_of_what_is_made() -> None:
    async def command(work: UnitOfWork, note_id: Id, body: Note) -> Seen:  # noqa: ARG001
        return Seen(of={"id": note_id, "text": body.text})

    operation = _route(command, method="POST").operation
    assert operation.body is not None
    answer = await operation.endpoint(_request(), body=Note(text="so"))
    assert answer.data.of == {"id": NEW, "text": "so"}


async def test_other_arguments_are_sent_in_the_query() -> None:
    async def query(
        work: UnitOfWork,  # noqa: ARG001
        parent_id: Id | None,
        kind: str | None,
        archived: bool = False,
        *,
        lock: bool = False,
    ) -> Seen:
        return Seen(of={"given": [parent_id, kind, archived, lock]})

    operation = _route(query).operation
    assert {name: one.required for name, one in operation.query.items()} == {
        "parentId": False,
        "kind": False,
        "archived": False,
    }
    parsed = operation.query["parentId"].adapter.validate_python(str(RULE))
    assert parsed == RULE
    answer = await operation.endpoint(_request(), parent_id=RULE, kind=None)
    assert answer.data.of == {"given": [RULE, None, False, False]}
    without = await operation.endpoint(_request())
    assert without.data.of == {"given": [None, None, False, False]}


async def test_a_page_belongs_to_its_operation_path_and_filters() -> None:
    async def query(work: UnitOfWork, state: str | None, page: PageRequest) -> Page[Seen]:  # noqa: ARG001
        return Page([Seen(of={"page": page, "state": state})], None)

    operation = _route(query).operation
    assert list(operation.query) == ["limit", "cursor", "state"]
    answer = await operation.endpoint(_request(), state="on", limit=5)
    place = (str(SPACE), str(RULE), "blue")
    assert answer.data[0].of == {"page": ("operate", 5, None, *place, "on"), "state": "on"}
    again = await operation.endpoint(_request())
    assert again.data[0].of["page"] == ("operate", 30, None, *place, None)


def test_a_declaration_may_say_what_is_sent() -> None:
    async def query(work: UnitOfWork, page: PageRequest, parent_id: Id | None) -> Page[Seen]:
        raise AssertionError(work, page, parent_id)

    async def listing(limit: WholeLimit = 1000, parent_id: QueryId | None = RULE) -> None:
        """List."""

    operation = _route(query, listing).operation
    assert list(operation.query) == ["limit", "parentId", "cursor"]
    assert operation.query["limit"].adapter.validate_python("5000") == 1000
    assert (operation.name, operation.endpoint.__doc__) == ("listing", "List.")


@pytest.mark.parametrize("name", ["expected_updated_at", "expected_version"])
def test_a_precondition_is_read_from_its_header(name: str) -> None:
    async def by_moment(rule_id: Id, expected_updated_at: datetime | None = None) -> Seen:
        raise AssertionError(rule_id, expected_updated_at)

    async def by_version(rule_id: Id, expected_version: int | None = None) -> Seen:
        raise AssertionError(rule_id, expected_version)

    calls: dict[str, Callable[..., Awaitable[Seen]]] = {
        "expected_updated_at": by_moment,
        "expected_version": by_version,
    }
    operation = _route(calls[name]).operation
    assert list(operation.preconditions) == [name]
    assert operation.query == {}


def test_marks_of_what_is_sent_are_kept() -> None:
    async def query(rule_id: Id, text: Annotated[str, documented_as("Filter")]) -> Seen:
        raise AssertionError(rule_id, text)

    assert _route(query).operation.query["text"].required


def test_a_name_that_fits_two_parts_of_the_path_is_refused() -> None:
    async def query(work: UnitOfWork, id: UUID) -> Seen:  # noqa: A002
        raise AssertionError(work, id)

    with pytest.raises(TypeError, match="id"):
        _route(query)
