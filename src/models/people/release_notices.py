"""Release notices: what is new, and how far each user has read."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Principal
from models.core.base import EXAMPLE_ID, Id, Input, Label, Moment, Shape, example
from models.core.pagination import Listed, PageRequest
from models.people.users import USER, of_user
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.ids import new_id, parse_id
from runtime.postgresql.schema import Timestamp, one_of, table_of
from runtime.postgresql.statements import lock_name


class ReleaseChannel(StrEnum):
    WEB = "web"
    MOBILE = "mobile"


class ReleaseNotice(SQLModel, table=True):
    """News on one channel; `number` grows in the order in which notices were published."""

    __tablename__ = "release_notice"
    __table_args__ = (
        sa.ForeignKeyConstraint(["published_by_user_id"], ["app_user.id"]),
        one_of("channel", ReleaseChannel),
        sa.Index("uq_release_notice_channel_number", "channel", "number", unique=True),
    )

    id: Id = TableField(primary_key=True)
    number: int = TableField(sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)])
    channel: str
    title: str
    body: str
    url: str | None = None
    published_by_user_id: Id
    published_at: datetime = TableField(sa_type=Timestamp)


class ReleaseWatermark(SQLModel, table=True):
    """The last notice that a user has seen on a channel."""

    __tablename__ = "release_watermark"
    __table_args__ = (
        sa.ForeignKeyConstraint(["user_id"], ["app_user.id"]),
        sa.ForeignKeyConstraint(["release_id"], ["release_notice.id"]),
        one_of("channel", ReleaseChannel),
        sa.Index("ix_release_watermark_release_id", "release_id"),
    )

    user_id: Id = TableField(primary_key=True)
    channel: str = TableField(primary_key=True)
    release_id: Id
    number: int = TableField(sa_type=sa.BigInteger)
    updated_at: datetime = TableField(sa_type=Timestamp)


release_notice = table_of(ReleaseNotice)
release_watermark = table_of(ReleaseWatermark)

MAX_BODY = 20_000

Channel = Annotated[ReleaseChannel, Field(strict=False)]
WebAddress = Annotated[str, Field(max_length=2_000, pattern=r"^https?://[^\s/?#]+\S*$")]


class PublishRelease(Input):
    """Body of publish a release notice: markdown for all users of a channel."""

    model_config = example(
        {"channel": "web", "title": "Timers", "body": "Records now have a **timer**."}
    )

    channel: Channel
    title: Label
    body: Annotated[str, Field(max_length=MAX_BODY)]
    url: WebAddress | None = None


class AcknowledgeReleases(Input):
    """Body of acknowledge: the newest release notice that the caller has seen on a channel."""

    model_config = example({"channel": "web", "releaseId": EXAMPLE_ID})

    channel: Channel
    release_id: Annotated[str, Field(min_length=1, max_length=200)]


class ReleaseState(Shape):
    """The last acknowledged notice of the caller; without `lastSeenReleaseId` there is none."""

    channel: ReleaseChannel
    last_seen_release_id: Id | None
    account_created_at: Moment


class Release(Shape):
    """A release on a channel; `body` is markdown."""

    id: Id
    channel: ReleaseChannel
    title: str
    body: str
    url: str | None
    published_at: Moment


class WhatsNew(ReleaseState):
    """The last acknowledged notice of the caller, and those published since, newest first."""

    releases: list[Release]


class ReleaseList(Listed):
    releases: list[Release]


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
        raise ValidationError.at("channel", f"Must be {known}.") from None


async def whats_new(work: UnitOfWork, principal: Principal, channel: ReleaseChannel) -> WhatsNew:
    """The last acknowledged notice of the caller, and those published since.

    Without an acknowledged one, those since their account was created.
    """
    row = await _state_row(work, principal, channel)
    after = (
        _notice.published_at > row.created_at if row.number is None else _notice.number > row.number
    )
    newest = (
        sa.select(release_notice)
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
    """The last notice that the caller has acknowledged on a channel."""
    return _state(await _state_row(work, principal, channel), channel)


async def list_releases(
    work: UnitOfWork, channel: ReleaseChannel | None, page: PageRequest
) -> ReleaseList:
    """All notices, newest first, or the notices of one channel."""
    statement: sa.Select[Any] = sa.select(release_notice)
    if channel is not None:
        statement = statement.where(_notice.channel == channel.value)
    shown = await page.descending(work, statement, _notice.number, of=ReleaseNotice)
    return ReleaseList.of(shown)


async def _state_row(work: UnitOfWork, principal: Principal, channel: ReleaseChannel) -> _StateRow:
    mark = release_watermark.c
    own = sa.and_(mark.user_id == USER.id, mark.channel == channel.value)
    return await work.one(
        of_user(principal.user_id, USER.created_at, mark.release_id, mark.number).outerjoin(
            release_watermark, own
        ),
        "user",
        of=_StateRow,
    )


def _state(row: _StateRow, channel: ReleaseChannel) -> ReleaseState:
    return ReleaseState(
        channel=channel, last_seen_release_id=row.release_id, account_created_at=row.created_at
    )


_ORDER = "release-notices"


async def publish_release(work: UnitOfWork, principal: Principal, body: PublishRelease) -> Release:
    """Publish a notice for all users of a channel.

    Notices are numbered in the order of their commits: no watermark passes one that is not there
    yet.
    """
    await lock_name(work, _ORDER)
    values = {
        "id": new_id(),
        "published_by_user_id": principal.user_id,
        "published_at": work.now,
        **body.model_dump(mode="json"),
    }
    statement = sa.insert(release_notice).values(values).returning(release_notice)
    (row,) = await work.rows(statement, of=ReleaseNotice)
    return Release.model_validate(row)


async def acknowledge(
    work: UnitOfWork, principal: Principal, body: AcknowledgeReleases
) -> ReleaseState:
    """Move the caller's watermark of a channel forward; never back.

    Raises `NotFoundError` for a release that is none of the channel.
    """
    release_id = parse_id(body.release_id)
    number = await work.scalar(
        sa.select(release_notice.c.number).where(
            release_notice.c.id == release_id, release_notice.c.channel == body.channel.value
        )
    )
    if number is None:
        raise NotFoundError("release")
    values = {"release_id": release_id, "number": number, "updated_at": work.now}
    statement = upsert(release_watermark).values(
        user_id=principal.user_id, channel=body.channel.value, **values
    )
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["user_id", "channel"],
            set_=values,
            where=release_watermark.c.number < statement.excluded.number,
        )
    )
    return await release_state(work, principal, body.channel)
