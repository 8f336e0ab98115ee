"""Errors of alert rules."""

from runtime.errors import ConflictError


class TooSlowError(ConflictError):
    """The check of a rule was given up."""

    def __init__(self) -> None:
        super().__init__("The check took too long. Name an automation, or fewer filters.")
