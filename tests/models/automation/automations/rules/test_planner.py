"""Named shapes: what runs, what is skipped, how the run ends."""

import pytest

from models.automation.automations.rules.graph.kinds import JoinMode, OnError
from models.automation.automations.rules.planner.plan import Plan
from models.automation.automations.rules.planner.planner import Planner
from models.automation.automations.rules.planner.protocol import (
    CancelNode,
    EndRun,
    NodeFailed,
    NodeRef,
    NodeSucceeded,
    RunCancelled,
    SkipNode,
    StartNode,
)
from tests.models.automation.automations.rules.drawing import draw, run

Joins = dict[str, tuple[JoinMode, int]]
ANY: Joins = {"j": (JoinMode.ANY, 0)}
TWO: Joins = {"j": (JoinMode.COUNT, 2)}
DIAMOND = draw("a -> b -> d", "a -> c -> d")
BRANCH = draw("if -true-> yes -> after", "if -false-> no -> after")
SWITCH = draw("s -case=x-> x", "s -case=y-> y", "s -default-> other")
CAUGHT = draw("a -> b -> c", "b -failure-> f", "b -finally-> z")


@pytest.mark.parametrize(
    ("plan", "endings", "started", "skipped"),
    [
        pytest.param(draw("a -> b -> c"), {}, "a b c", "", id="chain"),
        pytest.param(draw("a -success-> b"), {}, "a b", "", id="success is always"),
        pytest.param(DIAMOND, {}, "a b c d", "", id="diamond"),
        pytest.param(draw("a -> b", "a -> c"), {}, "a b c", "", id="fork"),
        pytest.param(draw("a", "b", "c -> d"), {}, "a b c d", "", id="entries start together"),
        pytest.param(draw("a -> b", "a -finally-> b"), {}, "a b", "", id="parallel edges"),
        pytest.param(BRANCH, {"if": "true"}, "if yes after", "no", id="true"),
        pytest.param(BRANCH, {"if": "false"}, "if no after", "yes", id="false"),
        pytest.param(SWITCH, {"s": "case=y"}, "s y", "x other", id="case"),
        pytest.param(SWITCH, {"s": "default"}, "s other", "x y", id="default"),
        pytest.param(
            draw("if -true-> a -> b -> c", "if -false-> z"),
            {"if": "false"},
            "if z",
            "a b c",
            id="dead branch",
        ),
        pytest.param(CAUGHT, {}, "a b c z", "f", id="success with failure edges"),
        pytest.param(CAUGHT, {"b": "fail"}, "a b f z", "c", id="failure and finally"),
        pytest.param(
            draw("if -true-> a -finally-> z", "if -false-> b"),
            {"if": "false"},
            "if b",
            "a z",
            id="finally is not taken after a skip",
        ),
        pytest.param(draw("a -> b -> c", disabled="b"), {}, "a c", "b", id="disabled"),
        pytest.param(
            draw("a -> b -> c -> d", disabled="abcd"), {}, "", "a b c d", id="all disabled"
        ),
        pytest.param(
            draw("a -> c -true-> d", "c -finally-> e", disabled="c"),
            {},
            "a e",
            "c d",
            id="a disabled condition chooses nothing",
        ),
        pytest.param(
            draw("if -true-> a -> b", "if -false-> z", disabled="a"),
            {"if": "false"},
            "if z",
            "a b",
            id="a disabled node on a dead path passes nothing",
        ),
        pytest.param(draw("a", "b -> c", entries="a"), {}, "a", "b c", id="not an entry"),
        pytest.param(draw("a -> b", entries="ab"), {}, "a b", "", id="entry with an incoming edge"),
        pytest.param(draw("a -> j", "b -> j", "c -> j", joins=TWO), {}, "a b c j", "", id="count"),
        pytest.param(
            draw("s -case=x-> a -> j", "s -case=y-> b -> j", "s -> c -> j", joins=TWO),
            {"s": "case=x"},
            "s a c j",
            "b",
            id="count with a dead edge",
        ),
        pytest.param(
            draw("s -case=x-> a -> j -> k", "s -case=y-> b -> j", joins=TWO),
            {"s": "case=x"},
            "s a",
            "b j k",
            id="impossible count",
        ),
        pytest.param(
            draw("s -case=x-> a -> j", "s -default-> b -> j", joins=ANY),
            {"s": "default"},
            "s b j",
            "a",
            id="any",
        ),
        pytest.param(
            draw("s -case=x-> a -> j", "s -case=y-> b -> j", joins=ANY),
            {"s": "default"},
            "s",
            "a b j",
            id="any without a taken edge",
        ),
    ],
)
def test_each_graph_shape_runs_as_expected(
    plan: Plan, endings: dict[str, str], started: str, skipped: str
) -> None:
    trace = run(plan, endings)
    assert sorted(trace.started) == sorted(started.split())
    assert sorted(trace.skipped) == sorted(skipped.split())
    assert trace.cancelled == []
    assert trace.end == EndRun(succeeded=True)


