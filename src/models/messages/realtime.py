"""Realtime connections and their tickets, and the users who have one, or a page open, just now."""

import secrets
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id, Moment, Shape
from models.core.purging import MAX_ROWS
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import UnauthorizedError, UpstreamError
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement


class Presence(SQLModel, table=True):
    """A user with connections to a workspace in one process, which says so every few seconds.

    The table is unlogged: after a crash the processes fill it again.
    """

    __tablename__ = "realtime_presence"
    __table_args__ = (
        sa.Index("ix_realtime_presence_workspace_id", "workspace_id"),
        {"prefixes": ["UNLOGGED"]},
    )

    process_id: Id = Field(primary_key=True)
    workspace_id: Id = Field(primary_key=True)
    user_id: Id = Field(primary_key=True)
    seen_at: datetime = Field(sa_type=Timestamp)


class OpenTab(SQLModel, table=True):
    """A tab of a browser in which a user edits something, which says so every few seconds.

    `place_id` is what is edited, such as an automation. The table is unlogged, as that above.
    """

    __tablename__ = "open_tab"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    place_id: Id = Field(primary_key=True)
    tab_id: Id = Field(primary_key=True)
    workspace_id: Id
    user_id: Id
    seen_at: datetime = Field(sa_type=Timestamp)


presence = table_of(Presence)
open_tab = table_of(OpenTab)

REPORT_SECONDS = 20.0
FORGOTTEN_AFTER = timedelta(seconds=60)
"""The time since its last report after which a process has died, or is cut off."""

TAB_FORGOTTEN_AFTER = timedelta(seconds=20)
"""The time since its last report after which a tab is closed, or asleep."""
MOST_OTHERS = 20

_places = sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))
_users = sa.bindparam("user_ids", type_=sa.ARRAY(sa.Uuid))
_rows = (
    sa.func.unnest(_places, _users)
    .table_valued(sa.column("workspace_id", sa.Uuid), sa.column("user_id", sa.Uuid))
    .render_derived(name="given")
)


async def report_presence(
    work: UnitOfWork, process_id: Id, present: Collection[tuple[Id, Id]]
) -> None:
    """Replace what this process reported by these pairs of workspace and user."""
    forgotten = sa.func.clock_timestamp() - FORGOTTEN_AFTER
    mine = presence.c.process_id == process_id
    await work.execute(sa.delete(presence).where(sa.or_(mine, presence.c.seen_at < forgotten)))
    if not present:
        return
    workspace_ids, user_ids = zip(*sorted(present), strict=True)
    columns = ["process_id", "workspace_id", "user_id", "seen_at"]
    source = sa.select(
        sa.bindparam("process_id", type_=sa.Uuid),
        _rows.c.workspace_id,
        _rows.c.user_id,
        sa.func.clock_timestamp(),
    )
    parameters = {
        "process_id": process_id,
        "workspace_ids": list(workspace_ids),
        "user_ids": list(user_ids),
    }
    await work.execute(sa.insert(presence).from_select(columns, source), parameters)


async def present_in(work: UnitOfWork, workspace_ids: Collection[Id]) -> Mapping[Id, frozenset[Id]]:
    """The users who are connected to each of these workspaces."""
    rows = await work.rows(
        sa.select(presence.c.workspace_id, presence.c.user_id)
        .distinct()
        .where(
            presence.c.workspace_id.in_(workspace_ids),
            presence.c.seen_at > sa.func.clock_timestamp() - FORGOTTEN_AFTER,
        ),
        of=Presence,
    )
    found: defaultdict[Id, set[Id]] = defaultdict(set)
    for row in rows:
        found[row.workspace_id].add(row.user_id)
    return {id_: frozenset(found[id_]) for id_ in workspace_ids}


async def report_tab(
    work: UnitOfWork, workspace_id: Id, place_id: Id, tab_id: Id, user_id: Id
) -> list[Id]:
    """Say that a tab of a user is open at a place. The users of other tabs there, each once."""
    forgotten = open_tab.c.seen_at < sa.func.clock_timestamp() - TAB_FORGOTTEN_AFTER
    await work.execute(sa.delete(open_tab).where(open_tab.c.place_id == place_id, forgotten))
    row = upsert(open_tab).values(
        place_id=place_id,
        tab_id=tab_id,
        workspace_id=workspace_id,
        user_id=user_id,
        seen_at=sa.func.clock_timestamp(),
    )
    seen = {"user_id": row.excluded.user_id, "seen_at": row.excluded.seen_at}
    await work.execute(row.on_conflict_do_update(index_elements=["place_id", "tab_id"], set_=seen))
    statement = (
        sa.select(open_tab.c.user_id)
        .distinct()
        .where(
            open_tab.c.workspace_id == workspace_id,
            open_tab.c.place_id == place_id,
            open_tab.c.tab_id != tab_id,
        )
        .order_by(open_tab.c.user_id)
        .limit(MOST_OTHERS)
    )
    return [row.user_id for row in await work.rows(statement, of=OpenTab)]


async def leave_tab(work: UnitOfWork, workspace_id: Id, place_id: Id, tab_id: Id) -> None:
    """Forget a tab that is closed."""
    await work.execute(
        sa.delete(open_tab).where(
            open_tab.c.workspace_id == workspace_id,
            open_tab.c.place_id == place_id,
            open_tab.c.tab_id == tab_id,
        )
    )


class RealtimeTicket(SQLModel, table=True):
    """A ticket that no one has used, by the digest of it.

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
    sa.insert(realtime_ticket)
    .values(
        digest=sa.bindparam("digest", type_=BYTEA),
        workspace_id=sa.bindparam("workspace_id", type_=sa.Uuid),
        user_id=sa.bindparam("user_id", type_=sa.Uuid),
        expires_at=sa.func.date_trunc("milliseconds", sa.func.clock_timestamp()) + LIFETIME,
        session_expires_at=sa.bindparam("session_expires_at", type_=Timestamp),
    )
    .returning(_ticket.expires_at),
    RealtimeTicket,
)


@dataclass(frozen=True, slots=True)
class MintedTicket:
    """A ticket, which is shown this once, and the time when it expires."""

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
    sa.delete(realtime_ticket)
    .where(_ticket.digest == sa.bindparam("digest", type_=BYTEA))
    .returning(
        _ticket.workspace_id,
        _ticket.user_id,
        _ticket.session_expires_at,
        (_ticket.expires_at > sa.func.clock_timestamp()).label("fresh"),
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


async def purge_tabs(work: UnitOfWork) -> int:
    """Remove a batch of tabs that were not closed in order; gives their number."""
    forgotten = open_tab.c.seen_at < sa.func.clock_timestamp() - TAB_FORGOTTEN_AFTER
    old = sa.select(open_tab.c.tab_id).where(forgotten).limit(MAX_ROWS)
    return (
        await work.execute(sa.delete(open_tab).where(forgotten, open_tab.c.tab_id.in_(old)))
    ).rowcount


async def purge_tickets(work: UnitOfWork) -> int:
    """Remove a batch of tickets that no one used in time; gives their number."""
    old = (
        sa.select(_ticket.digest)
        .where(_ticket.expires_at < sa.func.clock_timestamp())
        .limit(MAX_ROWS)
    )
    return (await work.execute(sa.delete(realtime_ticket).where(_ticket.digest.in_(old)))).rowcount
