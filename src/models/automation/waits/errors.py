"""Errors of waits."""

from runtime.errors import ConflictError, DeniedError, NotFoundError


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


class UnknownLinkError(NotFoundError):
    """The token of a link to decide is not one of ours."""

    def __init__(self) -> None:
        super().__init__("link")
        self.message = "This is no link of ours, or a part of it is missing: copy all of it."


class VoidLinkError(ConflictError):
    """A link to decide counts no longer: it is not told for which reason."""

    def __init__(self) -> None:
        super().__init__(
            "This link decides nothing any more: it was used, it is too old, the decision was"
            " made otherwise, or it is no longer yours to make."
        )
