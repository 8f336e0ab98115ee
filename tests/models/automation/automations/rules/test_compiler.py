"""Compiling graphs: every check (interface.md#checks-of-a-graph), what a right graph becomes."""

import json
import time
import uuid
from dataclasses import replace
from typing import Any

import pytest

from models.automation.automations.rules.graph.catalog import Resource
from models.automation.automations.rules.graph.compiler import (
    Compiled,
    ReferenceCatalog,
    compile_graph,
    referenced_ids,
)
from models.automation.automations.rules.graph.kinds import JoinMode, OnError
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.language.static_reads import RECORD
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanRetry
from models.core.base import Id
from models.data.fields.rules.fields import FieldKind, FieldSpec
from models.data.records.shapes import RecordDetail

DATABASE, AUTOMATION, SELF = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
FIELDS = {"title": "text", "price": "number", "due": "date", "go": "button"}
CATALOG = ReferenceCatalog(
    automation_id=SELF,
    databases={
        DATABASE: {
            key: FieldSpec(id=Id(DATABASE), key=key, label=key, kind=FieldKind(kind))
            for key, kind in FIELDS.items()
        }
    },
    existing={Resource.AUTOMATION: frozenset({AUTOMATION, SELF})},
    triggers={
        id_: {"kind": "automation_called", "inputSchema": {"required": ["who"]}}
        for id_ in (AUTOMATION, SELF)
    },
    secrets=frozenset({"KEY"}),
)
MANUAL = {"kind": "manual"}
LETTER, OTHER_ACTION = (f"01890a5d-ac96-774b-bcce-b302099a80{n}" for n in ("a1", "a2"))
"""Actions, of which the first one sends an email."""


def node(node_id: str, kind: str = "transform", /, **config: Any) -> dict[str, Any]:
    if kind == "transform":
        config = {"output": {}} | config
    return {"id": node_id, "kind": kind, "config": config}


def asking(**query: Any) -> dict[str, Any]:
    return node("n", "query_records", databaseId=DATABASE, query=query)


def edge(source: str, target: str, outcome: str = "always", **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, "outcome": outcome} | more


def on(trigger: str, **config: Any) -> dict[str, Any]:
    """A graph that nothing is wrong with, behind a trigger."""
    return {"nodes": [node("a")], "trigger": {"kind": trigger} | config}


def filtered(field: str, op: str, value: Any) -> dict[str, Any]:
    """A trigger on new records that satisfy one condition."""
    condition = {"field": field, "op": op, "value": value}
    return {"kind": "record_created", "databaseId": DATABASE, "filter": condition}


def bind(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value}


def compiled(nodes: list[Any], edges: list[Any] | None = None, **more: Any) -> Compiled:
    trigger = more.pop("trigger", MANUAL)
    graph = Graph.model_validate({"nodes": nodes, "edges": edges or []} | more)
    return compile_graph(graph, trigger, CATALOG)


def issues(nodes: list[Any], edges: list[Any] | None = None, **more: Any) -> list[tuple[str, str]]:
    result = compiled(nodes, edges, **more)
    assert (result.plan is None) is bool(result.issues)
    return [(issue.node_id, issue.message) for issue in result.issues]


