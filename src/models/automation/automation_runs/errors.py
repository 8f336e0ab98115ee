"""Errors of runs."""

from models.core.base import JsonObject
from runtime.errors import PlatformError, RunError


class RunClosedError(PlatformError):
    """The run has ended or was cancelled: nothing of it starts and nothing more is written."""

    tag = "ApiConflict"
    code = "run_closed"
    status = 409

    def __init__(self) -> None:
        super().__init__("The run has ended; nothing more of it is executed.")


class NodeWrittenError(PlatformError):
    """Another execution of a node has written it since this transaction passed the gate.

    It is expected where two workers hold the same run, one of them without knowing of the other.
    """

    retryable = True

    tag = "ApiConflict"
    code = "node_written"
    status = 409

    def __init__(self) -> None:
        super().__init__("The node was written by another execution of it.")


class NodeError(PlatformError):
    """A node failed for a reason its author can act on; `code` tells the classes apart.

    `retryable` failures are tried again as the node's `retry` allows; `retry_after` seconds,
    when given, is what the other side asked for. `quoted` is what it said: it follows the message
    unless a secret was sent. `output` is what the node shows and what others read of it, as far as
    it came.
    """

    tag = "ApiRunError"
    status = 409

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        quoted: str = "",
        output: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.quoted = quoted
        self.output = output
        self.failure_code = code
        self.retryable = retryable
        self.retry_after = retry_after


class SlotsTakenError(RunError):
    """All slots are taken, and the automation skips further runs (decisions C7)."""

    def __init__(self) -> None:
        super().__init__(
            "As many runs as the automation allows at a time are under way, and it skips what"
            " comes meanwhile. Run it again when one has ended."
        )


class WaitsForItselfError(RunError):
    """The run would wait for a slot, but the runs that wait for it hold all slots."""

    def __init__(self) -> None:
        super().__init__(
            "The run would wait for ever: the runs that led to it hold the slots it needs. Raise"
            " the automation's concurrency limit, or call it without waiting."
        )


class DisplacesCallerError(RunError):
    """The run would displace a run that waits for it, and be cancelled with it."""

    def __init__(self) -> None:
        super().__init__(
            "The run would take the place of the run that calls it. Raise the automation's"
            " concurrency limit, or call it without waiting."
        )


class ConcurrencyKeyError(RunError):
    """The key expression of an automation cannot be evaluated on the payload."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The automation's concurrency key cannot be read: {reason}")
