"""Errors of waits."""

from runtime.errors import ConflictError, DeniedError


class NotResumableError(ConflictError):
    """The node does not wait for anybody: it has ended, its run has, or it is of another kind."""


class DecidedAlreadyError(ConflictError):
    """Each member decides once."""

    def __init__(self) -> None:
        super().__init__("You have decided already; a decision stays as it is.")


class OnlyAskedError(DeniedError):
    """The node takes decisions of those whom it asks, and of nobody else (`allowEditors`)."""

    def __init__(self) -> None:
        super().__init__(
            "The node takes decisions of its assignees and of members with its role only."
        )


class OwnRunError(DeniedError):
    """Whoever started a run does not decide it, unless its node allows that."""

    def __init__(self) -> None:
        super().__init__(
            "Whoever started the run may not decide this, unless the node says `allowSelf`."
        )
