"""The inbox over HTTP: calls of webhooks with their outcomes, filters, replays, and summaries."""

import base64
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import update

from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Role
from tests.support.automations import create, path_of, read, refusal
from tests.support.client import Client
from tests.support.hooks import Json, make_hook, send
from tests.support.spaces import Space


@pytest.fixture
def stranger(client: Client) -> Client:
    """A client without any credential."""
    return client.with_token(None)


def events_of(space: Space) -> str:
    return f"/v1/workspaces/{space.id}/trigger-events"


async def listed(client: Client, space: Space, **query: Any) -> Sequence[Json]:
    events: list[Json] = read(await client.get(events_of(space), params=query))["events"]
    return events


async def only(client: Client, space: Space, made: Json) -> Json:
    """The one event of an automation."""
    (event,) = await listed(client, space, automationId=made["id"])
    return event


async def test_a_call_that_starts_a_run_is_kept_with_it(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    run_id = read(await send(stranger, made), 202)["runId"]
    event = await only(client, space, made)
    assert event["source"] == "webhook"
    (outcome,) = event["outcomes"]
    assert (outcome["outcome"], outcome["runId"]) == ("run", run_id)
    shown = read(await client.get(f"{events_of(space)}/{event['id']}"))
    assert shown["payload"]["body"] == {"n": 1}


async def outcome_of(client: Client, space: Space, made: Json) -> Json:
    """The one outcome of the newest event of an automation."""
    newest = (await listed(client, space, automationId=made["id"]))[0]
    (outcome,) = newest["outcomes"]
    return dict(outcome)


async def test_a_filtered_call_says_which_term_met_which_value(
    client: Client, space: Space, stranger: Client
) -> None:
    tree = {
        "and": [
            {"field": "trigger.method", "op": "eq", "value": "POST"},
            {"field": "trigger.body.n", "op": "gt", "value": 5},
        ]
    }
    for given in (tree, "trigger.method == 'POST' && trigger.body.n > 5"):
        made = await make_hook(client, space, filter=given)
        assert read(await send(stranger, made), 202)["status"] == "filtered"
        outcome = await outcome_of(client, space, made)
        assert (outcome["outcome"], outcome.get("runId")) == ("filtered", None)
        detail = outcome["detail"]
        if isinstance(given, str):
            assert detail == {"term": "trigger.body.n > 5", "value": {"trigger.body.n": 1}}
        else:
            assert detail == {"term": tree["and"][1], "value": 1}


async def test_a_repeated_call_is_a_duplicate_of_its_run(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    run_id = read(await send(stranger, made, message_id="msg_once"), 202)["runId"]
    read(await send(stranger, made, message_id="msg_once"))
    outcome = await outcome_of(client, space, made)
    assert (outcome["outcome"], outcome["runId"]) == ("duplicate", run_id)


async def test_slots_are_outcomes_of_their_own(
    client: Client, space: Space, stranger: Client
) -> None:
    for policy, status, expected in (("skip", 202, "skipped"), ("queue", 202, "queued")):
        made = await make_hook(client, space, concurrency={"limit": 1, "policy": policy})
        read(await send(stranger, made), 202)
        read(await send(stranger, made), status)
        outcome = await outcome_of(client, space, made)
        assert outcome["outcome"] == expected
        assert outcome["detail"] == {"limit": 1, "policy": policy, "key": "null"}


@pytest.mark.parametrize("subject", ["automation", "workspace"])
@pytest.mark.parametrize("config", [{}, {"concurrency": {"limit": 1}}], ids=["free", "limited"])
async def test_a_pause_is_an_outcome_that_names_its_subject(
    client: Client, space: Space, stranger: Client, subject: str, config: Json
) -> None:
    made = await make_hook(client, space, **config)
    paused = path_of(made) if subject == "automation" else space.path
    read(await client.post(f"{paused}/pause", json={"reason": "Stocktaking"}))
    run_id = read(await send(stranger, made), 202)["runId"]
    outcome = await outcome_of(client, space, made)
    assert (outcome["outcome"], outcome["runId"]) == ("paused", run_id)
    assert outcome["detail"] == {"subject": subject}


async def test_refused_calls_are_kept_without_their_secrets(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="header", methods=["POST"])
    path, secret = made["webhookPath"], made["webhookSecret"]
    assert (await stranger.put(path, json={})).status_code == 405
    assert (await outcome_of(client, space, made))["outcome"] == "wrong_method"
    wrong = {"X-Webhook-Secret": "guessed", "X-Other": f"near {secret}"}
    body = {"password": "hunter2", "note": f"is it {secret}?"}
    assert (await stranger.post(path, json=body, headers=wrong)).status_code == 401
    assert (await outcome_of(client, space, made))["outcome"] == "unverified"
    newest = (await listed(client, space, automationId=made["id"]))[0]
    payload = read(await client.get(f"{events_of(space)}/{newest['id']}"))["payload"]
    text = str(payload)
    assert "hunter2" not in text
    assert secret not in text
    assert "guessed" not in text
    right = {"X-Webhook-Secret": secret, "Content-Type": "application/json"}
    assert (await stranger.post(path, content=b"{", headers=right)).status_code == 400
    assert (await outcome_of(client, space, made))["outcome"] == "invalid"


_CUT = '{"password": "hunter2", "rest": "'


@pytest.mark.parametrize("auth", ["none", "signature"])
@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("application/json", _CUT),
        ("application/json", f'{_CUT}{"x" * 70_000}"}}'),
        ("application/json", '{"inner": "{\\"password\\": \\"hunter2\\"}"}'),
        ("application/json", '{"from": "https://me:hunter2@example.test/?token=hunter2"}'),
        ("application/json", '{"pass\\u0077ord": "hunter2", "rest": "'),
        ("text/plain", '{"password": "hunter2"}'),
        ("application/x-www-form-urlencoded", "note=password=hunter2"),
        ("application/xml", "<call><password>hunter2</password></call>"),
    ],
)
async def test_secrets_in_texts_are_left_out(
    client: Client, space: Space, stranger: Client, auth: str, content_type: str, content: str
) -> None:
    made = await make_hook(client, space, auth=auth)
    headers = {"Content-Type": content_type, "Referer": "https://example.test/?token=hunter2"}
    await stranger.post(made["webhookPath"], content=content, headers=headers)
    event = await only(client, space, made)
    shown = await client.get(f"{events_of(space)}/{event['id']}")
    assert "hunter2" not in shown.text


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le"])
async def test_a_body_in_base64_that_names_a_secret_is_left_out(
    client: Client, space: Space, stranger: Client, charset: str
) -> None:
    made = await make_hook(client, space, auth="none")
    headers = {"Content-Type": "application/octet-stream"}
    for text in ("password=hunter2", "colour=red"):
        content = b"\xff\xfe" + text.encode(charset)
        await stranger.post(made["webhookPath"], content=content, headers=headers)
    bodies = [
        read(await client.get(f"{events_of(space)}/{event['id']}"))["payload"]["body"]
        for event in await listed(client, space, automationId=made["id"])
    ]
    assert bodies == [base64.b64encode(content).decode(), "[redacted]"]


