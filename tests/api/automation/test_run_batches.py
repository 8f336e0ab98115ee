"""Many runs of an automation by one request."""

from typing import Any

import pytest

from tests.support.automations import path_of, publish, read, refusal, row_counts
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def batch(client: Client, made: Json, payloads: list[Any], **headers: str) -> Json:
    body = {"payloads": payloads}
    answer: Json = read(
        await client.post(f"{path_of(made)}/runs/batch", json=body, headers=headers)
    )
    return answer


async def payloads_of(client: Client, made: Json) -> list[Json]:
    runs = read(await client.get(f"{path_of(made)}/runs", params={"limit": "100"}))["runs"]
    return [run["triggerPayload"] for run in runs]


async def test_each_payload_has_a_run_in_its_order(client: Client, space: Space) -> None:
    made = await publish(client, space)
    answer = await batch(client, made, [{"n": number} for number in range(3)])
    assert (answer["accepted"], answer["refused"]) == (3, 0)
    for number, result in enumerate(answer["results"]):
        assert set(result) == {"accepted", "runId", "status"}
        assert (result["accepted"], result["status"]) == (True, "queued")
        run = read(await client.get(f"{path_of(made)}/runs/{result['runId']}"))
        assert (run["triggerPayload"], run["source"]) == ({"n": number}, "manual")
    assert await payloads_of(client, made) == [{"n": 2}, {"n": 1}, {"n": 0}]


async def test_a_payload_that_the_schema_refuses_is_answered_alone(
    client: Client, space: Space
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    made = await publish(client, space, triggerConfig={"kind": "manual", "inputSchema": schema})
    large = {"n": 1, "text": "x" * 1024 * 1024}
    answer = await batch(client, made, [{"n": 1}, {"n": "one"}, {}, large, {"n": 2}])
    assert (answer["accepted"], answer["refused"]) == (2, 3)
    assert [result["accepted"] for result in answer["results"]] == [True, False, False, False, True]
    refused = answer["results"][1]
    assert refused["error"] == "validation_error"
    assert refused["details"][0]["path"] == "triggerPayload.n"
    assert "runId" not in refused
    assert "1 MiB" in answer["results"][3]["message"]
    assert await payloads_of(client, made) == [{"n": 2}, {"n": 1}]


async def test_payloads_beyond_the_free_slots_are_refused_where_runs_are_skipped(
    client: Client, space: Space
) -> None:
    concurrency = {"limit": 2, "policy": "skip", "keyExpression": "trigger.key"}
    made = await publish(
        client, space, triggerConfig={"kind": "manual", "concurrency": concurrency}
    )
    answer = await batch(client, made, [*[{"key": key} for key in "abaaab"], {}])
    assert [result["accepted"] for result in answer["results"]] == [
        True, True, True, False, False, True, False,
    ]  # fmt: skip
    assert {result.get("error") for result in answer["results"]} == {None, "run_error"}


@pytest.mark.long
async def test_a_thousand_payloads_are_taken_and_one_more_is_refused(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    counts = await row_counts(space)
    payloads = [{"n": number} for number in range(1_000)]
    answer = await client.post(f"{path_of(made)}/runs/batch", json={"payloads": [*payloads, {}]})
    assert refusal(answer) == (400, "validation_error")
    assert await row_counts(space) == counts
    assert (await batch(client, made, payloads))["accepted"] == 1_000


@pytest.mark.parametrize("body", [{}, {"payloads": []}, {"payloads": [1]}, {"payloads": {}}])
async def test_a_body_without_payloads_is_refused(client: Client, space: Space, body: Json) -> None:
    made = await publish(client, space)
    answer = await client.post(f"{path_of(made)}/runs/batch", json=body)
    assert refusal(answer) == (400, "validation_error")


async def test_a_batch_is_accepted_once_under_its_key(client: Client, space: Space) -> None:
    made = await publish(client, space)
    key = {"Idempotency-Key": "nightly"}
    first = await batch(client, made, [{"n": 1}, {"n": 2}], **key)
    assert await batch(client, made, [{"n": 1}, {"n": 2}], **key) == first
    shown = read(await client.get(f"{path_of(made)}/runs/batches/{first['id']}"))
    assert [run["runId"] for run in shown["runs"]] == [one["runId"] for one in first["results"]]
    assert len(await payloads_of(client, made)) == 2


async def test_an_automation_that_cannot_be_run_refuses_the_batch(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    await client.patch(path_of(made), json={"enabled": False})
    answer = await client.post(f"{path_of(made)}/runs/batch", json={"payloads": [{}]})
    assert refusal(answer) == (409, "run_error")