def test_a_right_graph_becomes_a_plan() -> None:
    nodes = [
        node("q", "query_records", databaseId=DATABASE, query={"filter": {"and": []}})
        | {"label": "Find", "retry": {"maxAttempts": 5}, "timeoutSeconds": 9},
        node("if", "condition", expression="nodes.q.count > 0"),
        node("h", "http_request", url=bind("template", "https://x/{{ nodes.q.count }}")),
        node("j", "join", mode="count", count=1),
        node("w", "delay", seconds=bind("trigger", "wait")) | {"disabled": True},
    ]
    edges = [
        edge("q", "if", "success"),
        edge("if", "h", "true"),
        edge("if", "j", "false"),
        edge("h", "j", "finally"),
        edge("j", "w"),
    ]
    plan = compiled(nodes, edges, onError="continue").plan
    assert plan is not None
    by_id = plan.nodes_by_id()
    assert by_id["q"].retry == PlanRetry(max_attempts=5)
    assert (by_id["q"].label, by_id["q"].timeout_seconds, by_id["h"].retry) == ("Find", 9, None)
    assert (by_id["j"].join, by_id["j"].join_count) == (JoinMode.COUNT, 1)
    assert by_id["w"].disabled
    assert plan.edges[0] == PlanEdge("q", "if")
    assert (plan.entries, plan.on_error) == (("q",), OnError.CONTINUE)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_notes_change_nothing_of_a_plan_and_name_nothing() -> None:
    nodes, place = [node("a"), node("b")], {"x": 0, "y": 0}
    texts = [f"{{{{ nodes.gone.x }}}} {AUTOMATION}", '{"type": "secret", "value": "token"}']
    notes = [{"id": f"n{at}", "text": text, "position": place} for at, text in enumerate(texts)]
    plain, noted = (compiled(nodes, [edge("a", "b")], **more) for more in ({}, {"notes": notes}))
    assert plain.plan is not None
    assert (noted.plan, noted.issues) == (plain.plan, plain.issues)
    graph = Graph.model_validate({"nodes": nodes, "notes": notes})
    assert referenced_ids(graph, MANUAL) == referenced_ids(Graph(nodes=graph.nodes), MANUAL)
    twice = issues(nodes, notes=[notes[0]] * 2)
    assert twice == [("", 'Two notes have the id "n0".')]


@pytest.mark.parametrize(
    ("delay", "pauses"), [({}, False), ({"delaySeconds": 0}, False), ({"delaySeconds": 1}, True)]
)
def test_a_repetition_pauses_where_it_waits_between_attempts(delay: Any, *, pauses: bool) -> None:
    body = [edge("again", "a", "item")]
    result = compiled([node("again", "repeat", maxIterations=2, **delay), node("a")], body)
    assert result.plan is not None
    assert [one.pauses for one in result.plan.nodes if one.id == "again"] == [pauses]


def test_a_plan_carries_no_config() -> None:
    plan = compiled([node("a", output={"x": "secret text"}) | {"notes": "private"}]).plan
    assert plan is not None
    assert "secret" not in json.dumps(plan.to_json())
    assert "private" not in json.dumps(plan.to_json())


