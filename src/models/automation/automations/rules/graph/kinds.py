"""Node kinds, their cost classes, and the outcomes of their edges (interface.md#nodes).

Standard library only: the workflow reads this table inside the Temporal sandbox. The model of
each kind's config is in `configs.CONFIGS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

MAX_REMINDERS = 100
"""Reminders of one approval: more would make the history of its run long."""


class NodeKind(StrEnum):
    """The kinds of node."""

    ACTION = "action"
    HTTP_REQUEST = "http_request"
    QUERY_RECORDS = "query_records"
    CREATE_RECORD = "create_record"
    UPDATE_RECORD = "update_record"
    DELETE_RECORD = "delete_record"
    TRANSFORM = "transform"
    CONDITION = "condition"
    SWITCH = "switch"
    FOR_EACH = "for_each"
    REPEAT = "repeat"
    JOIN = "join"
    DELAY = "delay"
    WAIT_EVENT = "wait_event"
    APPROVAL = "approval"
    CALL_AUTOMATION = "call_automation"
    NOTIFY = "notify"
    SEND_EMAIL = "send_email"
    SEND_WEBHOOK = "send_webhook"
    RESPOND = "respond"
    STOP = "stop"


class CostClass(StrEnum):
    """The way a node is executed, chosen by its kind and never by the author.

    See interface.md#cost-of-nodes.
    """

    QUICK = "quick"
    """One local activity: one database transaction."""
    OUTSIDE = "outside"
    """One regular activity on the `io` queue."""
    ACTION = "action"
    """A run of an action, as a child of the workflow."""
    WAITING = "waiting"
    """A timer, signal or child of the workflow."""
    LOOP = "loop"
    """Its body, once per iteration."""


class EdgeOutcome(StrEnum):
    """The ending of a node that an edge follows."""

    ALWAYS = "always"
    SUCCESS = "success"
    FAILURE = "failure"
    FINALLY = "finally"
    TRUE = "true"
    FALSE = "false"
    CASE = "case"
    DEFAULT = "default"
    ITEM = "item"
    DONE = "done"
    APPROVED = "approved"
    REJECTED = "rejected"
    TIMEOUT = "timeout"


class OnError(StrEnum):
    """The effect of an unhandled node failure on the branches beside it."""

    STOP = "stop"
    CONTINUE = "continue"


class JoinMode(StrEnum):
    """The number of taken edges a join waits for."""

    ALL = "all"
    """Every incoming edge resolved, at least one taken: the rule of every other node."""
    ANY = "any"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class NodeKindSpec:
    """The cost class of a kind, and the outcomes its edges may have."""

    cost: CostClass
    outcomes: frozenset[EdgeOutcome]


def _spec(cost: CostClass, *outcomes: EdgeOutcome) -> NodeKindSpec:
    allowed = set(outcomes)
    if EdgeOutcome.ALWAYS in allowed:
        allowed.add(EdgeOutcome.SUCCESS)
    return NodeKindSpec(cost, frozenset(allowed))


_QUICK, _OUTSIDE, _WAITING, _LOOP = (
    CostClass.QUICK,
    CostClass.OUTSIDE,
    CostClass.WAITING,
    CostClass.LOOP,
)
_ALWAYS, _FAILURE, _FINALLY = EdgeOutcome.ALWAYS, EdgeOutcome.FAILURE, EdgeOutcome.FINALLY
_ITEM, _DONE, _TIMEOUT = EdgeOutcome.ITEM, EdgeOutcome.DONE, EdgeOutcome.TIMEOUT

NODE_KINDS: Mapping[NodeKind, NodeKindSpec] = MappingProxyType(
    {
        NodeKind.ACTION: _spec(CostClass.ACTION, _ALWAYS, _FAILURE, _FINALLY),
        NodeKind.HTTP_REQUEST: _spec(_OUTSIDE, _ALWAYS, _FAILURE, _FINALLY),
        NodeKind.QUERY_RECORDS: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.CREATE_RECORD: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.UPDATE_RECORD: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.DELETE_RECORD: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.TRANSFORM: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.CONDITION: _spec(_QUICK, EdgeOutcome.TRUE, EdgeOutcome.FALSE, _FAILURE),
        NodeKind.SWITCH: _spec(_QUICK, EdgeOutcome.CASE, EdgeOutcome.DEFAULT, _FAILURE),
        NodeKind.FOR_EACH: _spec(_LOOP, _ITEM, _DONE, _FAILURE),
        NodeKind.REPEAT: _spec(_LOOP, _ITEM, _DONE, _FAILURE),
        NodeKind.JOIN: _spec(_QUICK, _ALWAYS),
        NodeKind.DELAY: _spec(_WAITING, _ALWAYS),
        NodeKind.WAIT_EVENT: _spec(_WAITING, _ALWAYS, _TIMEOUT),
        NodeKind.APPROVAL: _spec(
            _WAITING, EdgeOutcome.APPROVED, EdgeOutcome.REJECTED, EdgeOutcome.TIMEOUT
        ),
        NodeKind.CALL_AUTOMATION: _spec(_WAITING, _ALWAYS, _FAILURE),
        NodeKind.NOTIFY: _spec(_QUICK, _ALWAYS, _FAILURE),
        NodeKind.SEND_EMAIL: _spec(_OUTSIDE, _ALWAYS, _FAILURE),
        NodeKind.SEND_WEBHOOK: _spec(_OUTSIDE, _ALWAYS, _FAILURE),
        NodeKind.RESPOND: _spec(_QUICK, _ALWAYS),
        NodeKind.STOP: _spec(_QUICK),
    }
)


def is_loop(kind: str) -> bool:
    """True when a kind repeats a body."""
    return kind in NODE_KINDS and NODE_KINDS[NodeKind(kind)].cost is CostClass.LOOP


def shorten(text: str, limit: int = 64) -> str:
    """A client's text for an error message: printable, and at most `limit` characters."""
    printable = "".join(char if char.isprintable() else "?" for char in text[: limit + 1])
    return printable if len(printable) <= limit else f"{printable[: limit - 1]}…"
