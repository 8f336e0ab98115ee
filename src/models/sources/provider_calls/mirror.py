"""Two-minute cache of provider answers, per member.

Its key is the workspace, the connection as it is configured, and the member. Nothing is read from
it before the caller's rights, the connection and the feature were checked for this very request.
"""

from datetime import timedelta

from pydantic_core import to_json
from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from models.core.base import Id, JsonObject
from models.core.purging import MAX_ROWS
from models.sources.connections.shapes import ConnectionDetail
from models.sources.provider_calls.tables import resource_mirror
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork

LIFETIME = timedelta(minutes=2)
"""Listings and contents may be up to a few minutes old (interface, Limits)."""


def question_digest(connection: ConnectionDetail, kind: str, question: JsonObject) -> bytes:
    """The digest of a question; another one as soon as the connection was changed."""
    changed = connection.updated_at.isoformat().encode()
    return fingerprint(kind.encode(), changed, to_json(sorted(question.items())))


async def mirrored(
    work: UnitOfWork,
    connection: ConnectionDetail,
    user_id: Id,
    digest: bytes,
    revision: str | None = None,
) -> JsonObject | None:
    """The answer that is still fresh, of this revision if there is one."""
    statement = select(resource_mirror.c.answer).where(
        resource_mirror.c.workspace_id == connection.workspace_id,
        resource_mirror.c.connection_id == connection.id,
        resource_mirror.c.user_id == user_id,
        resource_mirror.c.digest == digest,
        resource_mirror.c.expires_at > work.now,
        resource_mirror.c.revision.is_not_distinct_from(revision),
    )
    found: JsonObject | None = await work.scalar(statement)
    return found


async def mirror(
    work: UnitOfWork,
    connection: ConnectionDetail,
    user_id: Id,
    digest: bytes,
    answer: JsonObject,
    revision: str | None = None,
) -> None:
    """Keep an answer for a moment."""
    values = {"revision": revision, "answer": answer, "expires_at": work.now + LIFETIME}
    key = ["workspace_id", "connection_id", "user_id", "digest"]
    await work.execute(
        insert(resource_mirror)
        .values(
            workspace_id=connection.workspace_id,
            connection_id=connection.id,
            user_id=user_id,
            digest=digest,
            **values,
        )
        .on_conflict_do_update(index_elements=key, set_=values)
    )


async def purge_mirror(work: UnitOfWork, limit: int = MAX_ROWS) -> int:
    """Remove answers that are too old; how many, at most `limit`."""
    columns = resource_mirror.c
    key = (columns.workspace_id, columns.connection_id, columns.user_id, columns.digest)
    old = select(*key).where(columns.expires_at <= work.now).limit(limit).subquery()
    removed = await work.execute(
        delete(resource_mirror).where(*(one == old.c[one.key] for one in key))
    )
    return removed.rowcount
