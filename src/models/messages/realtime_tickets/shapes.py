"""A ticket on the wire (interface, Limits; decisions C15)."""

from models.core.base import Moment, Shape


class Ticket(Shape):
    """The key to one realtime connection; `url` holds the ticket."""

    ticket: str
    expires_at: Moment
    url: str
