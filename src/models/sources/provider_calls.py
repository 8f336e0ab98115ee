"""Calls to a provider while someone waits: a page of a listing, a content, a test.

Every call is a job that a worker executes within seconds; the API only waits for it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core import base as core_base
from models.core.access.rules import Actor
from models.core.openapi import documented_as
from models.core.purging import Retention
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import JOB, accept_job, find_job, own_job, purge_jobs, refusal_of
from models.sources.connections.providers import PROVIDERS, ConnectionDetail
from models.sources.connections.store import get_connection, require_feature
from models.sources.external_resources.rules import resources
from runtime import base64url, errors
from runtime.crypto import KeyRing, fingerprint
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


class CallKind(StrEnum):
    BROWSE = "browse"
    READ = "read"
    TEST = "test"


class ResourceMirror(SQLModel, table=True):
    """One answer of a provider to one member, through one connection as it was then.

    `digest` is that of the question. A content is served again only while the provider itself says
    that its `revision` is this one.

    Answers are kept for two minutes. The key of one is the workspace, the connection as it is
    configured, and the member. Nothing is read from the mirror before the caller's rights, the
    connection and the feature were checked for this very request.
    """

    __tablename__ = "resource_mirror"
    __table_args__ = (
        same_workspace("connection_id", "connection.id", ondelete="CASCADE"),
        sa.Index("ix_resource_mirror_expires_at", "expires_at"),
        {"prefixes": ["UNLOGGED"]},
    )

    workspace_id: core_base.Id = TableField(primary_key=True)
    connection_id: core_base.Id = TableField(primary_key=True)
    user_id: core_base.Id = TableField(primary_key=True)
    digest: bytes = TableField(primary_key=True, sa_type=sa.LargeBinary)
    revision: str | None = None
    answer: dict[str, Any] = TableField(sa_type=JSONB)
    expires_at: datetime = TableField(sa_type=Timestamp)


resource_mirror = table_of(ResourceMirror)

EXAMPLE_RESOURCE: core_base.JsonObject = {
    "externalType": "document",
    "externalId": "welcome",
    "name": "Welcome.md",
    "surfaceKind": "document",
    "capabilities": ["read", "mount", "import"],
}


class BrowseConnection(core_base.Input):
    """Body of browse: the resources below one, else those at the top; `query` finds by name."""

    model_config = core_base.example({"connectionId": core_base.EXAMPLE_ID, "limit": 50})

    connection_id: core_base.InputId
    parent_external_id: resources.ExternalId | None = None
    external_type: resources.ExternalId | None = None
    query: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1)] = 30
    cursor: Annotated[str, Field(max_length=8_192)] | None = None


class BrowsedResources(core_base.Shape):
    """One page of a listing."""

    resources: list[Annotated[core_base.JsonObject, documented_as("ProviderResource")]]
    cursor: core_base.Nullable[str]


class NamedResource(core_base.Input):
    """A resource of a connection, as browse gave it."""

    model_config = core_base.example(
        {"connectionId": core_base.EXAMPLE_ID, "resource": EXAMPLE_RESOURCE}
    )

    connection_id: core_base.InputId
    resource: resources.ProviderResource


class ResourceContent(core_base.Shape):
    """The content of a resource; a `link` has none, and says where it is."""

    format: resources.ReadFormat
    content: core_base.Nullable[Any]
    revision: str | None = None
    read_only: bool
    fallback_url: str | None = None


class ConnectionTest(core_base.Shape):
    """The result of testing a connection; `message` says why it does not work."""

    ok: bool
    message: str | None = None
    checked_at: core_base.Moment


MAX_LIMIT = 100
OUTCOME_LIFETIME = timedelta(hours=1)
"""The time for which a page can be read again that shows what a provider answered."""


async def usable_connection(
    work: UnitOfWork, actor: Actor, connection_id: core_base.Id, *needed: resources.Capability
) -> ConnectionDetail:
    """A connection that the actor sees, of a provider that is switched on and can do this.

    Raises NotFoundError, FeatureOffError and InvalidError, in this order.
    """
    connection = await get_connection(work, actor, connection_id)
    await require_feature(work, actor.workspace_id, connection.provider)
    provider = PROVIDERS[connection.provider]
    for capability in needed:
        if capability not in provider.capabilities:
            raise errors.InvalidError(f"{provider.label} cannot {_VERBS[capability]}.")
    return connection


_VERBS: Mapping[resources.Capability, str] = {
    resources.Capability.BROWSE: "be browsed",
    resources.Capability.SEARCH: "be searched",
    resources.Capability.READ: "be read from",
    resources.Capability.MOUNT: "be mounted",
    resources.Capability.IMPORT: "be imported from",
    resources.Capability.IMPORT_FORM: "provide forms",
    resources.Capability.WATCH: "be watched",
}


async def known_page(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: BrowseConnection
) -> BrowsedResources | None:
    """The page from the mirror, if it is there. Raises what `accept_browse` raises."""
    connection, question = await _browse_question(work, actor, keys, body)
    return await _mirrored_page(work, actor, keys, connection, question, body)


async def accept_browse(
    work: UnitOfWork, actor: Actor, keys: KeyRing, call_id: core_base.Id, body: BrowseConnection
) -> BrowsedResources | None:
    """The page from the mirror, else None: a worker asks for it.

    Raises what `usable_connection` raises, and ValidationError for a cursor of another listing.
    """
    connection, question = await _browse_question(work, actor, keys, body)
    known = await _mirrored_page(work, actor, keys, connection, question, body)
    if known is None:
        await _accept(work, actor, call_id, CallKind.BROWSE, connection, question)
    return known


async def _browse_question(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: BrowseConnection
) -> tuple[ConnectionDetail, core_base.JsonObject]:
    needed = [
        resources.Capability.BROWSE,
        *([resources.Capability.SEARCH] if body.query is not None else []),
    ]
    connection = await usable_connection(work, actor, body.connection_id, *needed)
    listing = _listing(body)
    cursor = unwrapped_cursor(keys, actor, listing, body.cursor)
    return connection, {**listing, "limit": min(body.limit, MAX_LIMIT), "cursor": cursor}


async def _mirrored_page(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    connection: ConnectionDetail,
    question: core_base.JsonObject,
    body: BrowseConnection,
) -> BrowsedResources | None:
    digest = question_digest(connection, CallKind.BROWSE, question)
    known = await mirrored_answer(work, connection, actor.user_id, digest)
    return None if known is None else _page(keys, actor, body, known)


async def browse_outcome(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    call_id: core_base.Id,
    body: BrowseConnection,
    *,
    last: bool,
) -> BrowsedResources | None:
    """The page that a worker found; None while it asks. Raises why there is none."""
    found = await _outcome(work, actor, call_id, last=last)
    return None if found is None else _page(keys, actor, body, found)


async def accept_read(
    work: UnitOfWork, actor: Actor, call_id: core_base.Id, body: NamedResource
) -> None:
    """Have a worker read a resource. Raises what `usable_connection` raises."""
    connection = await usable_connection(work, actor, body.connection_id, resources.Capability.READ)
    question = {"resource": resource_reference(body.resource)}
    await _accept(work, actor, call_id, CallKind.READ, connection, question)


async def read_outcome(
    work: UnitOfWork, actor: Actor, call_id: core_base.Id, *, last: bool
) -> ResourceContent | None:
    """The content a worker read; None while it does. Raises why there is nothing."""
    found = await _outcome(work, actor, call_id, last=last)
    return None if found is None else ResourceContent.model_validate(found)


async def accept_test(
    work: UnitOfWork, actor: Actor, call_id: core_base.Id, connection_id: core_base.Id
) -> None:
    """Have a worker try a connection. Raises NotFoundError and FeatureOffError."""
    connection = await usable_connection(work, actor, connection_id)
    await _accept(work, actor, call_id, CallKind.TEST, connection, {})


async def test_outcome(
    work: UnitOfWork, actor: Actor, call_id: core_base.Id, *, last: bool
) -> ConnectionTest | None:
    """The result of the test of a connection; None while it is tried."""
    found = await _outcome(work, actor, call_id, last=last)
    if found is None:
        return None
    checked = datetime.fromisoformat(found["checkedAt"])
    return ConnectionTest(ok=found["ok"], message=found.get("message"), checked_at=checked)


async def asked_by(
    work: UnitOfWork,
    actor: Actor,
    connection_id: core_base.Id,
    call_id: core_base.Id,
    kind: CallKind,
) -> core_base.JsonObject:
    """The question of a call that the actor has made through a connection.

    Raises NotFoundError for the call of anyone else.
    """
    call = await own_job(work, actor, WorkflowKind.PROVIDER_CALL, call_id)
    if call.subject_id != connection_id or call.input["kind"] != kind.value:
        raise errors.NotFoundError(WorkflowKind.PROVIDER_CALL.value.replace("-", " "))
    question: core_base.JsonObject = call.input["question"]
    return question


async def forget_call(work: UnitOfWork, actor: Actor, call_id: core_base.Id) -> None:
    """Remove what a call found."""
    await work.execute(
        sa.delete(JOB.id.table).where(
            JOB.workspace_id == actor.workspace_id,
            JOB.id == call_id,
            JOB.status.not_in([status.value for status in OPEN_JOB]),
        )
    )


async def purge_calls(work: UnitOfWork) -> int:
    """Remove a batch of calls that ended an hour ago. Returns the number of removed rows."""
    return await purge_jobs(
        work, work.now - OUTCOME_LIFETIME, workflow_kind=WorkflowKind.PROVIDER_CALL
    )


def resource_reference(resource: resources.ProviderResource) -> core_base.JsonObject:
    """A resource as a client named it, for a worker that asks the provider what it is."""
    return resource.to_json()


async def _accept(
    work: UnitOfWork,
    actor: Actor,
    call_id: core_base.Id,
    kind: CallKind,
    connection: ConnectionDetail,
    question: core_base.JsonObject,
) -> None:
    await accept_job(
        work,
        actor,
        WorkflowKind.PROVIDER_CALL,
        call_id,
        connection.id,
        summary=f"{kind.value.title()} · {connection.provider.value}",
        input={"kind": kind.value, "connectionId": str(connection.id), "question": question},
    )


async def _outcome(
    work: UnitOfWork, actor: Actor, call_id: core_base.Id, *, last: bool
) -> core_base.JsonObject | None:
    found = await find_job(work, actor.workspace_id, WorkflowKind.PROVIDER_CALL, call_id)
    if found.status == JobStatus.SUCCEEDED:
        return found.result
    if found.status not in OPEN_JOB:
        raise refusal_of(found) or errors.UpstreamError(
            "The provider could not be reached. Try again."
        )
    if last:
        raise errors.InProgressError("The provider is slow to respond. Try again.")
    return None


def _listing(body: BrowseConnection) -> core_base.JsonObject:
    """The listing that is asked for, apart from the page of it."""
    return {
        "parentExternalId": body.parent_external_id,
        "externalType": body.external_type,
        "query": body.query,
        "connectionId": str(body.connection_id),
    }


def _page(
    keys: KeyRing, actor: Actor, body: BrowseConnection, found: Mapping[str, Any]
) -> BrowsedResources:
    cursor = wrapped_cursor(keys, actor, _listing(body), found["cursor"])
    return BrowsedResources(resources=found["resources"], cursor=cursor)


MIRROR_LIFETIME = timedelta(minutes=2)
"""Listings and contents may be up to a few minutes old (interface.md#limits)."""


def question_digest(
    connection: ConnectionDetail, kind: str, question: core_base.JsonObject
) -> bytes:
    """The digest of a question; another one as soon as the connection was changed."""
    changed = connection.updated_at.isoformat().encode()
    return fingerprint(kind.encode(), changed, to_json(sorted(question.items())))


async def mirrored_answer(
    work: UnitOfWork,
    connection: ConnectionDetail,
    user_id: core_base.Id,
    digest: bytes,
    revision: str | None = None,
) -> core_base.JsonObject | None:
    """The answer that is still fresh, of this revision if there is one."""
    statement = sa.select(resource_mirror.c.answer).where(
        resource_mirror.c.workspace_id == connection.workspace_id,
        resource_mirror.c.connection_id == connection.id,
        resource_mirror.c.user_id == user_id,
        resource_mirror.c.digest == digest,
        resource_mirror.c.expires_at > work.now,
        resource_mirror.c.revision.is_not_distinct_from(revision),
    )
    found: core_base.JsonObject | None = await work.scalar(statement)
    return found


async def mirror_answer(
    work: UnitOfWork,
    connection: ConnectionDetail,
    user_id: core_base.Id,
    digest: bytes,
    answer: core_base.JsonObject,
    revision: str | None = None,
) -> None:
    """Keep an answer for a moment."""
    values = {"revision": revision, "answer": answer, "expires_at": work.now + MIRROR_LIFETIME}
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


purge_mirror = Retention(resource_mirror, resource_mirror.c.expires_at)
"""Answers that are too old."""


_SIGNATURE_BYTES = 16


def wrapped_cursor(
    keys: KeyRing, actor: Actor, listing: core_base.JsonObject, cursor: str | None
) -> str | None:
    """A provider's cursor as the client gets it."""
    if cursor is None:
        return None
    payload = cursor.encode()
    signature = keys.sign(_cursor_context(actor, listing) + payload)[:_SIGNATURE_BYTES]
    return base64url.encode(signature + payload)


def unwrapped_cursor(
    keys: KeyRing, actor: Actor, listing: core_base.JsonObject, cursor: str | None
) -> str | None:
    """The provider's cursor. Raises ValidationError for one that this listing did not give."""
    if cursor is None:
        return None
    raw = base64url.decode(cursor) or b""
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not keys.verify(_cursor_context(actor, listing) + payload, signature, _SIGNATURE_BYTES):
        raise errors.ValidationError.at("cursor", "Invalid cursor. Start again without it.")
    return payload.decode()


def _cursor_context(actor: Actor, listing: core_base.JsonObject) -> bytes:
    question = to_json(sorted(listing.items()))
    return fingerprint(b"browse", actor.workspace_id.bytes, actor.user_id.bytes, question)