async def test_a_call_with_a_body_that_is_too_large_is_kept_without_it(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none")
    answer = await stranger.post(made["webhookPath"], content=b"x" * (1024 * 1024 + 1))
    assert answer.status_code == 413
    assert (await outcome_of(client, space, made))["outcome"] == "too_large"
    event = await only(client, space, made)
    shown = read(await client.get(f"{events_of(space)}/{event['id']}"))
    assert shown["payload"]["body"] is None


async def test_events_of_hidden_automations_do_not_exist(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    read(await send(stranger, made), 202)
    event = await only(client, space, made)
    closed = {"accessMode": "restricted", "grants": []}
    read(await client.put(f"/v1/items/{made['itemId']}/access", json=closed))
    _, token = await space.member(Role.EDITOR)
    viewer = client.with_token(token)
    named = await viewer.get(events_of(space), params={"automationId": made["id"]})
    assert refusal(named) == (404, "not_found")
    assert await listed(viewer, space, outcome="run", subjectId=made["id"]) == []
    gone = await viewer.get(f"{events_of(space)}/{event['id']}")
    assert refusal(gone) == (404, "not_found")
    assert (await viewer.get(f"{path_of(made)}/why-not")).status_code == 404
    body = {"automationId": made["id"]}
    replayed = await viewer.post(f"{events_of(space)}/{event['id']}/replay", json=body)
    assert refusal(replayed) == (404, "not_found")


async def test_closed_webhooks_say_why_and_unknown_addresses_leave_nothing(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    read(await client.patch(path_of(made), json={"enabled": False}))
    assert (await send(stranger, made)).status_code == 404
    assert (await outcome_of(client, space, made))["outcome"] == "disabled"
    draft = await create(client, space, enabled=True, triggerConfig={"kind": "webhook"})
    assert (await send(stranger, draft)).status_code == 404
    assert (await outcome_of(client, space, draft))["outcome"] == "no_published_version"
    before = await listed(client, space)
    assert (await stranger.post("/v1/hooks/0123456789abcdef", json={})).status_code == 404
    assert await listed(client, space) == before


async def test_events_are_found_by_their_filters(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    for number in (1, 9, 2):
        read(await send(stranger, made, {"n": number, "word": f"Straße {number}"}), 202)
    mine = {"automationId": made["id"]}
    assert len(await listed(client, space, **mine)) == 3
    assert len(await listed(client, space, **mine, outcome="filtered")) == 2
    assert len(await listed(client, space, **mine, text="straße 9")) == 1
    assert len(await listed(client, space, **mine, source="schedule")) == 0
    assert len(await listed(client, space, subjectId=made["id"])) == 3
    middle = (await listed(client, space, **mine))[1]["receivedAt"]
    assert len(await listed(client, space, **mine, since=middle)) == 2
    assert len(await listed(client, space, **mine, until=middle)) == 1
    page = read(await client.get(events_of(space), params={**mine, "limit": 2}))
    assert len(page["events"]) == 2
    rest = {**mine, "limit": 2, "cursor": page["cursor"]}
    assert len(await listed(client, space, **rest)) == 1


async def test_the_summary_counts_each_reason(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    for number in (1, 9, 2):
        read(await send(stranger, made, {"n": number}), 202)
    read(await client.patch(path_of(made), json={"enabled": False}))
    await send(stranger, made)
    summary = read(await client.get(f"{path_of(made)}/why-not"))
    assert (summary["blocked"], summary["events"], summary["runs"]) == ("disabled", 4, 1)
    counts = {one["outcome"]: one["events"] for one in summary["reasons"]}
    assert counts == {"filtered": 2, "run": 1, "disabled": 1}
    later = {"since": "2999-01-01T00:00:00Z"}
    nothing = read(await client.get(f"{path_of(made)}/why-not", params=later))
    assert (nothing["events"], nothing["reasons"]) == (0, [])


async def test_a_replay_runs_the_event_on_the_version_that_is_named(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    read(await send(stranger, made, {"n": 1}), 202)
    event = await only(client, space, made)
    path = f"{events_of(space)}/{event['id']}/replay"
    key = {"Idempotency-Key": "replay-once"}
    replayed = read(await client.post(path, json={"automationId": made["id"]}, headers=key), 201)
    again = read(await client.post(path, json={"automationId": made["id"]}, headers=key), 201)
    assert again == replayed
    assert (replayed["outcome"], replayed["replay"]) == ("run", True)
    run = read(await client.get(f"{path_of(made)}/runs/{replayed['runId']}"))
    assert (run["source"], run["triggerPayload"]["body"]) == ("replay", {"n": 1})
    test = {"automationId": made["id"], "version": 1, "test": True}
    tried = read(await client.post(path, json=test), 201)
    run = read(await client.get(f"{path_of(made)}/runs/{tried['runId']}"))
    assert run["source"] == "test"
    outcomes = (await only(client, space, made))["outcomes"]
    assert [one["outcome"] for one in outcomes] == ["filtered", "run", "run"]
    summary = read(await client.get(f"{path_of(made)}/why-not"))
    assert (summary["events"], summary["runs"]) == (1, 0), "a replay is no event"


async def test_a_replay_says_which_values_were_not_kept(
    client: Client, space: Space, stranger: Client
) -> None:
    """The inbox keeps no secret, so that a replay of a call without a run has none."""
    made = await make_hook(client, space, filter="trigger.body.n > 5")
    body = {"n": 1, "user": {"password": "hunter2"}, "keys": [{"apiToken": "t-1"}], "note": "x"}
    read(await send(stranger, made, body), 202)
    event = await only(client, space, made)
    paths = ["body.keys.0.apiToken", "body.user.password"]
    path = f"{events_of(space)}/{event['id']}"
    shown = read(await client.get(path))
    assert shown["redactedPaths"] == paths
    for test in (False, True):
        asked = {"automationId": made["id"], "test": test}
        replayed = read(await client.post(f"{path}/replay", json=asked), 201)
        assert replayed["detail"]["redactedPaths"] == paths
        run = read(await client.get(f"{path_of(made)}/runs/{replayed['runId']}"))
        assert run["metadata"]["redactedPaths"] == paths
        assert run["triggerPayload"]["body"]["user"] == {"password": "[redacted]"}
        async with space.database.transaction() as work:
            ended = {"status": "failed", "completed_at": work.now, "error": "It broke."}
            this = automation_run.c.id == UUID(run["id"])
            await work.execute(update(automation_run).where(this).values(ended))
        again = read(await client.post(f"{path_of(made)}/runs/{run['id']}/retry", json={}))
        assert again["metadata"]["redactedPaths"] == paths, "a retry has the same payload"


async def test_a_replay_of_a_run_has_all_its_values(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    read(await send(stranger, made, {"n": 1, "password": "hunter2"}), 202)
    event = await only(client, space, made)
    path = f"{events_of(space)}/{event['id']}"
    assert read(await client.get(path))["redactedPaths"] == ["body.password"]
    replayed = read(await client.post(f"{path}/replay", json={"automationId": made["id"]}), 201)
    assert "redactedPaths" not in replayed["detail"]
    run = read(await client.get(f"{path_of(made)}/runs/{replayed['runId']}"))
    assert "redactedPaths" not in run["metadata"]
    assert run["triggerPayload"]["body"]["password"] == "hunter2"  # made up


@pytest.mark.parametrize("version", [99, 2**31 - 1, 2**31, 2**53])
async def test_a_replay_on_a_version_that_is_not_there_is_refused(
    client: Client, space: Space, stranger: Client, version: int
) -> None:
    made = await make_hook(client, space)
    read(await send(stranger, made), 202)
    path = f"{events_of(space)}/{(await only(client, space, made))['id']}/replay"
    body = {"automationId": made["id"], "version": version}
    assert refusal(await client.post(path, json=body)) == (400, "validation_error")


async def test_a_replay_is_refused_where_it_cannot_run(
    client: Client, space: Space, stranger: Client
) -> None:
    made, other = await make_hook(client, space), await make_hook(client, space)
    read(await send(stranger, made), 202)
    event = await only(client, space, made)
    path = f"{events_of(space)}/{event['id']}/replay"
    bodies: list[tuple[Json, tuple[int, str]]] = [
        ({"automationId": other["id"]}, (400, "validation_error")),
        ({"automationId": made["id"], "version": 7}, (400, "validation_error")),
        ({"automationId": made["id"], "version": "draft"}, (409, "run_error")),
    ]
    for body, expected in bodies:
        assert refusal(await client.post(path, json=body)) == expected
    read(await client.patch(path_of(made), json={"enabled": False}))
    answer = await client.post(path, json={"automationId": made["id"]})
    assert refusal(answer) == (409, "run_error")
