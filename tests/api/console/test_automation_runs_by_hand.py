"""Runs by hand: payloads of earlier runs, tests, and the success rate of the list."""

import base64
import subprocess
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from api.console.automations.run_forms import webhook_call
from models.automation.automation_runs.history import recent_outcomes
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import WebhookTrigger
from models.automation.webhooks.rules import Delivery, is_genuine
from models.core.access.rules import Role
from runtime.clock import utc_now
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


URL = "https://platform.test/v1/hooks/token"
SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes ...").decode()
HMAC = {"scheme": "hmac_sha256", "header": "X-Signature"}
CURL = """curl() { printf '%s\\0' "$@"; }"""


def sent_by(command: str) -> Delivery:
    """What a command of the page sends: curl is replaced by what prints its arguments."""
    # The secret of the example is a placeholder.
    script = CURL + "\n" + command.replace("WEBHOOK_SECRET='...'", f"WEBHOOK_SECRET='{SECRET}'")
    done = subprocess.run(["/bin/bash", "-eu", "-c", script], check=True, capture_output=True)
    arguments = done.stdout.decode().split("\0")
    by_option = list(pairwise(arguments))
    headers = [text.split(": ", 1) for option, text in by_option if option == "-H"]
    for option, text in by_option:
        if option == "-u":
            headers.append(["authorization", f"Basic {base64.b64encode(text.encode()).decode()}"])
    assert URL in arguments
    body = next((text for option, text in by_option if option == "-d"), "")
    method = next(text for option, text in by_option if option == "-X")
    pairs = [(name.lower(), value) for name, value in headers]
    return Delivery(method, pairs, b"", body.encode())


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"auth": "none"},
        {"auth": "basic"},
        {"auth": "basic", "secretName": "hook"},
        {"auth": "header"},
        {"auth": "header", "header": "Authorization"},
        {"methods": ["GET"]},
        {"methods": ["PUT", "POST"]},
        {"methods": ["DELETE"], "auth": "header", "header": "X-Key"},
        {"signature": HMAC},
        {"signature": {**HMAC, "encoding": "base64"}},
        {"signature": {**HMAC, "timestampHeader": "X-Time"}},
        {"signature": {**HMAC, "timestampHeader": "X-Signature"}},
        {"signature": {**HMAC, "signedContent": 'it\'s `a` "$(date)" {body}!'}},
        {
            "signature": {
                **HMAC,
                "timestampHeader": "X-Time",
                "signedContent": "{timestamp}/{body}",
            }
        },
    ],
    ids=str,
)
def test_the_example_call_of_a_webhook_is_genuine(config: dict[str, Any]) -> None:
    trigger = read_trigger({"kind": "webhook", **config})
    assert isinstance(trigger, WebhookTrigger)
    delivery = sent_by(webhook_call(trigger, URL))
    assert delivery.method in trigger.methods
    assert is_genuine(trigger, [SECRET], delivery, utc_now())
    others = is_genuine(trigger, ["whsec_" + base64.b64encode(b"?").decode()], delivery, utc_now())
    assert others is (trigger.auth == "none")
    assert (delivery.body == b"") is (delivery.method in {"GET", "DELETE"})


async def test_the_page_of_an_automation_explains_its_webhook(
    client: Client, app: FastAPI, space: Space, owner: Visitor
) -> None:
    config = {"kind": "webhook", "methods": ["POST", "PUT"], "auth": "basic"}
    made = await create(client, space, graph=DAY, triggerConfig=config)
    path = path_of(made).removeprefix("/v1")
    page = unescape((await owner.get(path)).text)
    for text in (
        f"https://platform.test{made['webhookPath']}",
        "POST, PUT",
        "Basic: any user name, with the webhook secret as the password",
        '-u "webhook:$WEBHOOK_SECRET"',
        "Publish the automation first.",
    ):
        assert text in page
    assert made["webhookSecret"] not in page
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        assert made["webhookPath"] not in (await viewer.get(path)).text
    plain = await publish(client, space)
    shown = (await owner.get(path_of(plain).removeprefix("/v1"))).text
    assert 'id="webhook"' not in shown
