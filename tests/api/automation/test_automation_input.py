"""Bad input of every automation operation: its class, its place, and nothing changed."""

import json
from typing import Any

import pytest

from tests.support.automations import DAY, create, path_of, publish, read, refusal, row_counts
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


def transform(id_: str = "a", **fields: Any) -> Json:
    return {"id": id_, "kind": "transform", "config": {"output": {}}, **fields}


def with_node(**fields: Any) -> Json:
    return {"graph": {"nodes": [transform(**fields)]}}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


MISSHAPEN: list[tuple[Json, str]] = [
    ({"graph": []}, "graph"),
    ({"graph": {"nodes": {}}}, "graph.nodes"),
    ({"graph": {"knots": []}}, "graph.knots"),
    ({"graph": {"nodes": [{"kind": "join"}]}}, "graph.nodes.0.id"),
    ({"graph": {"nodes": [{"id": "a"}]}}, "graph.nodes.0.kind"),
    (with_node(id="a/b"), "graph.nodes.0.id"),
    (with_node(id="x" * 65), "graph.nodes.0.id"),
    (with_node(kind=5), "graph.nodes.0.kind"),
    (with_node(kind="teleport"), "graph.nodes.0.kind"),
    (with_node(label=""), "graph.nodes.0.label"),
    (with_node(label="x" * 201), "graph.nodes.0.label"),
    (with_node(config=[]), "graph.nodes.0.config"),
    (with_node(disabled="no"), "graph.nodes.0.disabled"),
    (with_node(nonsense=1), "graph.nodes.0.nonsense"),
    (with_node(timeoutSeconds=0), "graph.nodes.0.timeoutSeconds"),
    (with_node(timeoutSeconds=86_401), "graph.nodes.0.timeoutSeconds"),
    (with_node(timeoutSeconds="5"), "graph.nodes.0.timeoutSeconds"),
    (with_node(retry={"maxAttempts": 0}), "graph.nodes.0.retry.maxAttempts"),
    (with_node(retry={"maxAttempts": 21}), "graph.nodes.0.retry.maxAttempts"),
    (with_node(retry={"maxAttempts": 2.5}), "graph.nodes.0.retry.maxAttempts"),
    (with_node(retry={"maxAttempts": True}), "graph.nodes.0.retry.maxAttempts"),
    (with_node(retry={"initialDelaySeconds": -1}), "graph.nodes.0.retry.initialDelaySeconds"),
    (with_node(retry={"initialDelaySeconds": 1e9}), "graph.nodes.0.retry.initialDelaySeconds"),
    (with_node(retry={"backoffMultiplier": 0}), "graph.nodes.0.retry.backoffMultiplier"),
    (with_node(retry={"maxDelaySeconds": 86_401}), "graph.nodes.0.retry.maxDelaySeconds"),
    (with_node(retry={"times": 3}), "graph.nodes.0.retry.times"),
    (with_node(input={"output": {"type": "guess", "value": 1}}), "graph.nodes.0.input.output.type"),
    (with_node(input={"output": 5}), "graph.nodes.0.input.output"),
    (with_node(position={"x": "0", "y": 0}), "graph.nodes.0.position.x"),
    ({"graph": {"nodes": [transform(f"n{n}") for n in range(201)]}}, "graph.nodes"),
    ({"graph": {"edges": [{"from": "a"}]}}, "graph.edges.0.to"),
    ({"graph": {"edges": [{"from": "a", "to": "b", "outcome": "maybe"}]}},
     "graph.edges.0.outcome"),
    ({"graph": {"edges": [{"from": "a", "to": 5}]}}, "graph.edges.0.to"),
    ({"graph": {"edges": [{"from": "a", "to": "b"}] * 501}}, "graph.edges"),
    ({"graph": {"entryNodeIds": "a"}}, "graph.entryNodeIds"),
    ({"graph": {"testPayloads": [{"id": "a", "name": "A", "payload": 5}]}},
     "graph.testPayloads.0.payload"),
    ({"graph": {"testPayloads": [{"id": "a", "name": "A", "payload": {"t": "x" * 65_600}}]}},
     "graph.testPayloads.0.payload"),
    ({"graph": {"onError": "ignore"}}, "graph.onError"),
    ({"graph": DAY, "label": 5}, "label"),
    ({"graph": DAY, "label": "x" * 201}, "label"),
    ({"graph": DAY, "key": "Upper"}, "key"),
    ({"graph": DAY, "enabled": "true"}, "enabled"),
    ({"graph": DAY, "enabled": 1}, "enabled"),
    ({"graph": DAY, "parentItemId": "nothing"}, "parentItemId"),
    ({"graph": DAY, "webhookSecret": "mine"}, "webhookSecret"),
    ({"graph": DAY, "trigger": "telepathy"}, "trigger"),
    ({"graph": DAY, "trigger": "manual", "triggerConfig": {"kind": "webhook"}}, "trigger"),
    ({"graph": DAY, "triggerConfig": {}}, "triggerConfig.kind"),
    ({"graph": DAY, "triggerConfig": {"kind": "manual", "cron": "* * * * *"}},
     "triggerConfig.cron"),
    ({"graph": DAY, "triggerConfig": {"kind": "schedule", "intervalSeconds": 5}},
     "triggerConfig.intervalSeconds"),
    ({"graph": DAY, "triggerConfig": {"kind": "webhook", "methods": ["STEAL"]}},
     "triggerConfig.methods.0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "path"), MISSHAPEN)
async def test_misshapen_automations_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: Json, path: str
) -> None:
    made = await create(client, space)
    before = await row_counts(space)
    answers = [await client.post(f"{space.path}/automations", json={"label": "x", **body})]
    if not {"key", "parentItemId"} & body.keys() and body.get("graph"):
        answers.append(await client.patch(path_of(made), json=body))
    for answer in answers:
        assert refusal(answer) == (400, "validation_error"), answer.text
        told = answer.json()
        assert told["_tag"] == "ApiValidationError"
        assert told["details"][0]["path"] == path
        assert told["message"].startswith(f"{path}: ")
        assert len(told["details"][0]["message"]) > 5
    assert await row_counts(space) == before
    assert read(await client.get(path_of(made))) == made


WRONG: list[tuple[Json, str, str]] = [
    ({"nodes": []}, "", "The graph has no nodes."),
    ({"nodes": [transform("a"), transform("b")],
      "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]},
     "a", "The nodes form a cycle: a → b → a."),
    ({"nodes": [transform("a")], "edges": [{"from": "a", "to": "a"}]},
     "a", "An edge leads from the node to itself."),
    ({"nodes": [transform("a")], "edges": [{"from": "a", "to": "b"}]},
     "a", 'An edge leads to the node "b", which does not exist.'),
    ({"nodes": [transform("a")], "edges": [{"from": "b", "to": "a"}]},
     "a", 'An edge comes from the node "b", which does not exist.'),
    ({"nodes": [transform("a")], "entryNodeIds": ["z"]},
     "", 'The entry node "z" does not exist.'),
    ({"nodes": [transform("a"), transform("b")], "entryNodeIds": ["a"]},
     "b", "No path leads from an entry node to this node."),
    ({"nodes": [transform("a"), transform("a")]}, "a", "Another node has the same id."),
    ({"nodes": [{"id": "a", "kind": "for_each"}]}, "a", "config.items: is required"),
    ({"nodes": [transform("a"), transform("b")],
      "edges": [{"from": "a", "to": "b", "outcome": "true"}]}, "a", "An edge has the outcome"),
    ({"nodes": [{"id": "a", "kind": "condition", "config": {"expression": "1 +"}}]},
     "a", "does not compile"),
    ({"nodes": [{"id": "a", "kind": "condition", "config": {"expression": "1 + 1"}}]},
     "a", "must return true or false"),
    ({"nodes": [{"id": "a", "kind": "delay", "config": {}}]}, "a", "needs either seconds or until"),
    ({"nodes": [{"id": "a", "kind": "delay", "config": {"seconds": 1e9}}]}, "a", "config.seconds"),
    ({"nodes": [{"id": "a", "kind": "http_request", "config": {"url": "ftp://x"}}]},
     "a", "config.url"),
    ({"nodes": [transform("a", config={"output": {"x": {"type": "node", "value": "b.c"}}})]},
     "a", 'Reads the node "b", which does not exist.'),
    ({"nodes": [transform("a", config={"output": {"x": {"type": "secret", "value": "s"}}})]},
     "a", "Only nodes and steps that call external services may use secrets."),
    ({"nodes": [transform("a", config={"output": {}, "outptu": {}})]},
     "a", "config.outptu: is not a known key"),
    ({"nodes": [{"id": "a", "kind": "create_record", "config": {"databaseId": "x"}}]},
     "a", "config.databaseId"),
    ({"nodes": [transform("a")], "failureAutomationId": "x"},
     "", "failureAutomationId: Automation not found."),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "node_id", "message"), WRONG)
async def test_graphs_that_mean_nothing_are_saved_and_never_published(
    client: Client, space: Space, graph: Json, node_id: str, message: str
) -> None:
    made = await create(client, space, graph=graph)
    issues = made["referenceIssues"]
    assert any(issue["nodeId"] == node_id and message in issue["message"] for issue in issues)
    before = await row_counts(space)
    for operation in ("publish", "test-run"):
        answer = await client.post(f"{path_of(made)}/{operation}", json={})
        assert refusal(answer) == (400, "validation_error")
        assert [detail["message"] for detail in answer.json()["details"]] == [
            issue["message"] for issue in issues
        ]
    assert await row_counts(space) == before


BODIES: list[tuple[str, Any, str]] = [
    ("run", {"payload": {}}, "payload"),
    ("run", {"triggerPayload": []}, "triggerPayload"),
    ("run", {"triggerPayload": "x"}, "triggerPayload"),
    ("run", [], ""),
    ("test-run", {"simulate": "yes"}, "simulate"),
    ("test-run", {"mocks": []}, "mocks"),
    ("test-run", {"mocks": {"wait": 5}}, "mocks.wait"),
    ("test-run", {"mocks": {"none": {}}}, "mocks.none"),
    ("test-run", {"stopAtNodeId": "none"}, "stopAtNodeId"),
    ("test-run", {"stopAtNodeId": 5}, "stopAtNodeId"),
    ("test-run", {"testPayloadId": "none"}, "testPayloadId"),
    ("test-run", {"automationVersionId": "x"}, "automationVersionId"),
    ("run-from-node", {}, "nodeId"),
    ("run-from-node", {"nodeId": ""}, "nodeId"),
    ("run-from-node", {"nodeId": "none"}, "nodeId"),
    ("run-from-node", {"nodeId": "x" * 65}, "nodeId"),
    ("run-from-node", {"nodeId": "wait", "nodes": ["none"]}, "nodes.0"),
    ("run-from-node", {"nodeId": "wait", "nodes": {"none": {}}}, "nodes.none"),
    ("run-from-node", {"nodeId": "wait", "nodes": [5]}, "nodes"),
    ("run-from-node", {"nodeId": "wait", "nodes": 5}, "nodes"),
    ("run-from-node", {"nodeId": "wait", "scope": "loop:1"}, "scope"),
    ("run-from-node", {"nodeId": "wait", "scope": {"itme": 1}}, "scope.itme"),
    ("run-from-node", {"nodeId": "wait", "scope": {"index": 10_000}}, "scope.index"),
    ("run-from-node", {"nodeId": "wait", "scope": {"index": "1"}}, "scope.index"),
    ("run-from-node", {"nodeId": "wait", "replayOfRunId": "x"}, "replayOfRunId"),
    ("publish", {"note": "x" * 2_001}, "note"),
    ("publish", {"versionId": 5}, "versionId"),
    ("publish", {"version": 1}, "version"),
    ("validate", {"graph": {"knots": []}}, "graph.knots"),
    ("validate", {"triggerConfig": {"kind": "x"}}, "triggerConfig.kind"),
    ("discard-draft", {"now": True}, ""),
]


@pytest.mark.parametrize(("operation", "body", "path"), BODIES)
async def test_bad_bodies_of_operations_are_refused(
    client: Client, space: Space, operation: str, body: Any, path: str
) -> None:
    made = await publish(client, space)
    before = await row_counts(space)
    answer = await client.post(f"{path_of(made)}/{operation}", json=body)
    assert refusal(answer) == (400, "validation_error"), answer.text
    assert answer.json()["details"][0]["path"] == path
    assert await row_counts(space) == before
    assert read(await client.get(path_of(made))) == made


RAW: list[tuple[bytes, int]] = [
    (b'{"triggerPayload": {"a": "\\u0000"}}', 400),
    (b'{"triggerPayload": {"\\u0000": 1}}', 400),
    (b'{"triggerPayload": {"a": "\\ud800"}}', 400),
    (b'{"triggerPayload": {"a": NaN}}', 400),
    (b'{"triggerPayload": {"a": 1e999}}', 400),
    (b'{"triggerPayload": {"a": 99999999999999999999}}', 400),
    (b'{"triggerPayload": {}, "triggerPayload": {}}', 400),
    (b'{"triggerPayload": ', 400),
    (json.dumps({"triggerPayload": nested(64)}).encode(), 400),
    (json.dumps({"triggerPayload": nested(900)}).encode(), 400),
    (b"[" * 100_000, 400),
    (b'{"triggerPayload": {"a": "' + b"x" * 1_100_000 + b'"}}', 413),
]


@pytest.mark.parametrize(("raw", "status"), RAW, ids=range(len(RAW)))
@pytest.mark.parametrize("operation", ["run", "test-run"])
async def test_bodies_that_are_no_plain_json(
    client: Client, space: Space, raw: bytes, status: int, operation: str
) -> None:
    made = await publish(client, space)
    before = await row_counts(space)
    answer = await client.post(
        f"{path_of(made)}/{operation}",
        content=raw,
        headers={"Content-Type": "application/json"},
    )
    error = "validation_error" if status == 400 else "payload_too_large"
    assert refusal(answer) == (status, error)
    assert await row_counts(space) == before


async def test_depth_up_to_the_limit_is_taken(client: Client, space: Space) -> None:
    made = await publish(client, space)
    payload = nested(62)
    run = read(await client.post(f"{path_of(made)}/run", json={"triggerPayload": payload}))
    assert run["triggerPayload"] == payload


@pytest.mark.parametrize("field", ["config", "mock"])
async def test_a_graph_as_deep_as_a_body_may_be_is_kept_and_read(
    client: Client, space: Space, field: str
) -> None:
    value = nested(56)
    given: dict[str, Any] = (
        {"config": {"output": value}} if field == "config" else {"mock": {"output": value}}
    )
    made = await create(client, space, graph={"nodes": [transform(**given)]})
    stored = made["graph"]["nodes"][0][field]["output"]
    assert stored == value
    assert read(await client.get(path_of(made))) == made


@pytest.mark.parametrize("id_", ["x", "0" * 36, "%00", "not-an-id"])
async def test_malformed_ids_of_automations_are_not_found(
    client: Client, space: Space, id_: str
) -> None:
    made = await publish(client, space)
    for method, path in (
        ("GET", f"{space.path}/automations/{id_}"),
        ("POST", f"{space.path}/automations/{id_}/run"),
        ("GET", f"{path_of(made)}/versions/{id_}"),
        ("POST", f"{path_of(made)}/versions/{id_}/restore"),
        ("GET", f"{path_of(made)}/runs/{id_}"),
        ("POST", f"{path_of(made)}/runs/{id_}/cancel"),
    ):
        answer = await client.request(method, path)
        assert refusal(answer) == (404, "not_found"), (method, path)
