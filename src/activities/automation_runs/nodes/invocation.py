"""The input of a node, its answer, and its failure in the words its run shows."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import psycopg
import pydantic
import structlog
from sqlalchemy.exc import DataError

from activities.database_errors import RefusedValueError, took_too_long
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.language.bindings import BindingContext
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.problems import sentence
from runtime.database import UnitOfWork
from runtime.errors import PlatformError
from runtime.outbound.errors import OutboundError
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
    """Resolved. The member who named a connection or an endpoint in them had access to it then."""
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

    The access to it is checked when the config is saved, which a binding would bypass.
    """
    for name, code in NAMED.items():
        if parameters.get(name) is not None and not isinstance(configured.get(name), str):
            raise NodeError(code, f"{name} must be an id, not a binding.")


log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failure:
    """A node's failure; `retry_after` is in seconds, as the other server requested.

    `output` is the output that the node has despite the failure.
    """

    code: str
    message: str
    retryable: bool = False
    retry_after: float | None = None
    output: JsonObject | None = None


TOO_LONG = Failure("timeout", "The database query timed out. Read less data.")


def failure_of(error: Exception) -> Failure:
    """The failure for an exception. An unknown one is our own fault: it is logged, not shown."""
    match error:
        case OutboundError():
            return Failure(error.code, error.message, error.retryable)
        case NodeError():
            quote = f" Response: {error.quoted}" if error.quoted else ""
            message = error.message + quote
            facts = (error.retryable, error.retry_after, error.output)
            return Failure(error.failure_code, message, *facts)
        case PlatformError():
            return Failure(error.code, error.message)
        case pydantic.ValidationError():
            first = error.errors(include_url=False, include_context=False)[0]
            path = ".".join(str(part) for part in first["loc"])
            where = f"{path}: " if path else ""
            return Failure("binding_error", f"{where}{sentence(first)}")
        case DataError() | psycopg.DataError():
            return Failure(RefusedValueError.code, RefusedValueError().message)
        case _ if took_too_long(error):
            return TOO_LONG
        case _:
            log.error("node failed for an unknown reason", exc_info=error)
            return Failure("internal_error", "The platform failed to execute this node.")
