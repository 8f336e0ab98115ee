"""Refusals of change sets in the state they are in."""

from models.workspace.changes.rules.status import ChangeStatus
from runtime.errors import ConflictError, InProgressError


class ClosedChangesError(ConflictError):
    """A change set that was applied, was rejected or has expired stays as it is."""

    def __init__(self, status: ChangeStatus) -> None:
        super().__init__(f"The changes are {status.replace('_', ' ')} and stay as they are.")


class BeingAppliedError(InProgressError):
    """Another request is applying the change set."""

    def __init__(self) -> None:
        super().__init__("The changes are being applied. Read them again to see how far it came.")
