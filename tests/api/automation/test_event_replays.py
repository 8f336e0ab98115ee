"""Replaying many events as an operation: selected, replayed once each, counted, undone."""

from collections.abc import Sequence
from typing import Any

from models.core.access.rules import Role
from tests.api.automation.test_trigger_events import listed
from tests.support.automations import read, refusal
from tests.support.client import Client
from tests.support.hooks import Json, make_hook, send
from tests.support.run_operations import carry_out, step
from tests.support.spaces import Space

FILTER = {"field": "trigger.body.n", "op": "gt", "value": 3}


def operations_of(space: Space) -> str:
    return f"{space.path}/run-operations"


async def filtered_calls(client: Client, space: Space, count: int) -> Json:
    """A webhook whose filter has let none of its calls start a run."""
    made = await make_hook(client, space, filter={"and": [FILTER]})
    stranger = client.with_token(None)
    for number in range(count):
        read(await send(stranger, made, {"n": number % 3}), 202)
    return made


async def accepted(client: Client, space: Space, **replay: Any) -> Json:
    body = {"action": "replay", "replay": replay}
    return dict(read(await client.post(operations_of(space), json=body), 202))


async def outcomes(client: Client, space: Space, made: Json) -> Sequence[Json]:
    events = await listed(client, space, automationId=made["id"])
    return [one for event in events for one in event["outcomes"]]


async def test_the_events_of_a_filter_are_replayed_once_each(client: Client, space: Space) -> None:
    made = await filtered_calls(client, space, 5)
    wanted = {"automationId": made["id"], "filter": {"outcome": "filtered"}}
    body = {"action": "replay", "replay": wanted}
    preview = read(await client.post(f"{operations_of(space)}/preview", json=body))
    assert (preview["total"], preview["fitting"]) == (5, 5)
    operation = await accepted(client, space, **wanted)
    await carry_out(space.database, operation)
    ended = read(await client.get(f"{operations_of(space)}/{operation['id']}"))
    assert (ended["status"], ended["total"], ended["succeeded"]) == ("succeeded", 5, 5)
    assert ended["replay"]["filter"]["outcome"] == "filtered"
    replayed = [one for one in await outcomes(client, space, made) if one["replay"]]
    results = read(await client.get(f"{operations_of(space)}/{operation['id']}/results"))
    assert {one["newRunId"] for one in results["results"]} == {one["runId"] for one in replayed}
    assert len(replayed) == 5


async def test_a_preview_says_which_values_were_not_kept(client: Client, space: Space) -> None:
    made = await filtered_calls(client, space, 2)
    stranger = client.with_token(None)
    read(await send(stranger, made, {"n": 1, "token": "t-1"}), 202)
    read(await send(stranger, made, {"n": 9, "token": "t-2"}), 202)
    wanted = {"automationId": made["id"], "filter": {}}
    body = {"action": "replay", "replay": wanted}
    preview = read(await client.post(f"{operations_of(space)}/preview", json=body))
    assert (preview["total"], preview["examined"]) == (4, 4)
    assert (preview["redacted"], preview["redactedPaths"]) == (1, ["body.token"])
    later = {**wanted, "filter": {"since": preview["until"]}}
    none = await client.post(
        f"{operations_of(space)}/preview", json={"action": "replay", "replay": later}
    )
    assert read(none)["total"] == 0


async def test_a_step_that_is_repeated_replays_nothing_again(client: Client, space: Space) -> None:
    made = await filtered_calls(client, space, 3)
    events = [one["id"] for one in await listed(client, space, automationId=made["id"])]
    operation = await accepted(client, space, automationId=made["id"], eventIds=events * 2)
    await carry_out(space.database, operation)
    assert await step(space.database, operation["id"]) == "closed"
    replayed = [one for one in await outcomes(client, space, made) if one["replay"]]
    assert len(replayed) == 3
    undo = read(await client.post(f"{operations_of(space)}/{operation['id']}/undo", json={}), 202)
    await carry_out(space.database, undo)
    run = read(await client.get(f"{space.path}/automations/{made['id']}/runs"))
    assert {one["status"] for one in run["runs"]} == {"cancelled"}


async def test_an_event_that_cannot_be_replayed_has_its_reason(
    client: Client, space: Space
) -> None:
    made, other = [await filtered_calls(client, space, 1) for _ in range(2)]
    (event,) = await listed(client, space, automationId=other["id"])
    operation = await accepted(client, space, automationId=made["id"], eventIds=[event["id"]])
    await carry_out(space.database, operation)
    results = read(await client.get(f"{operations_of(space)}/{operation['id']}/results"))
    (result,) = results["results"]
    assert (result["runId"], result["outcome"]) == (event["id"], "failed")
    assert "did not reach" in result["reason"]


async def test_events_are_named_once_and_by_who_may_edit(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await filtered_calls(client, space, 1)
    wanted = {"automationId": made["id"], "filter": {}}
    for body in (
        {"action": "replay"},
        {"action": "replay", "replay": {"automationId": made["id"]}},
        {"action": "replay", "replay": wanted, "runIds": [made["id"]]},
        {"action": "cancel", "filter": {}, "replay": wanted},
        {"action": "replay", "replay": {**wanted, "version": 99}},
    ):
        answer = await client.post(operations_of(space), json=body)
        assert answer.status_code in {400, 404}, answer.text
    body = {"action": "replay", "replay": wanted}
    _, token = await space.member(Role.VIEWER)
    viewer = client.with_token(token)
    assert refusal(await viewer.post(operations_of(space), json=body))[0] == 403
    stranger = client.with_token(foreign.token)
    assert refusal(await stranger.post(operations_of(foreign), json=body))[0] == 404
