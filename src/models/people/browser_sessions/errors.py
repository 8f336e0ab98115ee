"""Refusals of links to sign in."""

from runtime.errors import UnauthorizedError


class UnusableLinkError(UnauthorizedError):
    """The link was never made, was used, or is too old: it is not told which of these."""

    advice = "Make another link with `workspace sign-in`."

    def __init__(self) -> None:
        super().__init__(
            "This link signs nobody in: it was used, is too old, or was replaced by a newer one."
            " `workspace sign-in` prints another."
        )
