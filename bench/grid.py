"""The table of a large database: windows of the server, and paint and memory of a real browser."""

import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from bench.figures import Figure, quantile
from bench.platform import Platform
from bench.processor import processor_time
from bench.rounds import say
from tests.support.browser import CHROMIUM, Page, browser

RECORDS = 100_000
WINDOW = 200
OPENED = 5
MEASURED = 100
"""Windows whose processor time is measured: that of a window is the same on a busy machine."""
MOST_MILLISECONDS = 150.0
MOST_PAINT = 1000.0
MOST_MEGABYTES = 200.0
_COLORS = {"Open": "blue", "Doing": "yellow", "Done": "green"}
_OPTIONS = [{"name": name, "color": color} for name, color in _COLORS.items()]
_FIELDS = [
    *({"label": f"Text {at}", "kind": "text"} for at in range(4)),
    *({"label": f"Number {at}", "kind": "number"} for at in range(4)),
    *({"label": f"State {at}", "kind": "select", "options": _OPTIONS} for at in range(2)),
    *({"label": f"Day {at}", "kind": "date"} for at in range(2)),
    {"label": "Checked", "kind": "checkbox"},
    {"label": "Mail", "kind": "email"},
]
_ROWS = """
INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at, updated_at)
SELECT uuidv7(-age), %(workspace_id)s, %(database_id)s, 'Record ' || n, jsonb_build_object(
    'text_0', 'Some text ' || n, 'text_1', 'Other ' || n %% 97, 'text_2', 'words',
    'number_0', n, 'number_1', n %% 1000, 'number_2', n * 0.5, 'number_3', n %% 7,
    'state_0', (ARRAY['open', 'doing', 'done'])[1 + n %% 3], 'state_1', 'open',
    'day_0', '2026-01-' || lpad((1 + n %% 28)::text, 2, '0'), 'day_1', '2026-02-01',
    'checked', n %% 2 = 0, 'mail', 'name' || n || '@example.test'
), false, now() - age, now() - age
FROM (SELECT n, make_interval(secs => random() * 1728000) AS age
    FROM generate_series(1, %(records)s::int) n OFFSET 0) old
"""
_SCROLL = """(async () => {
  const box = document.querySelector('.sheet');
  for (let step = 0; step < 100; step += 1) {
    box.scrollTop = box.scrollHeight;
    await new Promise((done) => setTimeout(done, 20));
  }
  return Math.round(document.querySelector('.sheet-body').clientHeight / 34);
})()"""
"""Scrolls to the end for a while, and gives the rows that were read by then."""


async def grid_figures(platform: Platform, session: httpx2.AsyncClient) -> list[Figure]:
    """Windows of 200 of 100,000 records with 15 fields; `session` is one of a browser."""
    body = {"label": "Large", "fields": _FIELDS}
    place = f"workspaces/{platform.connection['workspaceId']}"
    database_id = str((await platform.post(f"/v1/{place}/databases", body))["id"])
    values = {"workspace_id": platform.connection["workspaceId"], "database_id": database_id}
    await platform.database.execute(_ROWS, {**values, "records": RECORDS})
    await platform.database.execute("ANALYZE record")
    figures = [await _windows(platform, database_id)]
    if CHROMIUM is None:
        say("  no Chromium: the table is not opened")
        return figures
    with tempfile.TemporaryDirectory() as profile:
        async with browser(Path(profile)) as protocol, protocol.page() as page:
            for name, value in session.cookies.items():
                url = str(session.base_url)
                await page.send("Network.setCookie", name=name, value=value, url=url, httpOnly=True)
            path = f"{session.base_url}/{place}/databases/{database_id}"
            return figures + await _opened(page, path)


async def _windows(platform: Platform, database_id: str) -> Figure:
    """All windows along the cursor, in turns with a query that no record passes."""
    nothing = {"limit": WINDOW, "filter": {"field": "number_0", "op": "eq", "value": -1}}
    times: list[float] = []
    empty: list[float] = []

    async def ask(body: dict[str, Any], taken: list[float]) -> dict[str, Any]:
        started = time.perf_counter()
        answer = await platform.post(f"/v1/databases/{database_id}/records/query", body)
        taken.append(time.perf_counter() - started)
        return answer

    async def windows(count: int) -> AsyncIterator[None]:
        cursor: str | None = None
        for _ in range(count):
            body = {"limit": WINDOW, **({"cursor": cursor} if cursor else {})}
            cursor = (await ask(body, times))["cursor"]
            yield

    async for _ in windows(RECORDS // WINDOW):
        await ask(nothing, empty)
    with processor_time({name: platform.pid(name) for name in ("api", "postgres")}) as spent:
        async for _ in windows(MEASURED):
            pass
    figure = Figure(f"window of {WINDOW}, p95 of {MOST_MILLISECONDS:.0f} ms", "ms", at_most=1.0)
    figure.add(quantile(times, 0.95) * 1000, MOST_MILLISECONDS)
    figure.tails = (
        f"p50 {quantile(times, 0.5) * 1000:.0f} max {max(times) * 1000:.0f} ms; without a record"
        f" p50 {quantile(empty, 0.5) * 1000:.0f} p95 {quantile(empty, 0.95) * 1000:.0f} ms;"
        f" processor time of a window: API {spent.of('api') / MEASURED:.1f},"
        f" PostgreSQL {spent.of('postgres') / MEASURED:.1f} ms"
    )
    return figure


async def _opened(page: Page, path: str) -> list[Figure]:
    """First paint, the first rows, and the memory of the page after all of it was seen."""
    await page.send("Performance.enable")
    empty = await _heap(page)
    paint = Figure(f"first paint of the table, of {MOST_PAINT:.0f} ms", "ms", at_most=1.0)
    rows = []
    for _ in range(OPENED):
        await page.open(path)
        await page.until("document.querySelectorAll('.sheet .row').length > 10")
        rows.append(await page.evaluate("performance.now()"))
        entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        paint.add(await page.evaluate(entry), MOST_PAINT)
    paint.tails = f"rows are there after {min(rows):.0f} to {max(rows):.0f} ms"
    started = time.monotonic()
    seen, before = 0, -1
    while seen != before:
        seen, before = await page.evaluate(_SCROLL), seen
    say(f"  {seen:,} rows scrolled through in {time.monotonic() - started:.0f} s")
    memory = Figure(f"memory of the table, of {MOST_MEGABYTES:.0f} MB", "MB", at_most=1.0)
    memory.add(await _heap(page), MOST_MEGABYTES)
    memory.tails = f"an empty page has {empty:.1f} MB; {seen:,} rows were seen"
    return [paint, memory]


async def _heap(page: Page) -> float:
    """Megabytes of the heap of the scripts after a collection."""
    await page.send("HeapProfiler.collectGarbage")
    metrics = (await page.send("Performance.getMetrics"))["metrics"]
    named: Mapping[str, float] = {one["name"]: one["value"] for one in metrics}
    return named["JSHeapUsedSize"] / 1e6
