"""Checks of a graph as nodes and edges: ids, entries, cycles, loops, outputs that are read."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind, is_loop, shorten
from models.automation.automations.rules.graph.shapes import Graph, GraphEdge, GraphNode
from models.automation.automations.rules.language import static_reads
from models.automation.automations.rules.planner import plan as planner_plan
from models.core.base import JsonObject
from models.core.problems import nearest_known

Problem = tuple[str, str]
"""A node id, empty for the whole graph, and a sentence."""

_LONGEST_CYCLE_SHOWN = 12


def entries_of(graph: Graph) -> list[str]:
    """The nodes at which a run begins: the named entries, or else those nothing leads to.

    See interface.md#execution-of-a-graph.
    """
    if graph.entry_node_ids:
        return list(dict.fromkeys(graph.entry_node_ids))
    targets = {edge.target for edge in graph.edges}
    return [node.id for node in graph.nodes if node.id not in targets]


def structure_problems(graph: Graph) -> Iterator[Problem]:
    """The problems with ids, edges, entries, cycles, reachability, loops and reads of outputs."""
    if not graph.nodes:
        yield "", "The graph has no nodes."
        return
    node_ids = {node.id for node in graph.nodes}
    yield from _duplicates(graph)
    yield from _edge_problems(graph.edges, node_ids)
    entries = entries_of(graph)
    for entry in entries:
        if entry not in node_ids:
            yield "", f'The entry node "{shorten(entry)}" does not exist.'
    edges = [e for e in graph.edges if {e.source, e.target} <= node_ids and e.source != e.target]
    following: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    for edge in edges:
        following[edge.source].append(edge.target)
    cycle = find_cycle(following)
    if cycle:
        yield cycle[0], f"The nodes form a cycle: {_spelled(cycle)}."
    elif not entries:
        yield "", "The graph has no entry node."
    else:
        yield from loop_problems(graph, edges, entries)
        yield from reading_problems(graph, edges)
    connected = planner_plan.reached((entry for entry in entries if entry in node_ids), following)
    for node in graph.nodes:
        if node.id not in connected and node.id not in cycle:
            yield node.id, "No path leads from an entry node to this node."


def _duplicates(graph: Graph) -> Iterator[Problem]:
    for node_id in _repeated(node.id for node in graph.nodes):
        yield node_id, "Another node has the same id."
    for edge_id in _repeated(edge.id for edge in graph.edges if edge.id is not None):
        yield "", f'Two edges have the id "{shorten(edge_id)}".'
    for payload_id in _repeated(payload.id for payload in graph.test_payloads):
        yield "", f'Two test payloads have the id "{shorten(payload_id)}".'
    for note_id in _repeated(note.id for note in graph.notes or ()):
        yield "", f'Two notes have the id "{shorten(note_id)}".'


def _repeated(ids: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for item in ids:
        if item in seen:
            repeated[item] = None
        seen.add(item)
    return list(repeated)


def _edge_problems(edges: Sequence[GraphEdge], known: set[str]) -> Iterator[Problem]:
    for edge in edges:
        if edge.source not in known:
            at = edge.target if edge.target in known else ""
            yield at, f'An edge comes from the node "{shorten(edge.source)}", which does not exist.'
        if edge.target not in known:
            at = edge.source if edge.source in known else ""
            yield at, f'An edge leads to the node "{shorten(edge.target)}", which does not exist.'
        elif edge.source == edge.target:
            yield edge.source, "An edge leads from the node to itself."


def find_cycle(following: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of one cycle in order, empty when there is none."""
    visited_ids: set[str] = set()
    for start in following:
        if start in visited_ids:
            continue
        path: dict[str, Iterator[str]] = {start: iter(following[start])}
        while path:
            current = next(reversed(path))
            step = next(path[current], None)
            if step is None:
                visited_ids.add(current)
                del path[current]
            elif step in path:
                trail = list(path)
                return trail[trail.index(step) :]
            elif step not in visited_ids:
                path[step] = iter(following[step])
    return []


