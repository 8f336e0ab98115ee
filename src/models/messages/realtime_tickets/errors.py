"""Refusals of tickets."""

from runtime.errors import UnauthorizedError, UpstreamError


class TicketStoreError(UpstreamError):
    """The store of tickets takes none: its table is missing, locked or cannot be written."""

    def __init__(self) -> None:
        super().__init__("The store of tickets is unavailable; try again soon.")


class UnusableTicketError(UnauthorizedError):
    """The ticket was never minted, was used, or is too old: which of these is not told."""

    def __init__(self) -> None:
        super().__init__("This ticket opens no connection; mint another.")
