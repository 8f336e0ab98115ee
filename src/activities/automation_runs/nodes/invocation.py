"""The input of a node and its answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.language.bindings import BindingContext
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Invocation:
    """One node about to write to our tables inside the transaction `work`."""

    work: UnitOfWork
    actor: Actor
    parameters: JsonObject
    """The node's config overlaid with its input, bindings resolved."""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A success: the output, and the outcome that edges are followed by."""

    output: JsonObject
    outcome: str = "always"
    case_key: str | None = None


Computation = Callable[[JsonObject, BindingContext], NodeResult]
"""A node that only computes, from its parameters and what it can read."""

Transaction = Callable[[Invocation], Awaitable[NodeResult]]
"""A node that reads or writes our tables."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One effect about to leave the machine, in one of its attempts."""

    workspace_id: Id
    parameters: JsonObject
    """Resolved; whoever named the connection or the endpoint in them saw it then."""
    key: str
    """Constant over attempts, so that the other side can absorb a repetition."""
    began_at: datetime
    """The time the first attempt began."""
    last: bool
    """No attempt follows this one."""
    actor: Actor
    redaction: Redaction | None = None
    """The secrets that are sent, if any."""


Effect = Callable[[Outgoing], Awaitable[NodeResult]]
"""An effect that leaves the machine, between two transactions."""


NAMED = {"connectionId": "connection_error", "endpointId": "endpoint_error"}
"""Parameters that only the config itself may name, and the failure of one that it does not."""


def check_named(parameters: JsonObject, configured: JsonObject) -> None:
    """Raise NodeError for a connection or an endpoint that a binding gives.

    Nobody has checked who sees it.
    """
    for name, code in NAMED.items():
        if parameters.get(name) is not None and not isinstance(configured.get(name), str):
            raise NodeError(code, f"{name} takes an id and no binding.")
