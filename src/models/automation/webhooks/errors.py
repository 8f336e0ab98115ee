"""Errors of calls to webhooks. None of them helps somebody who guesses."""

from collections.abc import Sequence

from models.core.base import Id
from runtime.errors import InternalError, MethodNotAllowedError, UnauthorizedError


class UnverifiedError(UnauthorizedError):
    """The call is not signed, not recent, or signed with another secret. It does not say which."""

    def __init__(self, *, basic: bool) -> None:
        super().__init__("The call could not be verified.")
        if basic:
            self.headers = {"WWW-Authenticate": 'Basic realm="webhook"'}  # type: ignore[misc]


class WrongMethodError(MethodNotAllowedError):
    """The webhook takes other methods (RFC 9110, 15.5.6)."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__("This webhook does not take that method.")
        self.headers = {"Allow": ", ".join(allowed)}  # type: ignore[misc]


class RunWithoutAnswerError(InternalError):
    """The run that should have answered did not succeed."""

    def __init__(self, run_id: Id) -> None:
        super().__init__(f"The automation did not succeed; its run {run_id} says why.")
