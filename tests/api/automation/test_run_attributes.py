"""Attributes of runs: given at the start, found by, and kept."""

from typing import Any

import pytest

from tests.support.automations import path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def run(client: Client, made: Json, **body: Any) -> Json:
    answer: Json = read(await client.post(f"{path_of(made)}/run", json=body))
    return answer


async def listed(client: Client, path: str, attribute: str, **query: str) -> list[str]:
    """The ids of the runs that a list has for an attribute."""
    answer = read(await client.get(path, params={"attribute": attribute, **query}))
    return [one["id"] for one in answer["runs"]]


async def test_a_run_is_found_by_the_callers_own_number(client: Client, space: Space) -> None:
    made = await publish(client, space)
    first = await run(client, made, attributes={"order": "4711", "channel": "web"})
    second = await run(client, made, attributes={"order": "4712", "channel": "web"})
    await run(client, made)
    assert first["attributes"] == {"order": "4711", "channel": "web"}
    for path in (f"{path_of(made)}/runs", f"{space.path}/automation-runs"):
        assert await listed(client, path, "order:4711") == [first["id"]]
        assert await listed(client, path, "channel:web") == [second["id"], first["id"]]
        assert await listed(client, path, "channel:web,order:4712") == [second["id"]]
        assert await listed(client, path, "order:471") == []
        assert await listed(client, path, "order:4711", status="queued") == [first["id"]]
        assert await listed(client, path, "order:4711", status="failed") == []
        assert await listed(client, path, "order:4711", text="none of this") == []


async def test_a_comma_and_a_backslash_of_a_value_are_written_with_a_backslash(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    found = await run(client, made, attributes={"place": "a\\b, c:d"})
    assert await listed(client, f"{path_of(made)}/runs", r"place:a\\b\, c:d") == [found["id"]]


@pytest.mark.parametrize(
    "attributes",
    [
        {"Order": "1"},
        {"order ": "1"},
        {"o" * 41: "1"},
        {"order": ""},
        {"order": "x" * 201},
        {"order": 1},
        {f"k{number}": "v" for number in range(21)},
    ],
)
async def test_attributes_are_few_and_short(client: Client, space: Space, attributes: Json) -> None:
    made = await publish(client, space)
    answer = await client.post(f"{path_of(made)}/run", json={"attributes": attributes})
    assert refusal(answer) == (400, "validation_error")


@pytest.mark.parametrize("attribute", ["order", ":1", "order:", "Order:1", "order:1,,", "a:1,a:2"])
async def test_a_filter_that_names_no_pairs_is_refused(
    client: Client, space: Space, attribute: str
) -> None:
    answer = await client.get(f"{space.path}/automation-runs", params={"attribute": attribute})
    assert refusal(answer) == (400, "validation_error")


async def test_each_payload_of_a_batch_has_its_own(client: Client, space: Space) -> None:
    made = await publish(client, space)
    body = {"payloads": [{}, {}], "attributes": [{"order": "1"}, {"order": "2"}]}
    answer = read(await client.post(f"{path_of(made)}/runs/batch", json=body))
    second = answer["results"][1]["runId"]
    assert await listed(client, f"{path_of(made)}/runs", "order:2") == [second]
    body = {"payloads": [{}, {}], "attributes": [{"order": "1"}]}
    refused = await client.post(f"{path_of(made)}/runs/batch", json=body)
    assert refusal(refused) == (400, "validation_error")


async def test_a_trigger_binds_attributes_and_the_caller_wins(client: Client, space: Space) -> None:
    attributes = {
        "order": {"type": "trigger", "value": "order.number"},
        "total": {"type": "expression", "value": "trigger.net * 2.0"},
        "title": {"type": "template", "value": "No. {{ trigger.order.number }}"},
        "absent": {"type": "trigger", "value": "no.such"},
        "list": {"type": "trigger", "value": "order"},
        "wrong": {"type": "expression", "value": "trigger.no.such"},
        "channel": "web",
    }
    made = await publish(client, space, triggerConfig={"kind": "manual", "attributes": attributes})
    payload = {"order": {"number": 4711}, "net": 2.5}
    begun = await run(client, made, triggerPayload=payload, attributes={"channel": "shop"})
    assert begun["attributes"] == {
        "order": "4711",
        "total": "5",
        "title": "No. 4711",
        "channel": "shop",
    }


@pytest.mark.parametrize(
    "value",
    [
        {"type": "node", "value": "a.b"},
        {"type": "secret", "value": "TOKEN"},
        {"type": "expression", "value": "nodes.a.b"},
        {"type": "template", "value": "{{ run.id }}"},
        {"type": "template", "value": "{{ trigger."},
        {"deep": {"type": "trigger", "value": "a"}},
        "",
    ],
)
async def test_an_attribute_that_the_trigger_cannot_read_is_not_published(
    client: Client, space: Space, value: Any
) -> None:
    trigger = {"kind": "manual", "attributes": {"order": value}}
    body = {"label": "Test", "graph": {"nodes": [], "edges": []}, "triggerConfig": trigger}
    made = read(await client.post(f"{space.path}/automations", json=body), 201)
    answer = await client.post(f"{path_of(made)}/publish", json={})
    assert answer.status_code == 400
    assert "triggerConfig.attributes.order" in answer.text


async def test_a_webhook_gives_its_run_attributes(client: Client, space: Space) -> None:
    trigger = {
        "kind": "webhook",
        "auth": "none",
        "attributes": {"order": {"type": "trigger", "value": "body.number"}},
    }
    made = await publish(client, space, triggerConfig=trigger)
    answer = await client.post(made["webhookPath"], json={"number": "A-17"})
    assert answer.status_code == 202, answer.text
    runs = read(await client.get(f"{path_of(made)}/runs", params={"attribute": "order:A-17"}))
    assert [one["source"] for one in runs["runs"]] == ["webhook"]


async def test_a_retry_inherits_them(client: Client, space: Space) -> None:
    made = await publish(client, space)
    begun = await run(client, made, attributes={"order": "4711"})
    place = f"{path_of(made)}/runs/{begun['id']}"
    body = {"from": "start", "cancelFirst": True}
    again = read(await client.post(f"{place}/retry", json=body))
    assert again["attributes"] == {"order": "4711"}


async def test_an_operation_takes_the_runs_of_a_saved_filter(client: Client, space: Space) -> None:
    made = await publish(client, space)
    for number in ("4711", "4712"):
        await run(client, made, attributes={"order": number})
    query = {"attribute": "order:4711"}
    saved = read(
        await client.post(f"{space.path}/run-filters", json={"label": "Mine", "query": query}), 201
    )
    assert saved["query"] == query
    body = {"action": "cancel", "filter": saved["query"]}
    preview = read(await client.post(f"{space.path}/run-operations/preview", json=body))
    assert (preview["total"], preview["fitting"]) == (1, 1)