def _spelled(cycle: Sequence[str]) -> str:
    shown = [shorten(node_id) for node_id in cycle[:_LONGEST_CYCLE_SHOWN]]
    rest = len(cycle) - len(shown)
    return " → ".join([*shown, *([f"… {rest} more"] if rest else []), shown[0]])


MAX_NESTING = 5
"""Depth of nested loops (interface.md#limits)."""

Home = Mapping[str, str]


def loop_problems(
    graph: Graph, edges: Sequence[GraphEdge], entries: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The problems with loops, given edges between existing nodes and no cycle."""
    loops = [node for node in graph.nodes if is_loop(node.kind)]
    if not loops:
        return
    home = planner_plan.homes_of((node.id for node in graph.nodes), edges)
    for loop in loops:
        for message in _own_problems(loop, edges, home):
            yield loop.id, message
    for edge in edges:
        problem = _crossing(edge, home)
        if problem is not None:
            yield problem
    for entry in entries:
        if home.get(entry, planner_plan.ROOT) != planner_plan.ROOT:
            yield entry, f"A run cannot begin in the body of {_named_loop(home[entry])}."


def _own_problems(loop: GraphNode, edges: Sequence[GraphEdge], home: Home) -> Iterator[str]:
    if not any(e.source == loop.id and e.outcome == EdgeOutcome.ITEM for e in edges):
        yield "The loop needs an edge with the outcome item."
    if len(planner_plan.enclosing(loop.id, home)) >= MAX_NESTING:
        yield f"Loops can be nested {MAX_NESTING} deep."
    collect = loop.parameters().get("collect")
    if isinstance(collect, str) and home.get(collect) != loop.id:
        yield f'Collects outputs of "{shorten(collect)}", which is not a node of its body.'
    if collect is True and len(ends := _ends(loop, edges, home)) > 1:
        named = ", ".join(map(_quoted, ends))
        yield f"Collects outputs, but its body ends with several nodes: choose one of {named}."


def _ends(loop: GraphNode, edges: Sequence[GraphEdge], home: Home) -> list[str]:
    """The last nodes of a loop's own body."""
    followed = {e.source for e in edges if home[e.target] == loop.id}
    return sorted(id_ for id_, own in home.items() if own == loop.id and id_ not in followed)


def _crossing(edge: GraphEdge, home: Home) -> tuple[str, str] | None:
    """The problem of an edge between two scopes: only `item` leads into a body, none out."""
    source, target = edge.source, edge.target
    inner = source if edge.outcome == EdgeOutcome.ITEM else home[source]
    if home[target] == inner:
        return None
    if edge.outcome == EdgeOutcome.ITEM and home[target] == home[source]:
        return source, f"Its item edge leads to {_quoted(target)}, as do its other edges."
    if home[target] != planner_plan.ROOT and home[target] not in (
        *planner_plan.enclosing(source, home),
        source,
    ):
        way = f"An edge from {_quoted(source)} leads into the body of {_named_loop(home[target])}"
        return target, f"{way} from outside; only its item edge may."
    way = f"An edge to {_quoted(target)} leaves the body of {_named_loop(inner)}"
    return source, f"{way}; what follows the loop follows its done edge."


def _named_loop(loop: str) -> str:
    return f"the loop {_quoted(loop)}"


def _quoted(node_id: str) -> str:
    return f'"{shorten(node_id)}"'


def reading_problems(graph: Graph, edges: Sequence[GraphEdge]) -> Iterator[tuple[str, str]]:
    """The reads that give null in every run, for a graph without cycles.

    An item outside of a loop is none: a run from a node brings it along as its `scope`.
    """
    home = planner_plan.homes_of((node.id for node in graph.nodes), edges)
    repeats = frozenset(node.id for node in graph.nodes if node.kind == NodeKind.REPEAT)
    steps = planner_plan.following(edges)
    for node in graph.nodes:
        read = (static_reads.node_references(node) or frozenset()) & home.keys()
        later = planner_plan.reached([node.id], steps) if read else {}
        around = {*planner_plan.enclosing(node.id, home), node.id}
        for read_id in sorted(read):
            loops = planner_plan.enclosing(read_id, home)
            if not around.issuperset(loops):
                yield node.id, f"Reads {_named_node(read_id, node)}, {_hidden(loops, around)}."
            # Results of a repeat are visible in its next iteration.
            elif read_id in later and repeats.isdisjoint(loops):
                yield node.id, f"Reads {_named_node(read_id, node)}, which has not run by then."


def _hidden(loops: Sequence[str], around: Collection[str]) -> str:
    beyond = next(loop for loop in loops if loop not in around)
    return f'whose outputs are seen only inside the loop "{shorten(beyond)}"'


def _named_node(other: str, node: GraphNode) -> str:
    return "its own output" if other == node.id else f'the node "{shorten(other)}"'


_TEXT = {"type": "string"}
_COUNT = {"type": "integer"}
_OBJECT = {"type": "object"}
_LIST = {"type": "array", "items": {}}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_FLAG = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Output:
    """The keys of an output, each with the JSON Schema of its value.

    With `open` there are others, which depend on more than the kind. `parameter` is the one
    whose keys are the keys of the output.
    """

    says: str = ""
    keys: Mapping[str, JsonObject] = field(default_factory=dict)
    open: bool = False
    parameter: str | None = None


def _key(schema: JsonObject, says: str) -> JsonObject:
    return {**schema, "description": says}


_RECORD = _key(_OBJECT, "The record: `id`, `title`, `data`, `relations`, …")
_COUNTS = {
    "count": _key(_COUNT, "How many iterations there were."),
    "succeeded": _key(_COUNT, "Those without a failure."),
    "failed": _key(_COUNT, "Those with one."),
    "errors": _key(_LIST, "`{index, nodeId, error}` of the first failed ones, if there are any."),
    "results": _key(_LIST, "With `collect`: one output for each iteration, in order."),
}

_ANSWERED = ("headers", "body", "bodyEncoding")

OUTPUTS: Mapping[NodeKind, Output] = {
    NodeKind.ACTION: Output("The result of the action, as its kind gives it.", open=True),
    NodeKind.HTTP_REQUEST: Output(
        keys={
            "status": _key(_COUNT, "The status of the answer."),
            "headers": _key(_OBJECT, "Its headers, with names in lower case."),
            "body": _key({}, "Its JSON, else its text, else its bytes in Base64."),
            "bodyEncoding": _key(_TEXT, "`json`, `text` or `base64`; null without a body."),
            "file": _key(_OBJECT, "With `saveAs`: `{fileId, name, mimeType, byteSize}`."),
        }
    ),
    NodeKind.QUERY_RECORDS: Output(
        keys={
            "records": _key(_LIST, "The records of the page."),
            "cursor": _key(_TEXT, "Where the next page begins; null at the end."),
            "count": _key(_COUNT, "How many records the page has."),
            "groups": _key(_LIST, "With `groupBy`."),
            "aggregates": _key(_OBJECT, "With `aggregates`."),
        }
    ),
    NodeKind.CREATE_RECORD: Output(
        keys={
            "record": _RECORD,
            "created": _key(_FLAG, "False where `upsertBy` found a record."),
        }
    ),
    NodeKind.UPDATE_RECORD: Output(keys={"record": _RECORD}),
    NodeKind.DELETE_RECORD: Output(keys={"record": _RECORD}),
    NodeKind.TRANSFORM: Output("The map `output`, its bindings resolved.", parameter="output"),
    NodeKind.CONDITION: Output(keys={"result": _key(_FLAG, "What the condition gave.")}),
    NodeKind.SWITCH: Output(keys={"case": _key(_TEXT, "The key of the case; null for none.")}),
    NodeKind.FOR_EACH: Output(keys=_COUNTS),
    NodeKind.REPEAT: Output(
        keys={**_COUNTS, "limitReached": _key(_FLAG, "Whether `maxIterations` ended it.")}
    ),
    NodeKind.JOIN: Output("An empty object."),
    NodeKind.DELAY: Output("An empty object."),
    NodeKind.WAIT_EVENT: Output(
        keys={
            "data": _key(_OBJECT, "What came with the event; null after a timeout."),
            "resumedBy": _key(_TEXT, "Who resumed it; absent for a resume URL."),
        }
    ),
    NodeKind.APPROVAL: Output(
        keys={
            "decision": _key(_TEXT, "`approved`, `rejected` or `timeout`."),
            "comment": _key(_TEXT, "That of the last decision."),
            "data": _key(_OBJECT, "The answers to the form, by key."),
            "decisions": _key(_LIST, "`{userId, decision, comment, at}` of each, oldest first."),
        }
    ),
    NodeKind.CALL_AUTOMATION: Output(
        keys={
            "runId": _key(_TEXT, "The run of the other automation; null where it was skipped."),
            "status": _key(_TEXT, "How far it has come."),
            "output": _key(_OBJECT, "With `wait`: its output."),
        }
    ),
    NodeKind.NOTIFY: Output(keys={"notified": _key(_TEXTS, "The ids of the members.")}),
    NodeKind.SEND_EMAIL: Output(
        keys={
            "messageId": _key(_TEXT, "The `Message-ID` of the mail."),
            "accepted": _key(_TEXTS, "The addresses that the mail server accepted."),
            "refused": _key(_LIST, "`{address, status}` of the others."),
        }
    ),
    NodeKind.SEND_WEBHOOK: Output(
        keys={
            "webhookId": _key(_TEXT, "The `webhook-id` of the event."),
            "status": _key(_COUNT, "The status of the answer."),
            **{key: _key({}, "After a failure: as of `http_request`.") for key in _ANSWERED},
        }
    ),
    NodeKind.RESPOND: Output(
        keys={
            "status": _key(_COUNT, "As answered."),
            "headers": _key(_OBJECT, "As answered."),
            "body": _key({}, "As answered."),
        }
    ),
    NodeKind.STOP: Output(
        "The map `output`, and beside its keys `result` and `message`.",
        keys={
            "result": _key(_TEXT, "`succeeded` or `failed`."),
            "message": _key(_TEXT, "If there is one."),
        },
        parameter="output",
    ),
}

AFTER_FAILURE = ("error", "errorCode")
"""The keys of a node that failed, beside the keys of its output, if it has one."""
SIMULATED = "simulated"
"""The output of a node with side effects in a simulated test run: true under this key."""


def readable_keys(kind: NodeKind, parameters: JsonObject) -> frozenset[str] | None:
    """The keys that the output of a node can have; None when more than its config decides."""
    output = OUTPUTS[kind]
    if output.open:
        return None
    if output.parameter is None:
        return frozenset(output.keys)
    content = parameters.get(output.parameter, {})
    if not isinstance(content, dict) or content.keys() == {"type", "value"}:
        return None
    return frozenset({*output.keys, *content})


def output_key_warnings(graph: Graph) -> Iterator[Problem]:
    """The reads of keys that no output of the other node has, each with those there are.

    The warnings refuse nothing: a binding of such a key gives null, and a graph may have lived with
    that.
    """
    keys = {node.id: _keys(node) for node in graph.nodes}
    for node in graph.nodes:
        for other, key in sorted(set(_reads(node))):
            there = keys.get(other)
            if there is None or key in {*there, *AFTER_FAILURE, SIMULATED}:
                continue
            has = nearest_known(key, there) if there else "it is empty"
            what = f'"{shorten(key)}" of the output of the node "{shorten(other)}"'
            yield node.id, f"Reads {what}, which does not exist; {has}."


def _keys(node: GraphNode) -> list[str] | None:
    """The keys of a node's output in a fixed order; None when they cannot be known."""
    keys = readable_keys(node.kind, node.parameters())
    mocked = (node.mock.output or {}) if node.mock is not None else {}
    return None if keys is None else sorted({*keys, *mocked})


def _reads(node: GraphNode) -> Iterator[tuple[str, str]]:
    """The nodes and keys of their outputs that a node reads without asking whether they are."""
    paths = [*static_reads.paths_of(node), *static_reads.filter_paths_of(node)]
    for text in static_reads.expressions_of(node):
        paths += (("nodes", *path) for path in static_reads.plain_reads(text, "nodes"))
    for path in paths:
        match path:
            case "nodes", other, key, *_:
                yield other, key