@pytest.mark.parametrize(
    ("graph", "at", "words"),
    [
        ({"nodes": []}, "", "no nodes"),
        ({"nodes": [node("a"), node("a")]}, "a", "same id"),
        ({"nodes": [node("a", "approval")]}, "a", "needs assignees or role"),
        ({"nodes": [node("a")], "entryNodeIds": ["z"]}, "", 'entry node "z"'),
        ({"nodes": [node("a"), node("b")], "entryNodeIds": ["a"]}, "b", "No path"),
        ({"nodes": [node("a")], "edges": [edge("a", "z")]}, "a", '"z", which does not exist'),
        ({"nodes": [node("a")], "edges": [edge("z", "a")]}, "a", '"z", which does not exist'),
        ({"nodes": [node("a")], "edges": [edge("y", "z")]}, "", '"y", which does not exist'),
        ({"nodes": [node("a")], "edges": [edge("a", "a")]}, "a", "to itself"),
        (
            {
                "nodes": [node("a"), node("b")],
                "edges": [edge("a", "b", id="e"), edge("a", "b", "failure", id="e")],
            },
            "",
            'id "e"',
        ),
        (
            {
                "nodes": [node("a")],
                "testPayloads": [{"id": "p", "name": name, "payload": {}} for name in "xy"],
            },
            "",
            'id "p"',
        ),
        ({"nodes": [node("a")], "failureAutomationId": SELF}, "", "its own failures"),
        ({"nodes": [node("a")], "failureAutomationId": DATABASE}, "", "Automation not found"),
        ({"nodes": [node("a")], "trigger": {"kind": "?"}}, "", "is invalid"),
        (on("record_created", databaseId=AUTOMATION), "", "triggerConfig.databaseId: Database"),
        (on("record_created", databaseId="x"), "", 'Database "x" not found'),
        (on("record_updated", databaseId=DATABASE, fieldKeys=["price", "x"]), "", 'no field "x"'),
        (
            on("record_date_reached", databaseId=DATABASE, fieldKey="price"),
            "",
            "Must be a date field",
        ),
        (on("button_pressed", databaseId=DATABASE, fieldKey="due"), "", "Must be a button field"),
        (on("form_submitted", formItemId=DATABASE), "", "triggerConfig.formItemId: Form"),
        (on("form_submitted", viewId="x"), "", 'triggerConfig.viewId: "x" is not a valid id'),
        (on("data_source_finished", dataSourceId=SELF), "", "Data source"),
        (on("automation_failed", automationIds=[AUTOMATION, DATABASE]), "", "automationIds.1"),
    ],
)
def test_a_wrong_graph_says_what_is_wrong(graph: Any, at: str, words: str) -> None:
    found = issues(**graph)
    assert [place for place, message in found if words in message] == [at], found


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "record_updated", "databaseId": DATABASE, "fieldKeys": ["title", "price"]},
        {"kind": "record_date_reached", "databaseId": DATABASE, "fieldKey": "due"},
        {"kind": "button_pressed", "databaseId": DATABASE.upper(), "fieldKey": "go"},
        {"kind": "automation_failed", "automationIds": "any"},
        {"kind": "automation_failed", "automationIds": [AUTOMATION]},
        filtered("due", "within", {"unit": "day", "count": 3, "direction": "future"}),
        filtered("price", "between", [1, 2]),
        filtered("record.data.price", "gt", 1),
    ],
)
def test_a_trigger_on_what_is_there_compiles(trigger: Any) -> None:
    assert issues([node("a")], trigger=trigger) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("trigger.record.data.zz == 1", 'no field "zz"'),
        ("record.data.price > 1.0 && record.data.zz == 1", 'no field "zz"'),
        ("record['data']['zz'].size() == 1", 'no field "zz"'),
        ("before.computed.zz != record.computed.zz", 'no field "zz"'),
        ("record.n == 1", 'A record has no key "n"'),
        ("trigger.record.price == 1", 'A record has no key "price"'),
        ("trigger.data.price == 1", 'The trigger has no key "data"'),
    ],
)
def test_an_expression_that_reads_what_is_never_there_is_an_issue(given: str, words: str) -> None:
    trigger = {"kind": "record_updated", "databaseId": DATABASE, "filter": given}
    (detail,) = compiled([node("a")], trigger=trigger).details
    assert detail.path == "triggerConfig.filter"
    assert words in detail.message


@pytest.mark.parametrize(
    "given",
    [
        "record.data.price > 1.0 && trigger.before.data['title'] != record.title",
        "has(record.data.zz) && record.data.zz == 1",
        "coalesce(record.data.zz, 1) == 1",
        "record.data.?zz.orValue(1) == 1",
        "record.data[?'zz'].orValue(1) == 1",
        "record.data[record.title] == 1",
        "'zz' in record.data || record.data.exists(key, key == 'zz')",
        "record.related.price.exists(record, record.zz == 1)",
        "record.data.price.n.zz == 1 && record.data.size() == 1",
        "'record.data.zz' == actor.zz && 'price' in changedKeys",
        "record.createdAt < record.updatedAt && record.system.due == '' && !record.archived",
    ],
)
def test_an_expression_that_may_hold_compiles(given: str) -> None:
    trigger = {"kind": "record_updated", "databaseId": DATABASE, "filter": given}
    assert issues([node("a")], trigger=trigger) == []


