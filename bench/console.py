"""Pages of the console on a workspace with a long past: seconds of the server, bytes of a page."""

import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2

from bench.figures import Figure, quantile
from bench.grid import grid_figures
from bench.growth import settle
from bench.growth_rows import LongHistory, automation_of_three_nodes
from bench.platform import Platform
from bench.rounds import say

ROWS = 1_000_000
"""Rows of each table, runs and records among them."""
ASKED = 40
WARM = 5
MOST_MILLISECONDS = 200.0
MOST_BYTES = 150_000.0
_HTML = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}


async def console(platform: Platform) -> list[Figure]:
    """Milliseconds and bytes of each page, against the most that a page may take."""
    # The link signs in once.
    async with _session(platform) as browser:
        figures = await grid_figures(platform, browser)
        automation_id = await automation_of_three_nodes(platform)
        past = await LongHistory.of(platform, automation_id)
        started = time.monotonic()
        await past.grow(ROWS)
        await settle(platform)
        say(f"  {ROWS:,} rows of each table, after {time.monotonic() - started:.0f} s")
        for name, path in _pages(platform, automation_id, past).items():
            figures += await _measured(browser, name, path)
        return figures


@asynccontextmanager
async def _session(platform: Platform) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser that has used the link of the platform's start."""
    base = platform.connection["baseUrl"]
    async with httpx2.AsyncClient(
        base_url=base, headers=_HTML, trust_env=False, timeout=60
    ) as browser:
        answer = await browser.post(platform.connection["signInUrl"])
        assert answer.status_code == 303, answer.text
        yield browser


def _pages(platform: Platform, automation_id: str, past: LongHistory) -> Mapping[str, str]:
    """The paths of pages by name."""
    place = f"/workspaces/{platform.connection['workspaceId']}"
    grid = f"{place}/databases/{past.ids['database_id']}"
    return {
        "home": place,
        "runs": f"{place}/runs",
        "statistics": f"{place}/runs/statistics",
        "statistics of 30 days": f"{place}/runs/statistics?by=day",
        "runs failed": f"{place}/runs?status=failed",
        "runs of an automation": f"{place}/runs?automationId={automation_id}",
        "automations": f"{place}/automations",
        "automation": f"{place}/automations/{automation_id}",
        "content": f"{place}/items",
        "grid": grid,
        "grid sorted": f"{grid}?sort=-price",
        "search": f"{place}/search?q=record",
        "data sources": f"{place}/data-sources",
        "request logs": f"{place}/settings/request-logs",
        "usage": f"{place}/settings/usage",
        "notifications": f"{place}/notifications",
    }


async def _measured(browser: httpx2.AsyncClient, name: str, path: str) -> list[Figure]:
    times = []
    for number in range(ASKED):
        started = time.perf_counter()
        answer = await browser.get(path)
        if number >= WARM:
            times.append(time.perf_counter() - started)
        answer.raise_for_status()
    assert re.search(r"<h1|<main", answer.text), f"{path} is no page"
    duration = Figure(f"{name}, of {MOST_MILLISECONDS:.0f} ms", "ms", at_most=1.0)
    duration.add(quantile(times, 0.5) * 1000, MOST_MILLISECONDS)
    duration.tails = f"p99 {quantile(times, 0.99) * 1000:.0f} max {max(times) * 1000:.0f} ms"
    weight = Figure(f"{name}, of {MOST_BYTES / 1000:.0f} kB", "kB", at_most=1.0)
    weight.add(len(answer.content) / 1000, MOST_BYTES / 1000)
    return [duration, weight]
