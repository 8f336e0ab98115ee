"""What a node is given and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.language.bindings import BindingContext
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork


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
    key: str
    """Constant over attempts, so that the other side can absorb a repetition."""
    began_at: datetime
    """When the first attempt began."""
    last: bool
    """No attempt follows this one."""
    connection_id: Id | None = None
    """The connection it signs in through; whoever named it saw it then."""


Effect = Callable[[Outgoing], Awaitable[NodeResult]]
"""What leaves the machine, between two transactions."""


def split_connection(
    parameters: JsonObject, configured: JsonObject
) -> tuple[JsonObject, Id | None]:
    """Resolved parameters without their connection, and the connection that the config names.

    Raises NodeError for one that a binding gives: nobody has checked who sees it.
    """
    if parameters.get("connectionId") is None:
        return {name: one for name, one in parameters.items() if name != "connectionId"}, None
    named = configured.get("connectionId")
    if not isinstance(named, str):
        raise NodeError("connection_error", "connectionId takes an id and no binding.")
    return {name: one for name, one in parameters.items() if name != "connectionId"}, Id(named)
