"""Tickets: each opens one realtime connection, once and soon (interface.md#limits).

The store of tickets is a table of our database, and time is the database's: any process may redeem
what another minted. When the store takes no row although the caller was found, as where the table
is locked, cannot be written or is gone, minting raises `TicketStoreError`.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import psycopg
from sqlalchemy import Uuid, bindparam, delete, func, insert, select
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.core.base import Id, Moment, Shape
from models.core.purging import MAX_ROWS
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import UnauthorizedError, UpstreamError
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement


class RealtimeTicket(SQLModel, table=True):
    """A ticket that nobody has used, by the digest of it.

    The table is unlogged: it is not on standbys, and empty after a crash, when clients mint again.
    `session_expires_at` is when the session it was minted with ends, and so does the connection.
    """

    __tablename__ = "realtime_ticket"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    digest: bytes = Field(sa_type=BYTEA, primary_key=True)
    workspace_id: Id
    user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)
    session_expires_at: datetime = Field(sa_type=Timestamp)


realtime_ticket = table_of(RealtimeTicket)


class Ticket(Shape):
    """A ticket for one realtime connection, included in `url`."""

    ticket: str
    expires_at: Moment
    url: str


class TicketStoreError(UpstreamError):
    """The store of tickets takes none: its table is missing, locked or cannot be written."""

    def __init__(self) -> None:
        super().__init__("The ticket store is unavailable. Try again soon.")


class UnusableTicketError(UnauthorizedError):
    """The ticket was never minted, was used, or is too old: which of these is not told."""

    def __init__(self) -> None:
        super().__init__("The ticket is invalid or expired. Create another.")


LIFETIME = timedelta(seconds=30)
_TOKEN_BYTES = 32
_MAX_TOKEN = 128

_ticket = realtime_ticket.c


_MINT = PreparedStatement(
    insert(realtime_ticket)
    .values(
        digest=bindparam("digest", type_=BYTEA),
        workspace_id=bindparam("workspace_id", type_=Uuid),
        user_id=bindparam("user_id", type_=Uuid),
        expires_at=func.date_trunc("milliseconds", func.clock_timestamp()) + LIFETIME,
        session_expires_at=bindparam("session_expires_at", type_=Timestamp),
    )
    .returning(_ticket.expires_at),
    RealtimeTicket,
)


@dataclass(frozen=True, slots=True)
class MintedTicket:
    """A ticket, which is told this once, and when it is too old."""

    ticket: str
    expires_at: datetime


async def mint(
    work: UnitOfWork, workspace_id: Id, user_id: Id, session_expires_at: datetime
) -> MintedTicket:
    """A ticket for a member's connection to a workspace. Raises `TicketStoreError`."""
    ticket = secrets.token_urlsafe(_TOKEN_BYTES)
    parameters = {
        "digest": fingerprint(ticket.encode()),
        "workspace_id": workspace_id,
        "user_id": user_id,
        "session_expires_at": session_expires_at,
    }
    try:
        (row,) = await _MINT.rows(work, parameters)
    except psycopg.Error as error:
        raise TicketStoreError from error
    return MintedTicket(ticket, row.expires_at)


class Redeemed(Protocol):
    """The connection that a ticket opens: its user, its workspace and its end."""

    workspace_id: Id
    user_id: Id
    session_expires_at: datetime


class _Used(Redeemed, Protocol):
    fresh: bool


_REDEEM = PreparedStatement(
    delete(realtime_ticket)
    .where(_ticket.digest == bindparam("digest", type_=BYTEA))
    .returning(
        _ticket.workspace_id,
        _ticket.user_id,
        _ticket.session_expires_at,
        (_ticket.expires_at > func.clock_timestamp()).label("fresh"),
    ),
    _Used,
)


async def redeem(work: UnitOfWork, ticket: str) -> Redeemed:
    """Use up a ticket. Raises `UnusableTicketError`, and `TicketStoreError`."""
    if len(ticket) > _MAX_TOKEN:
        raise UnusableTicketError
    try:
        found = await _REDEEM.first(work, {"digest": fingerprint(ticket.encode())})
    except psycopg.Error as error:
        raise TicketStoreError from error
    if found is None or not found.fresh:
        raise UnusableTicketError
    return found


async def purge_tickets(work: UnitOfWork) -> int:
    """Remove a batch of tickets that nobody used in time; gives their number."""
    old = select(_ticket.digest).where(_ticket.expires_at < func.clock_timestamp()).limit(MAX_ROWS)
    return (await work.execute(delete(realtime_ticket).where(_ticket.digest.in_(old)))).rowcount
