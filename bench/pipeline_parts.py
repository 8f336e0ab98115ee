"""Parts of the request pipeline against what the framework has for them."""

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as FrameworkRoute

from api.kernel.dispatch import Dispatch
from api.kernel.uploads import FileForm, form_boundary
from api.routers.registry import ROUTERS
from bench.figures import Figure
from bench.rounds import Rounds

_MIB = 2**20
_FILE_BYTES = 64 * _MIB
_CHUNK = 64 * 1024
_TYPE = b"multipart/form-data; boundary=boundary"
_HEAD = (
    b"--boundary\r\nContent-Disposition: form-data; name=file; filename=large.bin\r\n"
    b"Content-Type: application/octet-stream\r\n\r\n"
)
_END = b"\r\n--boundary--\r\n"


def routing_times(rounds: Rounds) -> Figure:
    """Microseconds to find an operation, over all of them."""
    routes = [route for router in ROUTERS for route in router.routes]
    dispatch = Dispatch(routes, _no_lifespan, _no_lifespan)
    paths = [(route.operation.method, route.path) for route in routes]
    scopes = [
        {"type": "http", "method": method, "path": path, "root_path": ""} for method, path in paths
    ]
    listed = [FrameworkRoute(path, _nothing, methods=[method]) for method, path in paths]
    figure = Figure("find an operation vs Starlette's list of routes", "µs", at_most=1.0)
    for _ in rounds:
        started = time.process_time()
        for method, path in paths:
            dispatch.find(method, path)
        ours = time.process_time() - started
        started = time.process_time()
        for scope in scopes:
            next(route for route in listed if route.matches(scope)[0] is Match.FULL)
        floor = time.process_time() - started
        figure.add(ours / len(paths) * 1e6, floor / len(paths) * 1e6)
    return figure


async def _nothing(_: Request) -> Response:
    return Response()


async def form_times(rounds: Rounds) -> list[Figure]:
    """A form with a large file: until its first byte could be stored, and until its last."""
    first = Figure("first byte of a 64 MiB form vs Starlette's parser", "ms", at_most=1.0)
    last = Figure("last byte of a 64 MiB form vs Starlette's parser", "ms", at_most=1.0)
    for _ in rounds:
        ours, floor = await _form_by_us(), await _form_by_starlette()
        first.add(ours[0] * 1000, floor[0] * 1000)
        last.add(ours[1] * 1000, floor[1] * 1000)
    return [first, last]


async def _body() -> AsyncIterator[bytes]:
    yield _HEAD
    for _ in range(_FILE_BYTES // _CHUNK):
        yield bytes(_CHUNK)
    yield _END


async def _form_by_us() -> tuple[float, float]:
    started = time.process_time()
    boundary = form_boundary(_TYPE)
    assert boundary is not None
    found: list[float] = []
    size = 0
    async for piece in FileForm(boundary).file(_body()):
        found.append(time.process_time() - started)
        size += len(piece)
    assert size == _FILE_BYTES
    return found[0], found[-1]


async def _form_by_starlette() -> tuple[float, float]:
    started = time.process_time()
    body = _body()

    async def receive() -> Any:
        chunk = await anext(body, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    request = Request({"type": "http", "headers": [(b"content-type", _TYPE)]}, receive)
    async with request.form() as form:
        file: Any = form["file"]
        found: list[float] = []
        while await file.read(_CHUNK):
            found.append(time.process_time() - started)
    return found[0], found[-1]


async def _no_lifespan(*_: object) -> None:
    """Nothing is started."""
