"""The filters of the list of runs, without scripts: they stand in the URL and come back."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.ageing import make_automation
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor
from tests.support.written_runs import BEGIN, insert_run, node

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture
async def version(space: Space) -> Any:
    return await make_automation(space)


async def test_filters_stand_in_the_url_and_in_the_form(
    owner: Visitor, space: Space, version: Any
) -> None:
    failed = node("pay", 0, status="failed", error_code="declined")
    first = await insert_run(space, version, 0, [failed], trigger_payload={"name": "Ada"})
    second = await insert_run(space, version, 1, trigger_payload={"name": HOSTILE})
    path = f"/workspaces/{space.id}/runs"
    page = (await owner.get(path, params={"text": "ada", "errorCode": "", "since": ""})).text
    assert (f"run-{first}" in page, f"run-{second}" in page) == (True, False)
    assert 'name="text"' in page
    assert 'value="ada"' in page
    assert '<details class="more" ><summary>' in page, "closed"
    assert "automation-runs?text=ada&amp;limit=" in page, "the equal call"
    page = (await owner.get(path, params={"errorCode": "declined", "minSeconds": "30"})).text
    assert f"run-{first}" in page
    assert '<details class="more" open>' in page
    assert f"{path}?minSeconds=30.0&amp;errorCode=declined&amp;status=failed" in page, "a tab"
    versions = (await owner.get(path, params={"automationId": str(version.automation_id)})).text
    assert f'<option value="{version.id}"' in versions
    hostile = (await owner.get(path, params={"text": HOSTILE, "failedNodeId": "<b>"})).text
    assert "<script>alert" not in hostile
    assert "<img src=x" not in hostile
    assert "No matching runs" in hostile


async def test_times_of_fields_are_in_utc(owner: Visitor, space: Space, version: Any) -> None:
    first = await insert_run(space, version, 0)
    second = await insert_run(space, version, 2)
    path = f"/workspaces/{space.id}/runs"
    time = f"{BEGIN + timedelta(minutes=1):%Y-%m-%dT%H:%M}"
    later = (await owner.get(path, params={"startedSince": time})).text
    assert (f"run-{first}" in later, f"run-{second}" in later) == (False, True)
    assert f'name="startedSince" value="{time}"' in later
    earlier = (await owner.get(path, params={"until": f"{time}:30.000Z"})).text
    assert (f"run-{first}" in earlier, f"run-{second}" in earlier) == (True, False)
    assert (await owner.get(path, params={"since": "2026-13-01T00:00"})).status_code == 400


async def test_a_search_continues_among_older_runs(
    owner: Visitor, space: Space, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.automation.automation_runs.filters.LOOKED_THROUGH", 2)
    old = await insert_run(space, version, 0, trigger_payload={"name": "Ada"})
    for number in range(1, 4):
        await insert_run(space, version, number)
    path = f"/workspaces/{space.id}/runs?text=Ada"
    page = await owner.get(path)
    assert "data-refresh" not in page.text
    (older,) = [
        part.split('"')[0].replace("&amp;", "&")
        for part in page.text.split('href="')[1:]
        if "cursor=" in part.split('"')[0]
    ]
    assert f"run-{old}" in (await owner.get(older)).text
    assert "data-refresh" in (await owner.get(f"/workspaces/{space.id}/runs")).text


async def test_a_search_that_takes_too_long_says_so_in_the_page(
    owner: Visitor, space: Space, version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        await insert_run(space, version, number, trigger_payload={"text": "x" * 3_000_000})
    monkeypatch.setattr("models.automation.automation_runs.filters.SEARCH_TIME", "5ms")
    page = await owner.get(f"/workspaces/{space.id}/runs?text=nowhere")
    assert page.status_code == 400
    assert "took too long" in page.text
    assert 'value="nowhere"' in page.text


async def test_the_page_of_a_run_leads_to_the_runs_with_its_attributes(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space)
    body = {"attributes": {"order": "A, 17"}}
    run = read(await client.post(f"{path_of(made)}/run", json=body))
    await client.post(f"{path_of(made)}/run", json={"attributes": {"order": "18"}})
    page = (await owner.get(f"/runs/{run['id']}")).text
    links = re.findall(r'href="(/workspaces/[^"]*attribute=[^"]*)"', page)
    assert links == [f"/workspaces/{space.id}/runs?attribute=order%3AA%5C%2C+17"]
    listed = (await owner.get(links[0])).text
    assert set(re.findall(r'href="/runs/([^"/]+)"', listed)) == {run["id"]}
    assert 'value="order:A\\, 17"' in listed
    assert "order:A, 17" in listed, "the note of the row"
