"""Publishing release notices, and acknowledging them."""

from sqlalchemy import insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal
from models.people.release_notices.queries import release_state
from models.people.release_notices.shapes import (
    AcknowledgeReleases,
    PublishRelease,
    Release,
    ReleaseState,
)
from models.people.release_notices.tables import (
    ReleaseNotice,
    release_notice,
    release_watermark,
)
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.ids import new_id, parse_id

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
    statement = insert(release_notice).values(values).returning(release_notice)
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
        select(release_notice.c.number).where(
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
