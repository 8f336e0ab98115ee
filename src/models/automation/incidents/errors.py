"""Errors of incidents."""

from runtime.errors import ConflictError


class NothingToRetryError(ConflictError):
    """Every run of the incident was retried with success, or is gone."""

    def __init__(self) -> None:
        super().__init__("No run of the incident is left to retry.")
