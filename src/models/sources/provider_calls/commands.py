"""Asking providers: what the API checks and accepts, and what a worker found.

Every call is a job that a worker executes within seconds; the API only waits for it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.jobs.commands import accept_job
from models.messages.jobs.purge import purge_jobs
from models.messages.jobs.queries import JOB, find_job, own_job, refusal_of
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.connections.features import require_feature
from models.sources.connections.providers import PROVIDERS
from models.sources.connections.queries import get_connection
from models.sources.connections.shapes import ConnectionDetail
from models.sources.external_resources.rules.resources import Capability, ProviderResource
from models.sources.provider_calls.cursors import unwrapped, wrapped
from models.sources.provider_calls.mirror import mirrored, question_digest
from models.sources.provider_calls.rules import CallKind
from models.sources.provider_calls.shapes import (
    BrowseConnection,
    BrowsedResources,
    ConnectionTest,
    NamedResource,
    ResourceContent,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, InvalidError, NotFoundError, UpstreamError
from runtime.families import Family

MAX_LIMIT = 100
OUTCOME_LIFETIME = timedelta(hours=1)
"""The time for which a page can be read again that shows what a provider answered."""


async def usable_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id, *needed: Capability
) -> ConnectionDetail:
    """A connection that the actor sees, of a provider that is switched on and can do this.

    Raises NotFoundError, FeatureOffError and InvalidError, in this order.
    """
    connection = await get_connection(work, actor, connection_id)
    await require_feature(work, actor.workspace_id, connection.provider)
    provider = PROVIDERS[connection.provider]
    for capability in needed:
        if capability not in provider.capabilities:
            raise InvalidError(f"{provider.label} cannot {_VERBS[capability]}.")
    return connection


_VERBS: Mapping[Capability, str] = {
    Capability.BROWSE: "be browsed",
    Capability.SEARCH: "be searched",
    Capability.READ: "be read from",
    Capability.MOUNT: "be mounted",
    Capability.IMPORT: "be imported from",
    Capability.IMPORT_FORM: "give forms",
    Capability.WATCH: "be watched",
}


async def known_page(
    work: UnitOfWork, actor: Actor, keys: KeyRing, body: BrowseConnection
) -> BrowsedResources | None:
    """The page from the mirror, if it is there. Raises what `accept_browse` raises."""
    connection, question = await _browse_question(work, actor, keys, body)
    return await _mirrored_page(work, actor, keys, connection, question, body)


async def accept_browse(
    work: UnitOfWork, actor: Actor, keys: KeyRing, call_id: Id, body: BrowseConnection
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
) -> tuple[ConnectionDetail, JsonObject]:
    needed = [Capability.BROWSE, *([Capability.SEARCH] if body.query is not None else [])]
    connection = await usable_connection(work, actor, body.connection_id, *needed)
    listing = _listing(body)
    cursor = unwrapped(keys, actor, listing, body.cursor)
    return connection, {**listing, "limit": min(body.limit, MAX_LIMIT), "cursor": cursor}


async def _mirrored_page(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    connection: ConnectionDetail,
    question: JsonObject,
    body: BrowseConnection,
) -> BrowsedResources | None:
    digest = question_digest(connection, CallKind.BROWSE, question)
    known = await mirrored(work, connection, actor.user_id, digest)
    return None if known is None else _page(keys, actor, body, known)


async def browse_outcome(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    call_id: Id,
    body: BrowseConnection,
    *,
    last: bool,
) -> BrowsedResources | None:
    """The page that a worker found; None while it asks. Raises why there is none."""
    found = await _outcome(work, actor, call_id, last=last)
    return None if found is None else _page(keys, actor, body, found)


async def accept_read(work: UnitOfWork, actor: Actor, call_id: Id, body: NamedResource) -> None:
    """Have a worker read a resource. Raises what `usable_connection` raises."""
    connection = await usable_connection(work, actor, body.connection_id, Capability.READ)
    question = {"resource": reference(body.resource)}
    await _accept(work, actor, call_id, CallKind.READ, connection, question)


async def read_outcome(
    work: UnitOfWork, actor: Actor, call_id: Id, *, last: bool
) -> ResourceContent | None:
    """The content a worker read; None while it does. Raises why there is nothing."""
    found = await _outcome(work, actor, call_id, last=last)
    return None if found is None else ResourceContent.model_validate(found)


async def accept_test(work: UnitOfWork, actor: Actor, call_id: Id, connection_id: Id) -> None:
    """Have a worker try a connection. Raises NotFoundError and FeatureOffError."""
    connection = await usable_connection(work, actor, connection_id)
    await _accept(work, actor, call_id, CallKind.TEST, connection, {})


async def test_outcome(
    work: UnitOfWork, actor: Actor, call_id: Id, *, last: bool
) -> ConnectionTest | None:
    """The result of the test of a connection; None while it is tried."""
    found = await _outcome(work, actor, call_id, last=last)
    if found is None:
        return None
    checked = datetime.fromisoformat(found["checkedAt"])
    return ConnectionTest(ok=found["ok"], message=found.get("message"), checked_at=checked)


async def asked_by(
    work: UnitOfWork, actor: Actor, connection_id: Id, call_id: Id, kind: CallKind
) -> JsonObject:
    """The question of a call that the actor has made through a connection.

    Raises NotFoundError for the call of anybody else.
    """
    call = await own_job(work, actor, Family.PROVIDER_CALL, call_id)
    if call.subject_id != connection_id or call.input["kind"] != kind.value:
        raise NotFoundError(Family.PROVIDER_CALL.value.replace("-", " "))
    question: JsonObject = call.input["question"]
    return question


async def forget_call(work: UnitOfWork, actor: Actor, call_id: Id) -> None:
    """Remove what a call found."""
    await work.execute(
        delete(JOB.id.table).where(
            JOB.workspace_id == actor.workspace_id,
            JOB.id == call_id,
            JOB.status.not_in([status.value for status in OPEN_JOB]),
        )
    )


async def purge_calls(work: UnitOfWork) -> int:
    """Remove a batch of calls that ended an hour ago. Gives how many rows were removed."""
    return await purge_jobs(work, work.now - OUTCOME_LIFETIME, family=Family.PROVIDER_CALL)


def reference(resource: ProviderResource) -> JsonObject:
    """A resource as a client named it, for a worker that asks the provider what it is."""
    return resource.to_json()


async def _accept(
    work: UnitOfWork,
    actor: Actor,
    call_id: Id,
    kind: CallKind,
    connection: ConnectionDetail,
    question: JsonObject,
) -> None:
    await accept_job(
        work,
        actor,
        Family.PROVIDER_CALL,
        call_id,
        connection.id,
        summary=f"{kind.value.title()} · {connection.provider.value}",
        input={"kind": kind.value, "connectionId": str(connection.id), "question": question},
    )


async def _outcome(work: UnitOfWork, actor: Actor, call_id: Id, *, last: bool) -> JsonObject | None:
    found = await find_job(work, actor.workspace_id, Family.PROVIDER_CALL, call_id)
    if found.status == JobStatus.SUCCEEDED:
        return found.result
    if found.status not in OPEN_JOB:
        raise refusal_of(found) or UpstreamError("The provider could not be asked. Try again.")
    if last:
        raise InProgressError("The provider takes long to answer. Try again.")
    return None


def _listing(body: BrowseConnection) -> JsonObject:
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
    cursor = wrapped(keys, actor, _listing(body), found["cursor"])
    return BrowsedResources(resources=found["resources"], cursor=cursor)
