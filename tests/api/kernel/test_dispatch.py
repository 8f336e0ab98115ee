"""Every operation is found by its path, without the router's search."""

import re

import pytest
from starlette.routing import Router as StarletteRouter
from starlette.types import Receive, Scope, Send

from api.kernel.dispatch import Dispatch
from api.kernel.routing import Route, spell_out
from api.routers import ROUTERS

OPERATIONS = [route for router in ROUTERS for route in router.routes]


class _FoundError(Exception):
    """The operation that was asked to answer."""


async def _unsearched(scope: Scope, *_: Receive | Send) -> None:
    raise LookupError(scope["path"])


@pytest.fixture
def dispatch(monkeypatch: pytest.MonkeyPatch) -> Dispatch:
    async def answer(route: Route, *_: object) -> None:
        raise _FoundError(route.operation_id)

    monkeypatch.setattr(Route, "handle", answer)
    spell_out(OPERATIONS)
    router = StarletteRouter()
    router.middleware_stack = _unsearched
    return Dispatch(router, OPERATIONS)


async def _found(dispatch: Dispatch, method: str, path: str) -> str:
    scope = {"type": "http", "method": method, "path": path, "root_path": ""}
    with pytest.raises(_FoundError) as found:
        await dispatch(scope, None, None)  # type: ignore[arg-type]  # nobody answers
    return str(found.value)


async def test_every_operation_is_found(dispatch: Dispatch) -> None:
    for route in OPERATIONS:
        (method,) = route.methods
        path = re.sub(r"{\w+(:path)?}", "x", route.path)
        assert await _found(dispatch, method, path) == route.operation_id


@pytest.mark.parametrize("path", ["/", "//", "/v1", "/v1/", "/v1/records/x/y/z", "/nowhere", "*"])
async def test_what_is_unknown_is_left_to_the_router(dispatch: Dispatch, path: str) -> None:
    scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
    with pytest.raises(LookupError):
        await dispatch(scope, None, None)  # type: ignore[arg-type]  # nobody answers
