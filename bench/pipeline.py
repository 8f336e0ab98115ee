"""What the request pipeline costs: the API against FastAPI's own routes, without a network.

Both applications run in this process on one database; requests go straight to their ASGI call.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from api.app import create_app
from bench.figures import Figure, quantile
from bench.pipeline_parts import form_times, routing_times
from bench.plain_app import plain_app
from bench.platform import Platform
from bench.rounds import Rounds
from cli.supervisor.state import StateDir
from runtime.configuration.settings import Settings

_JSON = (b"content-type", b"application/json")


async def pipeline_times(platform: Platform, rounds: Rounds, count: int) -> list[Figure]:
    """Microseconds of an empty answer, one authenticated GET and one POST."""
    state = StateDir(platform.pids.parent)
    settings = Settings(
        database_url=platform.database_url,
        secret_key=state.secret_key(),
        object_store=(state.root / "objects").as_uri(),
        rate_limit_key=0,
    )
    app = create_app(settings, background=())
    plain = plain_app(app.state.services)
    made = await platform.post("/v1/items", {"kind": "folder", "title": "Measured"})
    headers = {"authorization": f"Bearer {platform.connection['apiKey']}"}
    body = {"kind": "folder", "title": "Another"}
    requests = (
        ("nothing", _scope("GET", "/healthz", headers), None),
        ("GET an item", _scope("GET", f"/v1/items/{made['item']['id']}", headers), None),
        ("POST an item", _scope("POST", "/v1/items", headers), body),
    )
    async with app.router.lifespan_context(app):
        figures = [
            await _figure(
                f"{name} vs FastAPI's own route", (app, plain), scope, sent, rounds, count
            )
            for name, scope, sent in requests
        ]
    return [*figures, routing_times(rounds), *await form_times(rounds)]


async def _figure(
    name: str,
    applications: tuple[ASGIApp, ASGIApp],
    scope: Scope,
    sent: Any,
    rounds: Rounds,
    count: int,
) -> Figure:
    """CPU of this process for each request, in turns; p50 and p99 of the time it took."""
    figure = Figure(f"{name}, CPU", "µs", at_most=1.0)
    took: tuple[list[float], list[float]] = ([], [])
    for _ in rounds:
        cpu: tuple[list[float], list[float]] = ([], [])
        for _ in range(count):
            for application, cpus, times in zip(applications, cpu, took, strict=True):
                seconds, used = await _measured(application, scope, sent)
                cpus.append(used)
                times.append(seconds)
        figure.add(*(quantile(used, 0.5) * 1e6 for used in cpu))
    figure.tails = " · ".join(
        f"{who} p50 {quantile(times, 0.5) * 1000:.2f} p99 {quantile(times, 0.99) * 1000:.2f} ms"
        for who, times in zip(("ours", "floor"), took, strict=True)
    )
    return figure


def _scope(method: str, path: str, headers: Mapping[str, str]) -> Scope:
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip


async def _measured(app: ASGIApp, scope: Scope, sent: Any) -> tuple[float, float]:
    """Seconds of one request and of CPU in it. Raises AssertionError when it is refused."""
    raw = b"" if sent is None else json.dumps(sent).encode()
    length = (b"content-length", b"%d" % len(raw))
    own = {**scope, "headers": [*scope["headers"], *([length, _JSON] if raw else [])], "state": {}}
    messages = iter([{"type": "http.request", "body": raw, "more_body": False}])
    answered: list[Message] = []

    async def receive() -> Message:
        message = next(messages, None)
        return message or await asyncio.Event().wait()  # type: ignore[return-value]  # never ends

    async def send(message: Message) -> None:
        answered.append(message)

    started, used = time.perf_counter(), time.process_time()
    await app(own, receive, send)
    measured = (time.perf_counter() - started, time.process_time() - used)
    assert answered[0]["status"] in {200, 201}, answered
    return measured