def test_the_keys_of_a_record_are_those_it_is_shown_with() -> None:
    assert {*RecordDetail.model_json_schema()["properties"], "omittedKeys"} == RECORD


@pytest.mark.parametrize(
    ("trigger", "path"),
    [
        (filtered("nothing", "eq", 1), "field"),
        (filtered("price", "starts_with", "1"), "op"),
        (filtered("price", "gt", "x"), "value"),
        (filtered("due", "before", "soon"), "value"),
        (filtered("title", "eq", None), "value"),
    ],
    ids=["field", "operator", "number", "date", "null"],
)
def test_a_filter_that_a_query_would_refuse_is_an_issue(trigger: Any, path: str) -> None:
    result = compiled([node("a")], trigger=trigger)
    assert [detail.path for detail in result.details] == [f"triggerConfig.filter.{path}"]


def test_each_leaf_is_judged_by_what_it_names() -> None:
    path = {"field": "record.data.price", "op": "starts_with", "value": "1"}
    wrong = {"field": "price", "op": "starts_with", "value": "1"}
    trigger = filtered("price", "gt", 1) | {"filter": {"and": [path, {"not": wrong}]}}
    result = compiled([node("a")], trigger=trigger)
    assert [detail.path for detail in result.details] == ["triggerConfig.filter.and.1.not.op"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (node("n", "repeat", **{"while": "1 +"}), "config.while"),
        (node("n", "repeat", **{"while": "1 + 1"}), "true or false"),
        (node("n", "repeat", **{"while": bind("trigger", "x")}), "Must be CEL text"),
        (node("n", "wait_event", filter="]"), "config.filter"),
        (
            node("n", "delay", seconds=1, until2=bind("trigger", "x")),
            "until2: is not a known key; known: until, seconds, timezone",
        ),
        (
            node("n", "query_records", databaseId=DATABASE, query={"q": bind("trigger", "x")}),
            "query.q: is not a known key",
        ),
        (node("n", "action"), "actionId: is required"),
        (
            node("n", "transform", output={"deep": ["Dear {{ trigger.name }}"]}),
            "config.output.deep.0: Plain text, in which {{ … }} is not replaced. Use",
        ),
        (node("n", "action") | {"actionId": DATABASE}, 'Action "'),
        (node("n", "call_automation", automationId=DATABASE), 'Automation "'),
        (node("n", "call_automation", automationId=AUTOMATION), "config.input: "),
        (
            node("n", "call_automation", automationId=AUTOMATION, input={"it": bind("item", "")}),
            "config.input.who: is required",
        ),
        (node("n", "notify", userIds=[DATABASE], title="x"), "config.userIds.0: Member"),
        (node("n", "approval", assignees=[SELF]), "config.assignees.0: Member"),
        (node("n", "transform", output=None), "config.output"),
        (node("n", "query_records"), "config.databaseId: is required"),
        (node("n", "query_records", databaseId=AUTOMATION), "not found"),
        (node("n", "query_records", databaseId=bind("literal", AUTOMATION)), "not found"),
        (asking(fields=["x"]), "config.query.fields.0: is not the key"),
        (asking(sorts=[{"field": "x"}]), "config.query.sorts.0"),
        (asking(groupBy={"field": "x"}), "config.query.groupBy"),
        (asking(aggregates=[{"op": "sum", "field": "x"}]), "config.query.aggregates.0"),
        (
            asking(filter={"or": [{"not": {"field": "x", "op": "eq"}}]}),
            "config.query.filter.or.0.not",
        ),
        (asking(sorts=[{"field": "price", "direction": "up"}]), "config.query.sorts.0.direction"),
        (asking(sorts=[{"field": "price"}] * 6), "config.query.sorts"),
        (asking(aggregates=[{"op": "bogus"}]), "config.query.aggregates.0.op"),
        (asking(groupBy="price"), "config.query.groupBy"),
        (asking(groupBy=[]), "config.query.groupBy"),
        (asking(search="x" * 300), "config.query.search"),
        (asking(viewId=AUTOMATION), "config.query.viewId: View"),
        (node("n", "create_record", databaseId=DATABASE, data={"x": 1}), "data.x: is not the"),
        (node("n", "create_record", databaseId=DATABASE, upsertBy=["x"]), "upsertBy"),
        (node("n", "update_record", databaseId=DATABASE), "config.recordId: is required"),
        (node("n", "http_request", url="x"), "config.url"),
        (node("n", "http_request", url="http://[::1"), "config.url: Invalid URL"),
        (node("n", "http_request", url="http://x:99999/"), "config.url: Invalid URL"),
        (node("n", "http_request", url="http://x:22/"), "config.url: Port 22 is not an HTTP port"),
        (
            node("n", "send_webhook", url="http://u:p@x/", type="t"),
            "config.url: Remove the user name",
        ),
        (node("n", "send_webhook", url="http://a..b/", type="t"), "config.url: The URL's host"),
        (node("n", "http_request", url="http://x", verb="GET"), "config.verb: is not a known key"),
        (node("n", "http_request", url=bind("secret", "OTHER")), 'Secret "OTHER" not found.'),
        (node("n", output={"x": [bind("secret", "KEY")]}), "Only nodes and steps that call"),
        (node("n", "respond", body=bind("secret", "KEY")), "Only nodes and steps that call"),
        (node("n", "action", x=bind("secret", "KEY")), "Only nodes and steps that call"),
        (node("n", "http_request", url=bind("variable", "x")), 'the variable "x"'),
        (node("n", "condition", expression="vars.x == 1"), 'the variable "x"'),
        (node("n", output={"x": bind("template", "{{ vars.y }}")}), 'the variable "y"'),
        (node("n", "condition", filter={"field": "vars.z", "op": "is_empty"}), 'variable "z"'),
        (node("n", "respond", headers={"Set-Cookie": "a=b"}), "no answer may set"),
        (node("n", "respond", headers={"NEL": "{}"}), "no answer may set"),
        (node("n", "respond", headers={"Strict-Transport-Security": "x"}), "no answer may set"),
        *(
            (node("n", "respond", headers={name: "/x"}), "no answer may set")
            for name in [
                "Link",
                "REFRESH",
                "www-authenticate",
                "X-Sendfile",
                "X-Accel-Redirect",
                "X-Accel-Buffering",
                "x-lighttpd-send-file",
                "X-Reproxy-URL",
                "X-LiteSpeed-Location",
            ]
        ),
        (node("n", "respond", headers={"X-A": "…"}), "no header can carry"),
        (node("n", "respond", status=101), "config.status"),
        (node("n", "condition"), "either expression or filter"),
        (node("n", "condition", expression="1 +"), "line 1, column 4"),
        (node("n", "condition", expression="'text'"), "must return true or false"),
        (node("n", "condition", expression=bind("trigger", "rule")), "Must not be a binding"),
        (node("n", "condition", filter={"field": "price", "op": "eq"}), "Unknown variable"),
        (node("n", "condition", filter={"field": "trigger.a", "op": "~"}), "Unknown operator"),
        (node("n", "switch", cases=[]), "config.cases"),
        (node("n", "switch", cases=[{"key": "a", "expression": "1"}]), "cases.0.expression"),
        (
            node("n", "switch", cases=[{"key": "a", "expression": bind("trigger", "x")}]),
            "Must be CEL text",
        ),
        (node("n", "join", mode=bind("trigger", "x")), "Must not be a binding"),
        (node("n", "join", mode="count", count=2), "fewer lead to it"),
        (node("n", "delay"), "either seconds or until"),
        (node("n", "delay", until="2026-01-01", timezone="Nowhere/Land"), "IANA"),
        (node("n", output={"x": bind("expression", "nope")}), "config.output.x"),
        (node("n", output={"x": bind("node", "ghost.x")}), 'Reads the node "ghost"'),
        (node("n", output={"x": bind("expression", "nodes.ghost.x")}), 'Reads the node "ghost"'),
        (node("n", output={"x": bind("template", "{{ nodes.ghost }}")}), 'Reads the node "ghost"'),
        (node("n", output={"x": bind("trigger", "a" * 10_000)}), "256 characters"),
        (node("n", output={"x": bind("template", "{{ 1")}), "no `}}`"),
        (node("n", output={"x": bind("run", "token")}), "A run has only"),
        (node("n") | {"input": {"output": bind("run", "token")}}, "input.output"),
        (node("n", "stop", result="maybe"), "config.result"),
    ],
)
def test_a_wrong_node_says_what_is_wrong(wrong: Any, words: str) -> None:
    found = issues([node("first"), wrong], [edge("first", "n")], variables={"other": 1})
    assert any(place == "n" and words in message for place, message in found), found
    assert all(place == "n" for place, _ in found), found


