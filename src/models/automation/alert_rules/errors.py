"""Errors of alert rules."""

from runtime.errors import ConflictError


class TooSlowError(ConflictError):
    """The look at what a rule watches was given up."""

    def __init__(self) -> None:
        super().__init__("It took too long to look. Name an automation, or fewer filters.")
