"""Jobs that ask a provider while somebody waits."""

from pydantic_core import to_json
from typing_extensions import override

from activities.jobs.provider_attempts import ask_provider
from activities.jobs.transactions import Chunks
from activities.providers.adapter import (
    MAX_READ_BYTES,
    Listing,
    ProblemKind,
    ProviderProblem,
    ReadContent,
    ResourcePage,
)
from activities.providers.calls import OpenConnection, Providers, refusal_for
from models.core.base import Id, JsonObject
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from models.sources.external_resources.rules.resources import ProviderResource, ReadFormat
from models.sources.provider_calls.mirror import mirror, mirrored, question_digest
from models.sources.provider_calls.rules import CallKind
from runtime.database import Transaction, UnitOfWork
from runtime.timestamps import wire_timestamp


class ProviderCalls(Chunks):
    """One question to a provider, in one chunk; the answer is kept in the mirror too."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    @override
    async def advance(self, work: Transaction, job: JobRow) -> None:
        try:
            job.progress.update(await self._answer(work, job))
        except ProviderProblem as problem:
            raise refusal_for(problem) from problem

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    async def _answer(self, work: Transaction, job: JobRow) -> JsonObject:
        actor = await job_actor(work, job)
        connection = await self._providers.open(work, actor, Id(job.input["connectionId"]))
        match CallKind(job.input["kind"]):
            case CallKind.BROWSE:
                return await _browse(work, job, connection, actor.user_id)
            case CallKind.READ:
                return await _read(work, job, connection, actor.user_id)
            case CallKind.TEST:
                return await _test(work, job, connection)


async def _browse(
    work: Transaction, job: JobRow, connection: OpenConnection, user_id: Id
) -> JsonObject:
    question: JsonObject = job.input["question"]
    listing = Listing(
        parent_external_id=question["parentExternalId"],
        external_type=question["externalType"],
        query=question["query"],
        limit=question["limit"],
        cursor=question["cursor"],
    )
    adapter = connection.adapter
    answer = await ask_provider(
        work, job, adapter.browse(connection.access, listing), adapter.listing_seconds
    )
    for page in answer.pages():
        digest = question_digest(connection.detail, CallKind.BROWSE, question)
        await mirror(work, connection.detail, user_id, digest, _answer_of(page, listing.limit))
        question = {**question, "cursor": page.cursor}
    return _answer_of(answer, listing.limit)


def _answer_of(page: ResourcePage, limit: int) -> JsonObject:
    resources = [one.to_json() for one in page.resources[:limit]]
    return {"resources": resources, "cursor": page.cursor}


async def _read(
    work: Transaction, job: JobRow, connection: OpenConnection, user_id: Id
) -> JsonObject:
    """The content; the provider says first, each time, that the caller may still see it."""
    named = ProviderResource.model_validate(job.input["question"]["resource"])
    resource = await ask_provider(work, job, connection.adapter.describe(connection.access, named))
    reference = {"type": resource.external_type, "id": resource.external_id}
    digest = question_digest(connection.detail, CallKind.READ, reference)
    if resource.revision is not None:
        known = await mirrored(work, connection.detail, user_id, digest, resource.revision)
        if known is not None:
            return known
    answer = _content(await _content_of(work, job, connection, resource), resource)
    await mirror(work, connection.detail, user_id, digest, answer, resource.revision)
    return answer


async def _content_of(
    work: Transaction, job: JobRow, connection: OpenConnection, resource: ProviderResource
) -> ReadContent:
    link = ReadContent(ReadFormat.LINK, fallback_url=resource.canonical_url)
    try:
        found = await ask_provider(work, job, connection.adapter.read(connection.access, resource))
    except ProviderProblem as problem:
        if problem.kind in {ProblemKind.TOO_LARGE, ProblemKind.UNSUPPORTED}:
            return link
        raise
    return link if len(to_json(found.content)) > MAX_READ_BYTES else found


def _content(found: ReadContent, resource: ProviderResource) -> JsonObject:
    return {
        "format": found.format.value,
        "content": found.content,
        "revision": found.revision or resource.revision,
        "readOnly": found.read_only,
        "fallbackUrl": found.fallback_url or resource.canonical_url,
    }


async def _test(work: Transaction, job: JobRow, connection: OpenConnection) -> JsonObject:
    tested: JsonObject = {"checkedAt": wire_timestamp(work.now)}
    try:
        await ask_provider(work, job, connection.adapter.check(connection.access))
    except ProviderProblem as problem:
        return {**tested, "ok": False, "message": problem.message}
    return {**tested, "ok": True}