@pytest.mark.parametrize(
    ("called", "given"),
    [
        (AUTOMATION, {"who": "Ada"}),
        (AUTOMATION, {"who": {"type": "trigger", "value": "who"}}),
        (AUTOMATION, {"type": "trigger", "value": ""}),
        (SELF, {}),
    ],
)
def test_a_call_gives_what_is_taken(called: str, given: Any) -> None:
    assert issues([node("n", "call_automation", automationId=called, input=given)]) == []


@pytest.mark.parametrize(
    ("kind", "config", "way", "words"),
    [
        ("transform", {}, {"outcome": "true"}, "always, failure, success"),
        ("transform", {}, {"outcome": "finally"}, "always, failure, success"),
        ("condition", {"expression": "true"}, {"outcome": "always"}, "failure, false, true"),
        ("delay", {"seconds": 1}, {"outcome": "failure"}, "always, success"),
        ("join", {}, {"outcome": "item"}, "always, success"),
        ("stop", {}, {"outcome": "always"}, "nothing follows"),
        ("transform", {}, {"outcome": "always", "caseKey": "x"}, "only case has"),
        ("switch", {"cases": [{"key": "x", "expression": "true"}]}, {"outcome": "case"}, "caseKey"),
        (
            "switch",
            {"cases": [{"key": "x", "expression": "true"}]},
            {"outcome": "case", "caseKey": "y"},
            'no case "y"; cases: x',
        ),
    ],
)
def test_an_edge_a_kind_cannot_take(kind: str, config: Any, way: Any, words: str) -> None:
    found = issues([node("n", kind, **config), node("z")], [edge("n", "z", **way)])
    assert [place for place, message in found if words in message] == ["n"], found


