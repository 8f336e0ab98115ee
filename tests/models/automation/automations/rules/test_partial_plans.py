"""Plans of runs that begin in the middle, at any depth of loops (interface.md#runs-from-a-node)."""

import time

import pytest

from models.automation.automations.rules.graph.kinds import (
    CostClass,
    EdgeOutcome,
    JoinMode,
    NodeKind,
    OnError,
)
from models.automation.automations.rules.planner.plan import Plan, PlanEdge, PlanNode, costs_of
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    EndLoop,
    IterationsReady,
    NodeRef,
    NodeSucceeded,
    StartNode,
    earlier_scopes,
    own_scopes,
)
from tests.models.automation.automations.rules.drawing import draw

NESTED = draw(
    "a -> one -item-> x -> two -item-> p -> q",
    "two -done-> y",
    "one -done-> z",
)


def started(plan: Plan, *, items: int = 3) -> list[str]:
    """Every start, when all nodes succeed and every loop has this number of items."""
    planner = Planner(plan)
    found, waiting = [], list(planner.begin())
    while waiting:
        match waiting.pop(0):
            case StartNode(ref) if ref.node_id in ("one", "two"):
                found.append(f"{ref.node_id}@{ref.scope_key}")
                waiting += planner.apply(IterationsReady(ref, items))
            case StartNode(ref):
                found.append(f"{ref.node_id}@{ref.scope_key}")
                waiting += planner.apply(NodeSucceeded(ref))
            case EndLoop(ref):
                waiting += planner.apply(NodeSucceeded(ref, "done"))
            case _:
                pass
    return found


def test_a_start_in_an_iteration_runs_that_iteration_and_what_follows_the_loop() -> None:
    plan = NESTED.restricted([("x", "one:2")])
    assert plan.entries == ("one",)
    assert started(plan) == [
        "one@",
        "x@one:2",
        "two@one:2",
        *[f"{name}@one:2/two:{index}" for index in range(3) for name in ("p", "q")],
        "y@one:2",
        "z@",
    ]


def test_a_start_in_an_inner_iteration() -> None:
    plan = NESTED.restricted([("q", "one:1/two:2")])
    assert started(plan) == ["one@", "two@one:1", "q@one:1/two:2", "y@one:1", "z@"]


def test_several_starts_each_where_it_lies() -> None:
    plan = NESTED.restricted([("q", "one:0/two:1"), ("y", "one:2"), ("p", "one:0/two:0")])
    assert started(plan) == [
        "one@",
        "two@one:0",
        "p@one:0/two:0",
        "q@one:0/two:0",
        "q@one:0/two:1",
        "y@one:0",
        "y@one:2",
        "z@",
    ]


def test_a_loop_that_is_a_start_itself_runs_whole() -> None:
    plan = NESTED.restricted([("x", "one:1"), ("one", "")])
    assert plan.resumed == ()
    assert started(plan, items=1)[1] == "x@one:0"
    inner = NESTED.restricted([("two", "one:1"), ("q", "one:1/two:2")])
    assert inner.resumed == (("one:1", ("two",)),)


def test_a_start_that_another_one_leads_to_waits_for_it() -> None:
    plan = draw("a -> b -> c").restricted([("c", ""), ("b", "")])
    assert plan.entries == ("b",)
    plan = NESTED.restricted([("y", "one:0"), ("x", "one:0")])
    assert plan.resumed == (("one:0", ("x",)),)


def test_edges_from_before_the_start_count_as_taken_in_an_iteration_too() -> None:
    plan = draw("one -item-> l -> m", "one -item-> r -> m -> n", joins={"m": (JoinMode.COUNT, 2)})
    assert started(plan.restricted([("r", "one:0")])) == ["one@", "r@one:0", "m@one:0", "n@one:0"]


def test_a_node_in_a_body_without_a_scope_begins_in_the_first_iterations() -> None:
    assert NESTED.scope_of("q") == "one:0/two:0"
    assert NESTED.scope_of("q", 4) == "one:0/two:4"
    assert NESTED.scope_of("z", 4) == ""
    assert NESTED.restricted("q") == NESTED.restricted([("q", "one:0/two:0")])


@pytest.mark.parametrize("scope", ["one:1/two:0", "two:1", "other:1"])
def test_a_scope_the_node_is_not_in_is_refused(scope: str) -> None:
    with pytest.raises(KeyError):
        NESTED.restricted([("x", scope)])


