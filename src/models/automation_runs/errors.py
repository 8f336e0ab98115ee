"""Refusals that belong to runs."""

from runtime.errors import PlatformError


class RunClosedError(PlatformError):
    """The run has ended or was cancelled: nothing of it starts and nothing more is written."""

    tag = "ApiConflict"
    code = "run_closed"
    status = 409

    def __init__(self) -> None:
        super().__init__("The run has ended; nothing more of it is executed.")


class NodeError(PlatformError):
    """A node failed for a reason its author can act on; `code` tells the classes apart.

    `retryable` failures are tried again as the node's `retry` allows; `retry_after` seconds,
    when given, is what the other side asked for.
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
    ) -> None:
        super().__init__(message)
        self.failure_code = code
        self.retryable = retryable
        self.retry_after = retry_after
