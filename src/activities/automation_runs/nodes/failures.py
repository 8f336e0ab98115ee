"""The failure of a node, in the words and codes its run shows (decisions D2, Node execution)."""

from dataclasses import dataclass

import psycopg
import pydantic
import structlog
from sqlalchemy.exc import DataError

from activities.database_errors import RefusedValueError, took_too_long
from models.automation.automation_runs.errors import NodeError
from models.core.base import JsonObject
from models.core.problems import sentence
from runtime.errors import PlatformError
from runtime.outbound.errors import OutboundError

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Failure:
    """A node's failure; `retry_after` in seconds is what the other side asked for.

    `output` is what came of the node all the same.
    """

    code: str
    message: str
    retryable: bool = False
    retry_after: float | None = None
    output: JsonObject | None = None


TOO_LONG = Failure("timeout", "The database gave this node up for its time; ask it for less.")


def failure_of(error: Exception) -> Failure:
    """The failure for an exception. An unknown one is our own fault: it is logged, not shown."""
    match error:
        case OutboundError():
            return Failure(error.code, error.message, error.retryable)
        case NodeError():
            quote = f" It said: {error.quoted}" if error.quoted else ""
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