def test_bindings_may_stand_where_values_will() -> None:
    anything = bind("trigger", "anything")
    nodes = [
        node("q", "query_records", databaseId=anything, query=anything),
        node("r", "query_records", databaseId=DATABASE, query={"limit": anything}),
        node("s", "query_records", databaseId=DATABASE, query={"filter": anything}),
        node("c", "create_record", databaseId=DATABASE, data=anything),
        node("h", "http_request", url=anything, headers={"a": anything}, auth=anything),
        node("d", "delay", seconds=anything),
        node("u", "update_record", recordId=anything, data={"a": anything}),
        node("z", "stop", result=anything, output=anything),
        node("f", "condition", filter={"field": "trigger.a", "op": "eq", "value": anything}),
        node("t") | {"config": {}, "input": {"output": anything}},
    ]  # fmt: skip
    assert issues(nodes) == []


def test_input_overlays_config() -> None:
    wrong = node("n", "delay", seconds="soon")
    assert issues([wrong])
    assert issues([wrong | {"input": {"seconds": bind("literal", 5)}}]) == []


def test_a_cycle_is_named_once() -> None:
    nodes = [node(name) for name in "abcd"]
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "b"), edge("c", "d")]
    assert issues(nodes, edges) == [("b", "The nodes form a cycle: b → c → b.")]


