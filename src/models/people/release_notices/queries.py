"""Reading release notices, and how far the caller has read them."""

from typing import Any, Protocol

from sqlalchemy import Select, and_, select

from models.core.access.rules import Principal
from models.core.base import Id
from models.core.pagination import PageRequest
from models.people.release_notices.rules import ReleaseChannel
from models.people.release_notices.shapes import Release, ReleaseList, ReleaseState, WhatsNew
from models.people.release_notices.tables import ReleaseNotice, release_notice, release_watermark
from models.people.users.joins import USER, of_user
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError

MOST_SHOWN = 100
"""Notices that one read shows, the newest ones."""

_notice = release_notice.c


class _StateRow(Protocol):
    created_at: Any
    release_id: Id | None
    number: int | None


def read_channel(text: str) -> ReleaseChannel:
    """The channel that a path names. Raises `ValidationError`."""
    try:
        return ReleaseChannel(text)
    except ValueError:
        known = " or ".join(ReleaseChannel)
        raise ValidationError.at("channel", f"A channel is {known}.") from None


async def whats_new(work: UnitOfWork, principal: Principal, channel: ReleaseChannel) -> WhatsNew:
    """The caller's place on a channel, and the releases published since.

    A caller who has acknowledged nothing is told what is new since their account was made.
    """
    row = await _state_row(work, principal, channel)
    after = (
        _notice.published_at > row.created_at if row.number is None else _notice.number > row.number
    )
    newest = (
        select(release_notice)
        .where(_notice.channel == channel.value, after)
        .order_by(_notice.number.desc())
        .limit(MOST_SHOWN)
    )
    rows = await work.rows(newest, of=ReleaseNotice)
    releases = [Release.model_validate(row) for row in rows]
    return WhatsNew(releases=releases, **dict(_state(row, channel)))


async def release_state(
    work: UnitOfWork, principal: Principal, channel: ReleaseChannel
) -> ReleaseState:
    """The caller's place on a channel: how far they have read."""
    return _state(await _state_row(work, principal, channel), channel)


async def list_releases(
    work: UnitOfWork, channel: ReleaseChannel | None, page: PageRequest
) -> ReleaseList:
    """All notices, newest first, or the notices of one channel."""
    statement: Select[Any] = select(release_notice)
    if channel is not None:
        statement = statement.where(_notice.channel == channel.value)
    shown = await page.descending(work, statement, _notice.number, of=ReleaseNotice)
    return ReleaseList(
        releases=[Release.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


async def _state_row(work: UnitOfWork, principal: Principal, channel: ReleaseChannel) -> _StateRow:
    mark = release_watermark.c
    own = and_(mark.user_id == USER.id, mark.channel == channel.value)
    row = await work.first(
        of_user(principal.user_id, USER.created_at, mark.release_id, mark.number).outerjoin(
            release_watermark, own
        ),
        of=_StateRow,
    )
    if row is None:
        raise NotFoundError("user")
    return row


def _state(row: _StateRow, channel: ReleaseChannel) -> ReleaseState:
    return ReleaseState(
        channel=channel, last_seen_release_id=row.release_id, account_created_at=row.created_at
    )
