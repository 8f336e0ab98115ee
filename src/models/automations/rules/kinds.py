"""The vocabulary of a graph: node kinds, what they cost, how they end (decisions C8, D2).

Standard library only: the workflow reads this table inside the Temporal sandbox. The model of
each kind's config is in `configs.CONFIGS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class NodeKind(StrEnum):
    """The kinds of node that can run."""

    CONDITION = "condition"
    SWITCH = "switch"
    TRANSFORM = "transform"
    JOIN = "join"
    QUERY_RECORDS = "query_records"
    CREATE_RECORD = "create_record"
    UPDATE_RECORD = "update_record"
    DELETE_RECORD = "delete_record"
    HTTP_REQUEST = "http_request"
    DELAY = "delay"
    STOP = "stop"


KINDS_TO_COME = frozenset(
    {
        "action",
        "approval",
        "call_automation",
        "for_each",
        "notify",
        "repeat",
        "respond",
        "send_email",
        "send_webhook",
        "wait_event",
    }
)
"""Kinds of decisions C8 that a draft may hold but that cannot be published yet."""


class CostClass(StrEnum):
    """How a node is executed, chosen by its kind and never by the author (decisions D2)."""

    QUICK = "quick"
    """One local activity: one database transaction."""
    OUTSIDE = "outside"
    """One regular activity on the `io` queue."""
    WAITING = "waiting"
    """A timer, signal or child of the workflow."""


class EdgeOutcome(StrEnum):
    """The ending of a node that an edge stands for (decisions C8)."""

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


class OnError(StrEnum):
    """What an unhandled node failure does to the branches beside it (decisions C8)."""

    STOP = "stop"
    CONTINUE = "continue"


class JoinMode(StrEnum):
    """How many taken edges a join waits for."""

    ALL = "all"
    """Every incoming edge resolved, at least one taken: the rule of every other node."""
    ANY = "any"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class NodeKindSpec:
    """What the engine knows about a kind."""

    cost: CostClass
    outcomes: frozenset[EdgeOutcome]


def _spec(cost: CostClass, *outcomes: EdgeOutcome) -> NodeKindSpec:
    allowed = set(outcomes)
    if EdgeOutcome.ALWAYS in allowed:
        allowed.add(EdgeOutcome.SUCCESS)
    return NodeKindSpec(cost, frozenset(allowed))


_ALWAYS, _FAILURE = EdgeOutcome.ALWAYS, EdgeOutcome.FAILURE

NODE_KINDS: Mapping[NodeKind, NodeKindSpec] = MappingProxyType(
    {
        NodeKind.CONDITION: _spec(CostClass.QUICK, EdgeOutcome.TRUE, EdgeOutcome.FALSE, _FAILURE),
        NodeKind.SWITCH: _spec(CostClass.QUICK, EdgeOutcome.CASE, EdgeOutcome.DEFAULT, _FAILURE),
        NodeKind.TRANSFORM: _spec(CostClass.QUICK, _ALWAYS, _FAILURE),
        NodeKind.JOIN: _spec(CostClass.QUICK, _ALWAYS),
        NodeKind.QUERY_RECORDS: _spec(CostClass.QUICK, _ALWAYS, _FAILURE),
        NodeKind.CREATE_RECORD: _spec(CostClass.QUICK, _ALWAYS, _FAILURE),
        NodeKind.UPDATE_RECORD: _spec(CostClass.QUICK, _ALWAYS, _FAILURE),
        NodeKind.DELETE_RECORD: _spec(CostClass.QUICK, _ALWAYS, _FAILURE),
        NodeKind.HTTP_REQUEST: _spec(CostClass.OUTSIDE, _ALWAYS, _FAILURE, EdgeOutcome.FINALLY),
        NodeKind.DELAY: _spec(CostClass.WAITING, _ALWAYS),
        NodeKind.STOP: _spec(CostClass.QUICK),
    }
)


def unsupported_kind(kind: str) -> str | None:
    """The sentence for a kind that cannot run, or None for one that can."""
    if kind in NODE_KINDS:
        return None
    supported = ", ".join(NodeKind)
    if kind in KINDS_TO_COME:
        return f'The kind "{kind}" is not available yet. Available kinds: {supported}.'
    return f'Unknown kind "{shorten(kind)}". Available kinds: {supported}.'


def shorten(text: str, limit: int = 64) -> str:
    """A client's text as a message may quote it: printable and at most `limit` characters."""
    printable = "".join(char if char.isprintable() else "?" for char in text[: limit + 1])
    return printable if len(printable) <= limit else f"{printable[: limit - 1]}…"
