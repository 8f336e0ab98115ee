"""Following a run to its end, and cancelling it when the person who waits gives up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
from pydantic_core import from_json

from cli.api_client import ApiClient, Json, read
from cli.rows.display import Display
from cli.supervisor.errors import StartError

_SILENCE_SECONDS = 30
"""A stream that says nothing for so long is lost: it sends a comment every ten seconds."""
_BUSY = frozenset({429, 503})
_TRIES = 10
"""The times in a row the stream may break before the platform counts as gone."""


class _BusyError(Exception):
    """The platform has no room for another stream at the moment."""

    retryable = False


async def follow(
    client: ApiClient,
    path: str,
    page: str,
    show: Callable[[Json], None],
    enough: Callable[[Json], bool] = lambda _: False,
) -> None:
    """Show how far the run at `path` has come until it has ended, or that is `enough`.

    Raises StartError, which names the `page` of the run.
    """
    failures = 0
    while failures < _TRIES:
        try:
            async for name, data in _events(client, path):
                failures = 0
                if name == "end":
                    return
                show(data)
                if enough(data):
                    return
        except (httpx2.TransportError, _BusyError):
            failures += 1
            await asyncio.sleep(min(0.5 * failures, 3))
    raise StartError(
        f"The platform does not answer at {client.base_url} any more. The run goes on:"
        f" {client.base_url}{page}"
    )


async def _events(client: ApiClient, path: str) -> AsyncIterator[tuple[str, Json]]:
    name = ""
    async with client.http.stream("GET", f"{path}/events", timeout=_SILENCE_SECONDS) as answer:
        if answer.status_code in _BUSY:
            raise _BusyError
        if answer.is_error:
            await answer.aread()
            read(answer)
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, from_json(line.removeprefix("data: "))


async def follow_rows(client: ApiClient, run_id: str, display: Display) -> None:
    """Show how far a run that brings rows in has come, until it has ended. Raises StartError."""
    page = f"/data-source-runs/{run_id}"
    await follow(client, f"/v1{page}", page, display.run)


class GivenUpError(Exception):
    """Ctrl-C; the message says what became of the run."""

    retryable = False


@asynccontextmanager
async def cancelling(client: ApiClient, path: str) -> AsyncIterator[None]:
    """Cancel the run at `path` when the block is interrupted. Raises GivenUpError then."""
    try:
        yield
    except asyncio.CancelledError:
        run = await client.call("POST", f"{path}/cancel", json={})
        if run["status"] == "cancelled":
            raise GivenUpError("Cancelled. Nothing was changed.") from None
        raise GivenUpError(f"It was over already: {run['status']}.") from None
