"""Reads of impossible output keys are reported with the possible ones, and refuse nothing."""

from itertools import pairwise
from typing import Any

import pytest

from activities.automation_runs.nodes import logic
from models.automation.automations.rules.graph.compiler import ReferenceCatalog, compile_graph
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.graph.structure import OUTPUTS, readable_keys
from models.automation.automations.rules.language.bindings import BindingContext
from models.automation.waits import rules

APPROVAL = {"id": "ok", "kind": "approval", "config": {"role": "admin"}}


def told(*nodes: dict[str, Any], reads: Any) -> list[str]:
    """The warnings for a transform that reads this after the nodes; nothing else is wrong."""
    reader = {"id": "reader", "kind": "transform", "config": {"output": {"x": reads}}}
    chain = [*nodes, reader]
    edges = [
        {"from": one["id"], "to": other["id"], "outcome": _way_on(one["kind"])}
        for one, other in pairwise(chain)
    ]
    graph = Graph.model_validate({"nodes": chain, "edges": edges})
    compiled = compile_graph(graph, {"kind": "manual"}, ReferenceCatalog())
    assert compiled.plan is not None, compiled.issues
    assert {one.severity for one in compiled.warnings} <= {"warning"}
    return [one.message for one in compiled.warnings]


def _way_on(kind: str) -> str:
    return {"approval": "approved", "condition": "true"}.get(kind, "always")


@pytest.mark.parametrize(
    "reads",
    [
        {"type": "node", "value": "ok.by"},
        {"type": "expression", "value": "nodes.ok.by"},
        {"type": "expression", "value": 'nodes["ok"].by == "a"'},
        {"type": "template", "value": "by {{ nodes.ok.by }}"},
    ],
)
def test_an_impossible_key_is_reported_with_the_possible_ones(reads: Any) -> None:
    (message,) = told(APPROVAL, reads=reads)
    assert message == (
        'Reads "by" of the output of the node "ok", which does not exist;'
        " known: comment, data, decision, decisions."
    )


@pytest.mark.parametrize(
    "reads",
    [
        {"type": "node", "value": "ok.decisions[0].userId"},
        {"type": "node", "value": "ok.error"},
        {"type": "node", "value": "ok"},
        {"type": "expression", "value": "has(nodes.ok.by) ? nodes.ok.by : 1"},
        {"type": "expression", "value": "coalesce(nodes.ok.by, 1)"},
        {"type": "expression", "value": "nodes[trigger.which].by"},
    ],
)
def test_a_possible_or_tested_key_is_no_issue(reads: Any) -> None:
    assert told(APPROVAL, reads=reads) == []


def test_the_nearest_key_comes_first() -> None:
    (message,) = told(APPROVAL, reads={"type": "node", "value": "ok.Decision"})
    assert "known: decision, " in message


def test_a_transform_has_the_keys_that_it_is_given() -> None:
    sums = {"id": "sums", "kind": "transform", "config": {"output": {"total": 1}}}
    assert told(sums, reads={"type": "node", "value": "sums.total"}) == []
    assert len(told(sums, reads={"type": "node", "value": "sums.totals"})) == 1
    bound = {**sums, "config": {"output": {"type": "trigger", "value": "all"}}}
    assert told(bound, reads={"type": "node", "value": "sums.totals"}) == []


def test_a_mock_may_give_other_keys() -> None:
    mocked = {**APPROVAL, "mock": {"enabled": True, "output": {"by": "Ada"}}}
    assert told(mocked, reads={"type": "node", "value": "ok.by"}) == []


def test_a_filter_reads_outputs_too() -> None:
    filtering = {
        "id": "check",
        "kind": "condition",
        "config": {"filter": {"field": "nodes.ok.by", "op": "eq", "value": "a"}},
    }
    (message,) = told(APPROVAL, filtering, reads=1)
    assert '"by"' in message


def test_every_kind_has_its_output() -> None:
    assert OUTPUTS.keys() == set(NodeKind)


def test_outputs_are_as_declared() -> None:
    context = BindingContext(trigger={}, nodes={}, run={})
    given = {
        NodeKind.APPROVAL: rules.approval_output(None, []),
        NodeKind.WAIT_EVENT: {**rules.event_timed_out().output, "resumedBy": ""},
        NodeKind.CONDITION: logic.condition({"expression": "true"}, context).output,
        NodeKind.SWITCH: logic.switch_result(None).output,
        NodeKind.JOIN: logic.join({}, context).output,
        NodeKind.STOP: logic.stop({"message": "m"}, context).output,
        NodeKind.RESPOND: logic.respond({}, context).output,
    }
    for kind, output in given.items():
        assert set(output) == readable_keys(kind, {}), kind


def test_a_filter_of_no_field_reads_nothing() -> None:
    config = {"filter": {"field": "", "op": "eq", "value": 1}}
    nodes = [{"id": "if", "kind": "condition", "config": config}]
    compiled = compile_graph(
        Graph.model_validate({"nodes": nodes}), {"kind": "manual"}, ReferenceCatalog()
    )
    assert not compiled.warnings