def test_a_cycle_of_two_hundred_is_one_short_issue() -> None:
    names = [f"n{index}" for index in range(200)]
    edges = [edge(a, b) for a, b in zip(names, names[1:] + names[:1], strict=True)]
    ((place, message),) = issues([node(name) for name in names], edges)
    assert place == "n0"
    assert "188 more → n0" in message


def test_the_largest_graph_compiles_quickly() -> None:
    names = [f"n{index}" for index in range(200)]
    nodes = [node(name, "condition", expression=f"trigger.x == '{name}'") for name in names]
    pairs = [(i, j) for i in range(200) for j in range(i + 1, min(i + 4, 200))][:500]
    edges = [edge(names[i], names[j], "true") for i, j in pairs]
    began = time.thread_time()
    assert issues(nodes, edges) == []
    assert time.thread_time() - began < 3


def test_more_cel_than_can_be_compiled_in_time_is_one_issue() -> None:
    long = " + ".join(["trigger.x"] * 8)
    text = bind("template", "words " * 3_000 + f"{{{{ {long} }}}}")
    nodes = [node(f"n{index}", output={"x": text}) for index in range(20)]
    assert issues(nodes) == []

    texts = [bind("expression", f"{long} + {index}") for index in range(200)]
    nodes = [node(f"n{index}", output={"x": texts, "y": text}) for index in range(10)]
    began = time.thread_time()
    [(at, message)] = issues(nodes)
    assert (at, "131072 characters of CEL" in message) == ("", True)
    assert time.thread_time() - began < 1


def test_hostile_text_is_quoted_short_and_printable() -> None:
    evil = "\u202e\x1b" * 10
    found = issues([node("a")], [edge("a", evil), edge("a", "a", "case", caseKey=evil)])
    assert found
    assert all(message.isprintable() and len(message) < 400 for _, message in found)


def test_every_id_in_a_graph_is_found() -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(10, 19)]
    graph = Graph.model_validate(
        {
            "nodes": [
                node("a", databaseId=ids[0], deep=[{"userIds": [ids[1]]}])
                | {"actionId": ids[2], "input": {"databaseId": bind("literal", ids[3])}},
                node("b", databaseId=bind("literal", ids[4]), automationIds=[ids[5], 5]),
                node("c", databaseId=bind("trigger", "x"), recordId="not an id", text=ids[7]),
            ],
            "failureAutomationId": ids[6],
        }
    )
    assert {str(found) for found in referenced_ids(graph, {"viewId": ids[8]})} == {*ids[:7], ids[8]}


def test_secrets_and_variables_that_are_there_are_no_issue() -> None:
    auth = {"type": "bearer", "token": bind("secret", "KEY")}
    nodes = [
        node("a", "http_request", url="https://example.test/", auth=auth),
        node("b", output={"x": bind("variable", "rates.eur"), "y": bind("expression", "vars.n")}),
        node("c", output={"z": bind("expression", "vars[trigger.key]")}),
    ]
    assert issues(nodes, variables={"rates": {"eur": 1}, "n": None}) == []
    assert issues(nodes) == [], "runs may bring them along"
    webhook = {"kind": "webhook", "secretName": "KEY"}
    assert issues([node("a")], trigger=webhook) == []
    assert issues([node("a")], trigger={**webhook, "secretName": "OTHER"}) == [
        ("", 'triggerConfig.secretName: Secret "OTHER" not found.')
    ]


def reading(type_: str, value: str) -> dict[str, Any]:
    """A node that reads, behind one that writes a record."""
    return node("a", "transform", output={"x": {"type": type_, "value": value}})


