"""Errors of operations over runs."""

from runtime.errors import ConflictError


class OperationEndedError(ConflictError):
    """The operation has ended: it can be neither paused nor resumed."""

    def __init__(self) -> None:
        super().__init__("The operation has ended. Make another one.")


class NotPausedError(ConflictError):
    """The operation goes on: there is nothing to resume."""

    def __init__(self) -> None:
        super().__init__("The operation is not paused.")


class NotUndoableError(ConflictError):
    """The effects of the operation stay, or it still goes on."""