def test_a_node_waits_for_all_its_edges() -> None:
    planner = Planner(DIAMOND)
    planner.begin()
    assert planner.apply(NodeSucceeded(NodeRef("a"))) == (
        StartNode(NodeRef("b")),
        StartNode(NodeRef("c")),
    )
    assert planner.apply(NodeSucceeded(NodeRef("c"))) == ()
    assert planner.active == (NodeRef("b"),)
    assert planner.apply(NodeSucceeded(NodeRef("b"))) == (StartNode(NodeRef("d")),)
    assert planner.apply(NodeSucceeded(NodeRef("d"))) == (EndRun(succeeded=True),)
    assert planner.ended


@pytest.mark.parametrize(("joins", "needed"), [(ANY, 1), (TWO, 2), ({}, 3)])
def test_a_join_starts_at_its_nth_edge_and_ignores_later_ones(joins: Joins, needed: int) -> None:
    planner = Planner(draw("a -> j", "b -> j", "c -> j", joins=joins))
    planner.begin()
    starts = [
        planner.apply(NodeSucceeded(NodeRef(name))) == (StartNode(NodeRef("j")),) for name in "abc"
    ]
    assert starts == [number == needed for number in (1, 2, 3)]
    assert planner.apply(NodeSucceeded(NodeRef("j"))) == (EndRun(succeeded=True),)


def test_a_join_that_started_early_does_not_end_the_run_before_its_siblings() -> None:
    planner = Planner(draw("a -> j", "b -> j", joins=ANY))
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    assert planner.apply(NodeSucceeded(NodeRef("j"))) == ()
    assert planner.apply(NodeSucceeded(NodeRef("b"))) == (EndRun(succeeded=True),)


def test_an_unhandled_failure_cancels_the_siblings() -> None:
    trace = run(draw("a -> b", "c -> d", "e"), {"c": "fail"}, last="ae")
    assert trace.started == ["a", "c", "e"]
    assert trace.cancelled == ["a", "e"]
    assert trace.end == EndRun(succeeded=False, failed=NodeRef("c"))


def test_an_unhandled_failure_lets_other_branches_finish_when_told_to() -> None:
    plan = draw("a -> b", "c -> d", "e -> f", on_error=OnError.CONTINUE)
    trace = run(plan, {"c": "fail", "e": "fail"}, last="e")
    assert trace.started == ["a", "c", "e", "b"]
    assert trace.skipped == ["d", "f"]
    assert trace.cancelled == []
    assert trace.end == EndRun(succeeded=False, failed=NodeRef("c"))


def test_a_handled_failure_is_no_failure_of_the_run() -> None:
    assert run(draw("a -failure-> b"), {"a": "fail"}).end == EndRun(succeeded=True)
    assert run(draw("a -finally-> b"), {"a": "fail"}).end == EndRun(succeeded=True)


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("stop", EndRun(True, None, NodeRef("halt"))),
        ("stop failed", EndRun(False, NodeRef("halt"), NodeRef("halt"))),
    ],
)
def test_a_stop_node_ends_the_run_and_its_siblings(how: str, end: EndRun) -> None:
    trace = run(draw("a -> halt", "a -> b -> c"), {"halt": how}, last="b")
    assert trace.started == ["a", "b", "halt"]
    assert trace.cancelled == ["b"]
    assert trace.end == end


def test_a_cancelled_run_starts_nothing_and_says_nothing() -> None:
    planner = Planner(DIAMOND)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    assert planner.apply(RunCancelled()) == (CancelNode(NodeRef("b")), CancelNode(NodeRef("c")))
    assert planner.ended
    assert planner.active == ()
    for event in (NodeSucceeded(NodeRef("b")), NodeFailed(NodeRef("c")), RunCancelled()):
        assert planner.apply(event) == ()


