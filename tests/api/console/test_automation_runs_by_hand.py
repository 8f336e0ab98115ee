"""Runs by hand: payloads of earlier runs, tests, and the success rate of the list."""

from html import unescape
from typing import Any

from fastapi import FastAPI
from sqlalchemy import update

from models.automation.automation_runs.history import recent_outcomes
from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Role
from tests.support.automations import DAY, create, path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = "</textarea><img src=x onerror=alert(1)>"


async def start(client: Client, made: Any, payload: Any) -> Any:
    body = {"triggerPayload": payload}
    return read(await client.post(f"{path_of(made)}/run", json=body))


async def test_the_last_five_distinct_payloads_are_offered(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await publish(client, space)
    path = path_of(made).removeprefix("/v1")
    assert "No runs yet" in (await owner.get(f"{path}/run")).text
    runs = [
        await start(client, made, {"order": name, "note": HOSTILE})
        for name in ("a", "b", "c", "d", "e", "f", "f", "b")
    ]
    page = (await owner.get(f"{path}/run")).text
    offered = [number for number, run in enumerate(runs) if f"like={run['id']}" in page]
    assert offered == [2, 3, 4, 6, 7]
    assert '"order": "b"' in unescape(page.split("</textarea>")[0])
    earlier = (await owner.get(f"{path}/run?like={runs[4]['id']}")).text
    assert '"order": "e"' in unescape(earlier.split("</textarea>")[0])
    assert "<img src=x" not in page + earlier


async def test_a_payload_is_run_and_a_draft_is_tested(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await publish(client, space)
    path = path_of(made).removeprefix("/v1")
    page = f"{path}/run"
    answer = await owner.send_form(f"{path}/run", page, payload='{"order": 7}')
    assert answer.status_code == 303
    tested = await owner.send_form(f"{path}/test-run", page, payload="{}", simulate="on")
    assert tested.status_code == 303
    runs = read(await client.get(f"{path_of(made)}/runs"))["runs"]
    assert [(run["source"], run["triggerPayload"]) for run in runs] == [
        ("test", {}),
        ("manual", {"order": 7}),
    ]


async def test_attributes_are_pairs_that_the_run_has(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await publish(client, space)
    form = f"{path_of(made).removeprefix('/v1')}/run"
    pairs = r"order:47\,11,region:eu"
    answer = await owner.send_form(form, form, payload="{}", attributes=pairs)
    assert answer.status_code == 303
    (run,) = read(await client.get(f"{path_of(made)}/runs"))["runs"]
    assert run["attributes"] == {"order": "47,11", "region": "eu"}
    for text in ("order", "Order:1", "a:1,a:2", "order:", f"order:{'x' * 201}"):
        refused = await owner.send_form(form, form, payload="{}", attributes=text)
        assert refused.status_code == 400
        assert f'value="{text}"' in refused.text


async def test_a_draft_alone_is_tested_and_not_run(
    client: Client, space: Space, owner: Visitor
) -> None:
    made = await create(client, space)
    path = path_of(made).removeprefix("/v1")
    assert "Test draft" in (await owner.get(f"{path}/run")).text
    assert (await owner.send_form(f"{path}/run", payload="{}")).status_code >= 400
    assert (await owner.send_form(f"{path}/test-run", payload="{}")).status_code == 303


async def test_a_payload_that_is_refused_stays_in_the_form(
    client: Client, space: Space, owner: Visitor
) -> None:
    schema = {"type": "object", "required": ["order"]}
    config = {"kind": "manual", "inputSchema": schema}
    made = await publish(client, space, graph=DAY, triggerConfig=config)
    path = path_of(made).removeprefix("/v1")
    for text, words in {"{": "not valid JSON", "[]": "JSON object", '{"a": 1}': "order"}.items():
        answer = await owner.send_form(f"{path}/run", f"{path}/run", payload=text)
        assert answer.status_code == 400
        assert words in answer.text
        assert text in unescape(answer.text)
    assert read(await client.get(f"{path_of(made)}/runs"))["runs"] == []


async def test_readers_and_strangers_do_not_run(
    app: FastAPI, client: Client, space: Space, foreign: Space
) -> None:
    path = path_of(await publish(client, space)).removeprefix("/v1")
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as reader:
        assert (await reader.get(f"{path}/run")).status_code == 403
        assert (await reader.send_form(f"{path}/test-run")).status_code == 403
    async with await signed_in(app, foreign) as stranger:
        assert (await stranger.get(f"{path}/run")).status_code == 404
        assert (await stranger.send_form(f"{path}/test-run")).status_code == 404


async def test_the_list_tells_how_the_last_runs_ended(
    client: Client, space: Space, foreign: Space, owner: Visitor
) -> None:
    made = await publish(client, space)
    await create(client, space, label="Never ran")
    runs = [await start(client, made, {"number": number}) for number in range(4)]
    async with space.database.transaction() as work:
        for run, status in zip(runs, ("failed", "cancelled", "running"), strict=False):
            await work.execute(
                update(automation_run)
                .where(automation_run.c.id == run["id"])
                .values(status="running", started_at=work.now)
            )
            if status != "running":
                await work.execute(
                    update(automation_run)
                    .where(automation_run.c.id == run["id"])
                    .values(status=status, completed_at=work.now)
                )
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == runs[2]["id"])
            .values(status="succeeded", completed_at=work.now)
        )
    listed = (await owner.get(f"/workspaces/{space.id}/automations")).text
    assert "33 %" in listed
    assert "1 of 3 runs since <time" in listed
    async with foreign.database.transaction() as work:
        assert await recent_outcomes(work, foreign.actor, [made["id"]], 20) == {}
