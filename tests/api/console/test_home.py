"""The first page: first steps, open incidents, runs by the hour, imported data."""

import re
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import insert, update

from api.console.controls import HEIGHT, chart_of
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.run_statistics import EndedRuns, Grain, Period, RunStatistics
from models.core.access.rules import Role
from runtime.clock import utc_now
from tests.support.ageing import make_automation, run_row
from tests.support.automations import publish
from tests.support.client import Client
from tests.support.incidents import open_incident
from tests.support.spaces import Space
from tests.support.visitor import COOKIE, Visitor, signed_in

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"


async def ended(space: Space, version: Any, status: str, **values: Any) -> None:
    at = utc_now() - timedelta(minutes=1)
    row = run_row(space, version, status="running", created_at=at, started_at=at)
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == row["id"])
            .values(status=status, completed_at=utc_now(), **values)
        )


async def test_similar_failures_are_one_open_incident(
    client: Client, space: Space, owner: Visitor
) -> None:
    """They are listed once, and no more when the incident was closed by a repair."""
    home = f"/workspaces/{space.id}"
    assert "No open incidents" in (await owner.get(home)).text
    made = await publish(client, space, label="Orders")
    incident_id = await open_incident(space, made["id"], f"No stock {HOSTILE}")
    for _ in range(2):
        assert await open_incident(space, made["id"], f"No stock {HOSTILE}") == incident_id
    listed = section((await owner.get(home)).text, "incidents")
    assert (listed.count("<tr>"), f"{home}/incidents/{incident_id}" in listed) == (2, True)
    assert ">3<" in listed
    assert "No stock &lt;img" in listed
    await client.post(f"{space.path}/incidents/{incident_id}/close")
    page = (await owner.get(home)).text
    assert "No open incidents" in section(page, "incidents")
    assert "Failures" not in page


async def test_a_day_of_runs_is_drawn(space: Space, owner: Visitor) -> None:
    version = await make_automation(space)
    home = f"/workspaces/{space.id}"
    assert "<figure" not in (await owner.get(home)).text
    for _ in range(4):
        await ended(space, version, "failed", error="Something else")
    await ended(space, version, "succeeded")
    chart = (await owner.get(home)).text.partition("<figure")[2].partition("</figure>")[0]
    assert "5 runs: 1 succeeded, 4 failed" in chart
    statistics = (await owner.get(f"{home}/runs/statistics")).text
    assert "5 runs: 1 succeeded, 4 failed" in statistics
    assert '<td class="tight">Run</td>' in statistics
    by_day = await owner.get(f"{home}/runs/statistics?by=day")
    assert "By day" in by_day.text
    assert (await owner.get(f"{home}/runs/statistics?by=week")).status_code == 400


async def test_first_steps_are_ticked_as_they_are_taken(
    client: Client, space: Space, owner: Visitor
) -> None:
    home = f"/workspaces/{space.id}"

    async def left() -> list[str]:
        listed = section((await owner.get(home)).text, "first")
        return re.findall(r'<a href="/workspaces/[^"]+">([^<]+)</a>', listed)

    assert await left() == [
        "Create a database",
        "Create an automation",
        "Run an automation",
        "Invite someone",
    ], "the client has a key"
    await client.post(f"{space.path}/databases", json={"label": "Orders"})
    made = await publish(client, space, label="Hello")
    assert await left() == ["Run an automation", "Invite someone"]
    await client.post(f"{space.path}/automations/{made['id']}/run", json={})
    invited = {"email": "bo@example.com", "role": "editor"}
    assert (await client.post(f"{space.path}/invitations", json=invited)).status_code == 201
    assert 'id="first"' not in (await owner.get(home)).text, "none is left"


async def test_first_steps_can_be_dismissed(space: Space, owner: Visitor) -> None:
    home = f"/workspaces/{space.id}"
    assert 'id="first"' in (await owner.get(home)).text
    answer = await owner.send_form(f"{home}/first-steps/dismiss", page=home)
    assert (answer.status_code, answer.headers["location"]) == (303, home)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    page = await owner.get(home, headers={"Cookie": f"{COOKIE}={owner.cookie}; {cookie}"})
    assert 'id="first"' not in page.text


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        (Role.OWNER, ["Invite", "Import", "New database", "New automation"]),
        (Role.EDITOR, ["Import", "New database", "New automation"]),
        (Role.VIEWER, []),
    ],
)
async def test_the_first_page_offers_what_the_reader_may_do(
    app: FastAPI, space: Space, role: Role, buttons: list[str]
) -> None:
    user_id, _ = await space.member(role)
    async with await signed_in(app, space, user_id) as member:
        page = (await member.get(f"/workspaces/{space.id}")).text
    head = page.partition('<div class="head">')[2].partition('id="live"')[0]
    assert re.findall(r'<a class="button[^>]*>([^<]+)<', head) == buttons
    assert ('id="first"' in page) is bool(buttons)


def section(page: str, name: str) -> str:
    return page.partition(f'id="{name}"')[2].partition("</section>")[0]


@pytest.mark.parametrize(
    "outcomes",
    [
        {"succeeded": 10_000, "failed": 1, "cancelled": 1, "timed_out": 1},
        {"succeeded": 1},
        {"failed": 3, "succeeded": 3},
        {},
    ],
)
def test_bars_fill_their_column_and_show_each_outcome(outcomes: dict[str, int]) -> None:
    counts = {RunStatus(name): number for name, number in outcomes.items()}
    runs = sum(counts.values())
    total = EndedRuns(runs=runs, outcomes=counts, duration=None, queueing=None)
    period = Period(start=utc_now(), runs=runs, outcomes=counts, duration=None, queueing=None)
    statistics = RunStatistics(
        by=Grain.HOUR,
        since=period.start,
        until=period.start,
        total=total,
        periods=[period],
        failing_nodes=[],
        busiest_keys=[],
    )
    (column,) = chart_of(statistics).columns
    assert {bar.status for bar in column.bars} == set(counts)
    assert sum(bar.height for bar in column.bars) == pytest.approx(HEIGHT if runs else 0, abs=8)
    assert all(bar.height >= 2 and 0 <= bar.y <= HEIGHT for bar in column.bars)


async def test_a_refusal_tells_each_fault_once(owner: Visitor, space: Space) -> None:
    answer = await owner.get(f"/workspaces/{space.id}?nope=1&other=2")
    assert answer.status_code == 400
    assert answer.text.count("Unknown query parameter.") == 2
    assert answer.text.count("<b>nope</b>") == 1
