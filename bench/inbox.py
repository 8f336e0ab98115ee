"""The inbox of events: what keeping them costs a run and a record event, and reading many."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bench.figures import Figure
from bench.graphs import ONE_QUICK, THREE_QUICK
from bench.platform import Platform
from bench.processor import processor_time
from bench.rounds import Rounds
from bench.webhooks import call_hook, publish_hook

OWN = ("api", "worker", "postgres")
FEW = 10_000
_AT_ONCE = 20
_SLICES = 4
_READS = 20
_TABLES = ("inbox_event", "inbox_outcome")
_SKIPPING = """
CREATE OR REPLACE FUNCTION bench_skip() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RETURN NULL; END $$
"""
_EVENTS = """
INSERT INTO inbox_event (id, workspace_id, source, subject_id, payload, payload_bytes, received_at)
SELECT gen_random_uuid(), %(workspace)s::uuid, 'webhook', %(automation)s::uuid,
    '{"body": {"n": 1}}', 16, now() - make_interval(secs => n * 0.05)
FROM generate_series(1, %(count)s::bigint) AS n
"""
_OUTCOMES = """
INSERT INTO inbox_outcome (id, workspace_id, event_id, automation_id, source, outcome,
    received_at, judged_at)
SELECT gen_random_uuid(), workspace_id, id, subject_id, source, 'filtered', received_at, received_at
FROM inbox_event WHERE subject_id = %(automation)s::uuid
"""


async def inbox_costs(platform: Platform, rounds: Rounds, count: int) -> list[Figure]:
    """Processor time with and without what the inbox keeps."""
    run = Figure("processor time of a webhook run, kept vs not kept", "ms", at_most=1.05)
    filtered = Figure("processor time of a record event, filtered vs dropped", "ms", at_most=1.15)
    hook = await publish_hook(platform, THREE_QUICK)
    records = [await _watched(platform, trigger) for trigger in (_FILTERED, _OTHER)]
    await platform.database.execute(_SKIPPING)
    part = max(1, count // _SLICES)
    call = partial(_calls, platform, hook, part)
    adds = [partial(_add, platform, path, part) for path in records]
    for work in (call, *adds):
        await _spent(platform, count, work)
    for _ in rounds:
        # In short turns, so that what else the machine does meets both sides.
        spent = [0.0, 0.0, 0.0, 0.0]
        for _ in range(_SLICES):
            spent[0] += await _spent(platform, part, call)
            await _skip(platform, True)
            spent[1] += await _spent(platform, part, call)
            await _skip(platform, False)
            for place, add in enumerate(adds, 2):
                spent[place] += await _spent(platform, part, add)
        run.add(spent[0] / _SLICES, spent[1] / _SLICES)
        filtered.add(spent[2] / _SLICES, spent[3] / _SLICES)
    return [run, filtered]


_FILTERED = {"kind": "record_created", "filter": {"field": "title", "op": "eq", "value": "no"}}
_OTHER = {"kind": "record_deleted"}


async def _watched(platform: Platform, trigger: dict[str, Any]) -> str:
    """The records of a new database, to which an automation with this trigger subscribes."""
    workspace = f"/v1/workspaces/{platform.connection['workspaceId']}"
    made = await platform.post(f"{workspace}/databases", {"label": "Watched", "fields": []})
    await platform.publish("Watching", ONE_QUICK, {**trigger, "databaseId": made["id"]})
    return f"/v1/databases/{made['id']}/records"


async def _spent(platform: Platform, count: int, work: Callable[[], Awaitable[None]]) -> float:
    """Processor milliseconds of one of `count`, until nothing is open."""
    with processor_time({name: platform.pid(name) for name in OWN}) as spent:
        await work()
        await platform.settled()
        while await _events_wait(platform):
            await asyncio.sleep(0.02)
    return spent.of(*OWN) / count


async def _events_wait(platform: Platform) -> bool:
    row = await (
        await platform.database.execute("SELECT EXISTS (SELECT FROM trigger_event)")
    ).fetchone()
    return bool(row and row[0])


async def _calls(platform: Platform, hook: dict[str, Any], count: int) -> None:
    await _together(count, lambda: call_hook(platform, hook))


async def _add(platform: Platform, path: str, count: int) -> None:
    await _together(count, lambda: platform.post(path, {"title": "One"}))


async def _together(count: int, call: Callable[[], Awaitable[object]]) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with room:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


async def _skip(platform: Platform, skips: bool) -> None:
    """Let the tables of the inbox take no rows; the statements that write them stay."""
    for table in _TABLES:
        await platform.database.execute(f"DROP TRIGGER IF EXISTS bench_skip ON {table}")
        if skips:
            await platform.database.execute(
                f"CREATE TRIGGER bench_skip BEFORE INSERT ON {table}"
                " FOR EACH ROW EXECUTE FUNCTION bench_skip()"
            )


async def inbox_reads(platform: Platform, rounds: Rounds, many: int) -> list[Figure]:
    """Milliseconds of the list and of the summary, with many events against ten thousand."""
    sizes = f"{many:,} events vs {FEW:,}"
    listed = Figure(f"list of events: {sizes}", "ms", at_most=2)
    summed = Figure(f"summary of an automation: {sizes}", "ms", at_most=2)
    workspace = f"/v1/workspaces/{platform.connection['workspaceId']}"
    automation = await platform.publish("Read", ONE_QUICK)
    paths = (
        f"{workspace}/trigger-events?automationId={automation}",
        f"{workspace}/automations/{automation}/why-not",
    )
    await _fill(platform, automation, FEW)
    few = [[await _read(platform, path) for path in paths] for _ in rounds]
    await _fill(platform, automation, many)
    times = [[await _read(platform, path) for path in paths] for _ in range(len(few))]
    for ours, floor in zip(times, few, strict=True):
        listed.add(ours[0], floor[0])
        summed.add(ours[1], floor[1])
    return [listed, summed]


async def _fill(platform: Platform, automation: str, count: int) -> None:
    given = {
        "workspace": platform.connection["workspaceId"],
        "automation": automation,
        "count": count,
    }
    for table in reversed(_TABLES):
        await platform.database.execute(f"TRUNCATE {table}")
    await platform.database.execute(_EVENTS, given)
    await platform.database.execute(_OUTCOMES, given)
    await platform.database.execute("VACUUM ANALYZE inbox_event, inbox_outcome")


async def _read(platform: Platform, path: str) -> float:
    started = time.perf_counter()
    for _ in range(_READS):
        (await platform.http.get(path)).raise_for_status()
    return (time.perf_counter() - started) / _READS * 1000
