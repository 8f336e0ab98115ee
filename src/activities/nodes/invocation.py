"""What a node is given and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from models.access.rules import Actor
from models.automations.rules.bindings import BindingContext
from models.base import JsonObject
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Invocation:
    """One node about to do its work inside the transaction `work`."""

    work: UnitOfWork
    actor: Actor
    parameters: JsonObject
    """The node's config overlaid with its input, bindings resolved."""
    context: BindingContext


@dataclass(frozen=True, slots=True)
class NodeResult:
    """A success: the output, and the outcome that edges are followed by."""

    output: JsonObject
    outcome: str = "always"
    case_key: str | None = None


Handler = Callable[[Invocation], Awaitable[NodeResult]]