def test_restricting_a_plan_keeps_the_loops_around_named_nodes() -> None:
    plan = NESTED.restricted("a", frozenset({"p"}))
    off = {node.id for node in plan.nodes if node.disabled}
    assert off == {"x", "q", "y", "z"}


def test_a_plan_until_a_node_after_a_loop_runs_the_whole_loop() -> None:
    assert {node.id for node in NESTED.until("z").nodes} == set(NESTED.nodes_by_id())
    assert {node.id for node in NESTED.until("p").nodes} == {"a", "one", "x", "two", "p"}
    assert {node.id for node in NESTED.until("y").nodes} == {"a", "one", "x", "two", "p", "q", "y"}


def test_partial_plans_survive_json() -> None:
    for plan in (NESTED.restricted([("q", "one:1/two:2")]), NESTED.loop("two")):
        assert Plan.from_json(plan.to_json()) == plan
    pausing = Plan((PlanNode("r", NodeKind.REPEAT, pauses=True),), (), ("r",))
    assert Plan.from_json(pausing.to_json()) == pausing


def test_a_loop_without_done_is_a_leaf_and_its_body_none_of_the_root() -> None:
    plan = draw("loop -item-> x")
    assert plan.leaves() == ("loop", "x")
    assert Planner(plan.iteration("loop", OnError.STOP), "loop:0").begin() == (
        StartNode(NodeRef("x", "loop:0")),
    )


@pytest.mark.parametrize(
    ("disabled", "leaves"),
    [("", "c y"), ("c", "b y"), ("bc", "a y"), ("b", "c y"), ("cz", "b y"), ("abcxyz", "")],
)
def test_a_disabled_node_is_no_leaf_and_its_predecessors_may_be(disabled: str, leaves: str) -> None:
    plan = draw("a -> b -> c", "x -> z -> y", disabled=disabled)
    assert plan.leaves() == tuple(leaves.split())


def test_a_run_of_named_nodes_answers_with_the_last_of_them() -> None:
    plan = draw("a -> b -> c -> d")
    assert plan.restricted("a", frozenset("b")).leaves() == ("b",)


def with_kinds(plan: Plan, **kinds: NodeKind) -> Plan:
    nodes = tuple(
        PlanNode(node.id, kinds.get(node.id, NodeKind.TRANSFORM), pauses=node.pauses)
        for node in plan.nodes
    )
    return Plan(nodes, plan.edges, plan.entries)


@pytest.mark.parametrize(
    ("kinds", "one", "two"),
    [
        ({}, CostClass.QUICK, CostClass.QUICK),
        ({"y": NodeKind.HTTP_REQUEST}, CostClass.LOOP, CostClass.QUICK),
        ({"q": NodeKind.DELAY}, CostClass.LOOP, CostClass.LOOP),
    ],
)
def test_a_loop_costs_what_its_body_costs(
    kinds: dict[str, NodeKind], one: CostClass, two: CostClass
) -> None:
    loops = {"one": NodeKind.FOR_EACH, "two": NodeKind.REPEAT}
    costs = costs_of(with_kinds(NESTED, **loops, **kinds))
    assert (costs["one"], costs["two"]) == (one, two)


def test_a_node_sees_its_scopes() -> None:
    assert own_scopes("one:3/two:0") == ["one:3/two:0", "one:3", ""]
    assert own_scopes("") == [""]
    assert earlier_scopes("one:3/two:2", {"two"}) == ["one:3/two:1"]
    assert earlier_scopes("one:3/two:2", {"one", "two"}) == ["one:3/two:1", "one:2"]
    assert earlier_scopes("one:0", {"one"}) == []


def test_a_part_of_the_widest_graph_is_found_soon() -> None:
    """It is worked out while a request waits, and while every other request does."""
    chain = " -done-> ".join(f"l{number}" for number in range(100))
    bodies = [f"l{number} -item-> b{number}" for number in range(100)]
    leaps = [f"l{number} -done-> l{number + far}" for far in (2, 3, 4) for number in range(96)]
    plan = draw(chain, *bodies, *leaps)
    began = time.thread_time()
    part = plan.restricted("l0", frozenset(node.id for node in plan.nodes))
    assert len(part.nodes) == 200
    assert time.thread_time() - began < 1


def test_an_edge_of_a_case_survives_json() -> None:
    nodes = (PlanNode("choose", NodeKind.SWITCH), PlanNode("then", NodeKind.TRANSFORM))
    edge = PlanEdge("choose", "then", EdgeOutcome.CASE, "first")
    plan = Plan(nodes, (edge,), ("choose",))
    assert Plan.from_json(plan.to_json()).edges == (edge,)