def test_nodes_are_cancelled_in_order_whenever_they_started() -> None:
    planner = Planner(draw("b -> a", "y", "z"))
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("b")))
    assert planner.active == (NodeRef("a"), NodeRef("y"), NodeRef("z"))
    cancelled = planner.apply(RunCancelled())
    assert cancelled == tuple(CancelNode(NodeRef(name)) for name in "ayz")


@pytest.mark.parametrize("late", [NodeRef("a"), NodeRef("d"), NodeRef("x"), NodeRef("b", "l:0")])
def test_an_event_of_a_node_that_is_not_active_is_ignored(late: NodeRef) -> None:
    planner = Planner(DIAMOND)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("a")))
    assert planner.apply(NodeSucceeded(late)) == ()
    assert planner.apply(NodeFailed(late)) == ()
    assert planner.active == (NodeRef("b"), NodeRef("c"))


def test_an_empty_plan_ends_at_once() -> None:
    assert Planner(draw("a -> b", disabled="ab")).begin()[-1] == EndRun(succeeded=True)


def test_a_long_dead_path_is_followed_without_recursion() -> None:
    names = [f"n{index}" for index in range(5_000)]
    trace = run(draw(" -> ".join(names), disabled=names))
    assert trace.skipped == names


@pytest.mark.parametrize(
    ("start", "only", "endings", "started", "skipped"),
    [
        ("d", None, {}, "d", ""),
        ("c", None, {}, "c d", ""),
        ("a", None, {}, "a b c d", ""),
        ("a", {"a", "d"}, {}, "a d", "b c"),
        ("c", {"c"}, {}, "c", "d"),
        ("c", {"d"}, {}, "c d", ""),
        ("c", {"c", "d", "b", "unknown"}, {}, "c d", ""),
    ],
)
def test_a_run_from_a_node_stays_inside_its_reach(
    start: str, only: set[str] | None, endings: dict[str, str], started: str, skipped: str
) -> None:
    plan = DIAMOND.restricted(start, only if only is None else frozenset(only))
    trace = run(plan, endings)
    assert trace.started == started.split()
    assert trace.skipped == skipped.split()
    assert trace.end == EndRun(succeeded=True)


def test_an_edge_from_outside_counts_as_taken_but_starts_nothing_by_itself() -> None:
    plan = draw("a -> m", "if -true-> m", "if -false-> n").restricted("if")
    planner = Planner(plan)
    assert planner.begin() == (StartNode(NodeRef("if")),)
    assert planner.apply(NodeSucceeded(NodeRef("if"), "false")) == (
        StartNode(NodeRef("m")),
        StartNode(NodeRef("n")),
    )


def test_edges_from_outside_count_in_a_join() -> None:
    plan = draw("a -> j", "b -> x -> j", "b -> y -> j", joins=TWO).restricted("b")
    assert run(plan, last="y").started == ["b", "x", "y", "j"]
    planner = Planner(plan)
    planner.begin()
    planner.apply(NodeSucceeded(NodeRef("b")))
    assert planner.apply(NodeSucceeded(NodeRef("x"))) == (StartNode(NodeRef("j")),)


def test_a_restricted_plan_can_be_restricted_again() -> None:
    plan = draw("z -> a -> m", "y -> m", "a -> b -> m").restricted("a").restricted("b")
    assert plan.nodes_by_id()["m"].taken_before == 2
    assert run(plan).started == ["b", "m"]


@pytest.mark.parametrize(
    ("node", "started"), [("a", "a"), ("b", "a b"), ("d", "a b c d"), ("f", "a b f")]
)
def test_a_test_run_stops_at_a_node(node: str, started: str) -> None:
    plan = draw("a -> b -> d", "a -> c -> d -> e", "b -> f -> e").until(node)
    assert run(plan).started == started.split()
    assert run(plan).skipped == []


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(KeyError):
        DIAMOND.restricted("nowhere")
    with pytest.raises(KeyError):
        DIAMOND.until("nowhere")


def test_commands_do_not_depend_on_the_order_of_the_plan() -> None:
    one = draw("a -> c -> e", "b -> d -> e", "a -> d")
    other = draw("a -> d", "b -> d -> e", "a -> c -> e", entries="ba")
    assert run(one) == run(other)


def test_skips_follow_the_decision_that_killed_the_path() -> None:
    planner = Planner(draw("if -true-> yes", "if -false-> no -> later"))
    planner.begin()
    assert planner.apply(NodeSucceeded(NodeRef("if"), "true")) == (
        SkipNode(NodeRef("no")),
        StartNode(NodeRef("yes")),
        SkipNode(NodeRef("later")),
    )