ON_RECORD = {"kind": "record_updated", "databaseId": DATABASE}
WRITER = node("w", "create_record", databaseId=DATABASE, data={})
UNKNOWN = 'The database has no field "prise"; known: '


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("expression", "trigger.record.data.prise > 1.0"),
        ("expression", "trigger.before.data['prise']"),
        ("expression", "nodes.w.record.data.prise"),
        ("template", "It costs {{ trigger.record.data.prise }} {{ 1 }}"),
        ("trigger", "record.data.prise"),
        ("node", "w.record.data.prise"),
    ],
)
def test_a_field_that_no_record_has_is_an_issue_that_lists_those_there_are(
    type_: str, value: str
) -> None:
    graph: dict[str, Any] = {"edges": [{"from": "w", "to": "a"}], "trigger": ON_RECORD}
    ((at, message),) = issues([WRITER, reading(type_, value)], **graph)
    assert at == "a"
    assert message.startswith(UNKNOWN)
    assert "price" in message.removeprefix(UNKNOWN)
    right = value.replace("prise", "price")
    assert issues([WRITER, reading(type_, right)], **graph) == []


@pytest.mark.parametrize(
    ("type_", "value", "trigger"),
    [
        ("expression", "has(trigger.record.data.prise)", ON_RECORD),
        ("expression", "coalesce(trigger.record.data.prise, 1)", ON_RECORD),
        ("expression", "trigger.record.data[trigger.record.title]", ON_RECORD),
        ("expression", "vars.list.map(trigger, trigger.record.data.prise)", ON_RECORD),
        ("trigger", "record.data", ON_RECORD),
        ("literal", "trigger.record.data.prise", ON_RECORD),
        ("expression", "trigger.record.data.prise", {"kind": "manual"}),
    ],
)
def test_an_uncertain_fact_about_a_field_is_no_issue(
    type_: str, value: str, trigger: dict[str, Any]
) -> None:
    assert issues([reading(type_, value)], trigger=trigger) == []


@pytest.mark.parametrize("has_mail_server", [True, False])
def test_an_email_that_cannot_be_sent_is_a_warning_at_its_node(has_mail_server: bool) -> None:
    """It keeps nothing from being published: another process may send it."""
    mail = {"to": ["ada@example.com"], "subject": "Hello", "body": "Hello"}
    acts = [
        {**node(name, "action"), "actionId": action_id}
        for name, action_id in (("letter", LETTER), ("other", OTHER_ACTION))
    ]
    nodes = [node("first"), node("tell", "send_email", **mail), node("call", "send_email", **mail)]
    graph = Graph.model_validate({"nodes": [*nodes, *acts], "edges": [edge("first", "tell")]})
    catalog = replace(
        CATALOG,
        existing={**CATALOG.existing, Resource.ACTION: frozenset({LETTER, OTHER_ACTION})},
        has_mail_server=has_mail_server,
        mail_actions=frozenset({LETTER}),
    )
    found = compile_graph(graph, {"kind": "manual"}, catalog)
    assert found.plan is not None, found.issues
    warned = [(one.node_id, one.severity) for one in found.warnings]
    expected = [(name, "warning") for name in ("tell", "call", "letter")]
    assert warned == ([] if has_mail_server else expected)
    assert all("WORKSPACE_SMTP_URL" in one.message for one in found.warnings)


@pytest.mark.parametrize(
    ("nodes", "place"),
    [
        ([node("a", "condition", expression="1 +")], "graph.a"),
        (
            [
                node(f"n{at}", "condition", expression="'" + "a" * 3_990 + "' == ''")
                for at in range(60)
            ],
            "graph",
        ),
    ],
    ids=["node", "graph"],
)
def test_a_detail_is_at_its_node_or_at_the_graph(nodes: list[Any], place: str) -> None:
    assert compiled(nodes).details[0].path == place
