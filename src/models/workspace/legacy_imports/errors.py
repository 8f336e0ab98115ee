"""The errors by which a run refuses what it is asked for."""

from models.workspace.legacy_imports.rules import LegacyImportStatus
from runtime.errors import ConflictError


class WrongStatusError(ConflictError):
    """A move that the transition table does not have; the message names the present status."""

    def __init__(self, status: str, wanted: str) -> None:
        shown = LegacyImportStatus(status).value
        super().__init__(f"The legacy import run is {shown}, so it cannot be {wanted}.")
