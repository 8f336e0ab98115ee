"""Every operation is found by its method and path, and nothing else is."""

import re
from uuid import uuid4

import pytest

from api.kernel.dispatch import Dispatch, UnknownMethodError
from api.kernel.routing import Access, Data, Router
from api.routers.registry import ROUTERS
from runtime.errors import NotFoundError
from tests.support.cells import cells

OPERATIONS = [route for router in ROUTERS for route in router.routes]


async def endpoint() -> Data[int]:
    """Answer."""
    return Data(0)


def dispatch_of(*declared: tuple[str, str]) -> Dispatch:
    router = Router(tags=[])
    for method, path in declared:
        router.add(method, path, endpoint, access=Access())
    return Dispatch(router.routes, _nothing, _nothing)


async def _nothing(*_: object) -> None:
    """No server asks for a lifespan here."""


def test_every_operation_is_found() -> None:
    dispatch = Dispatch(OPERATIONS, _nothing, _nothing)
    with cells() as cell:
        for route in OPERATIONS:
            with cell(route.operation.name):
                names = re.findall(r"{(\w+)}", route.path)
                path = re.sub(r"{(\w+)}", r"the-\1", route.path)
                is_page = route.operation.access.page
                find = dispatch.find_page if is_page else dispatch.find
                operation, parameters = find(route.operation.method, path)
                assert operation is route.operation
                assert parameters == {name: f"the-{name}" for name in names}


@pytest.mark.parametrize(
    "path",
    ["", "/", "//", "/v1", "/v1/", "/v1/records/x/y/z", "/v1/records//", "/healthz/", "/x", "*"],
)
def test_an_unknown_path_is_not_found(path: str) -> None:
    with pytest.raises(NotFoundError):
        Dispatch(OPERATIONS, _nothing, _nothing).find("GET", path)


def test_the_segment_that_is_spelled_out_wins_where_both_know_the_method() -> None:
    dispatch = dispatch_of(
        ("DELETE", "/v1/things/{thingId}"),
        ("GET", "/v1/things/{thingId}"),
        ("GET", "/v1/things/count"),
    )
    assert dispatch.find("GET", "/v1/things/count")[1] == {}
    assert dispatch.find("DELETE", "/v1/things/sum")[1] == {"thingId": "sum"}
    with pytest.raises(UnknownMethodError):
        dispatch.find("DELETE", "/v1/things/count")


def test_a_word_in_the_place_of_an_id_has_no_methods() -> None:
    dispatch = dispatch_of(
        ("DELETE", "/v1/things/{thingId}"),
        ("GET", "/v1/things/{thingId}"),
        ("GET", "/v1/things/count"),
        ("GET", "/v1/names/{name}"),
    )
    with pytest.raises(NotFoundError):
        dispatch.find("POST", "/v1/things/copy")
    for path, allowed in (
        (f"/v1/things/{uuid4()}", "DELETE, GET, HEAD"),
        ("/v1/things/count", "GET, HEAD"),
        ("/v1/names/anything", "GET, HEAD"),
    ):
        with pytest.raises(UnknownMethodError) as refused:
            dispatch.find("POST", path)
        assert refused.value.headers == {"Allow": allowed}


def test_a_segment_that_leads_nowhere_may_still_be_an_id() -> None:
    dispatch = dispatch_of(("GET", "/v1/things/{thingId}/parts"), ("GET", "/v1/things/old/list"))
    assert dispatch.find("GET", "/v1/things/old/parts")[1] == {"thingId": "old"}


def test_operations_of_one_path_may_name_its_parameters_differently() -> None:
    dispatch = dispatch_of(("GET", "/v1/{one}/{two}"), ("PUT", "/v1/{first}/{second}"))
    assert dispatch.find("GET", "/v1/a/b")[1] == {"one": "a", "two": "b"}
    assert dispatch.find("PUT", "/v1/a/b")[1] == {"first": "a", "second": "b"}


def test_an_operation_is_declared_once() -> None:
    with pytest.raises(RuntimeError, match="declared twice"):
        dispatch_of(("GET", "/v1/{one}"), ("GET", "/v1/{two}"))
