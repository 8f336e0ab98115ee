"""Jobs that ask a provider: requests that a caller waits for, forms, codes and tokens."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import NoReturn, TypeVar

from pydantic_core import to_json
from temporalio import activity
from temporalio.exceptions import ApplicationError
from typing_extensions import override

from activities.connections import NotAcceptedError, TokenEndpoints, UnansweredError
from activities.jobs.transactions import Chunks, ask_outside
from activities.providers import adapter as provider_adapter
from activities.providers import adapters
from models.core.base import Id, JsonObject
from models.messages.jobs.store import JobRow, forget_input, job_actor
from models.sources.authorizations import store as authorization_commands
from models.sources.connections.providers import ProviderName
from models.sources.external_resources.rules import resources as external_resources
from models.sources.external_resources.rules.forms import NoFormError
from models.sources.provider_calls import CallKind, mirror_answer, mirrored_answer, question_digest
from models.sources.resource_imports.commands import create_from
from runtime.clock import wire_timestamp
from runtime.crypto import UnreadableError
from runtime.database import Transaction, UnitOfWork
from runtime.errors import UnsupportedError, UpstreamError, ValidationError
from runtime.outbound.errors import OutboundError

ATTEMPTS = 6
"""The times a provider is asked that is away, or asks to be left alone."""
_LONGEST_PAUSE = 120.0

T = TypeVar("T")


async def ask_provider(
    work: Transaction, job: JobRow, call: Awaitable[T], seconds: float = adapters.CALL_SECONDS
) -> T:
    """The answer a provider gives in time, as `ask_outside` has it. Raises ProviderProblem."""
    return await ask_outside(work, job, adapters.in_time(call, seconds))


def try_later_or_refuse(problem: provider_adapter.ProviderProblem) -> NoReturn:
    """Raise so that the chunk is tried again, or the refusal when that cannot help any more."""
    attempt = activity.info().attempt if activity.in_activity() else ATTEMPTS
    if not problem.retryable or attempt >= ATTEMPTS:
        raise adapters.refusal_for(problem) from problem
    pause = problem.retry_after or min(2.0**attempt, _LONGEST_PAUSE)
    raise ApplicationError(
        f"Retrying the provider: {problem.kind.value}",
        type="ProviderProblem",
        next_retry_delay=timedelta(seconds=min(pause, _LONGEST_PAUSE)),
    ) from None


class ProviderCalls(Chunks):
    """One question to a provider, in one chunk; the answer is kept in the mirror too."""

    def __init__(self, providers: adapters.Providers) -> None:
        self._providers = providers

    @override
    async def advance(self, work: Transaction, job: JobRow) -> None:
        try:
            job.progress.update(await self._answer(work, job))
        except provider_adapter.ProviderProblem as problem:
            raise adapters.refusal_for(problem) from problem

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
    work: Transaction, job: JobRow, connection: adapters.OpenConnection, user_id: Id
) -> JsonObject:
    question: JsonObject = job.input["question"]
    listing = provider_adapter.Listing(
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
        await mirror_answer(
            work, connection.detail, user_id, digest, _answer_of(page, listing.limit)
        )
        question = {**question, "cursor": page.cursor}
    return _answer_of(answer, listing.limit)


def _answer_of(page: provider_adapter.ResourcePage, limit: int) -> JsonObject:
    resources = [one.to_json() for one in page.resources[:limit]]
    return {"resources": resources, "cursor": page.cursor}


async def _read(
    work: Transaction, job: JobRow, connection: adapters.OpenConnection, user_id: Id
) -> JsonObject:
    """The content; the provider says first, each time, that the caller may still see it."""
    named = external_resources.ProviderResource.model_validate(job.input["question"]["resource"])
    # Asked also for mirrored content: the provider may have taken the access away.
    resource = await ask_provider(work, job, connection.adapter.describe(connection.access, named))
    reference = {"type": resource.external_type, "id": resource.external_id}
    digest = question_digest(connection.detail, CallKind.READ, reference)
    if resource.revision is not None:
        known = await mirrored_answer(work, connection.detail, user_id, digest, resource.revision)
        if known is not None:
            return known
    answer = _content(await _content_of(work, job, connection, resource), resource)
    await mirror_answer(work, connection.detail, user_id, digest, answer, resource.revision)
    return answer


async def _content_of(
    work: Transaction,
    job: JobRow,
    connection: adapters.OpenConnection,
    resource: external_resources.ProviderResource,
) -> provider_adapter.ReadContent:
    link = provider_adapter.ReadContent(
        external_resources.ReadFormat.LINK, fallback_url=resource.canonical_url
    )
    try:
        content = await ask_provider(
            work, job, connection.adapter.read(connection.access, resource)
        )
    except provider_adapter.ProviderProblem as problem:
        if problem.kind in {
            provider_adapter.ProblemKind.TOO_LARGE,
            provider_adapter.ProblemKind.UNSUPPORTED,
        }:
            return link
        raise
    return link if len(to_json(content.content)) > provider_adapter.MAX_READ_BYTES else content


def _content(
    found: provider_adapter.ReadContent, resource: external_resources.ProviderResource
) -> JsonObject:
    return {
        "format": found.format.value,
        "content": found.content,
        "revision": found.revision or resource.revision,
        "readOnly": found.read_only,
        "fallbackUrl": found.fallback_url or resource.canonical_url,
    }


async def _test(work: Transaction, job: JobRow, connection: adapters.OpenConnection) -> JsonObject:
    tested: JsonObject = {"checkedAt": wire_timestamp(work.now)}
    try:
        await ask_provider(work, job, connection.adapter.check(connection.access))
    except provider_adapter.ProviderProblem as problem:
        return {**tested, "ok": False, "message": problem.message}
    return {**tested, "ok": True}


NO_FORM = "The resource is not an importable form."


class FormImports(Chunks):
    """Reads what a form asks, and makes the database and the form in the same transaction."""

    def __init__(self, providers: adapters.Providers) -> None:
        self._providers = providers

    @override
    async def advance(self, work: Transaction, job: JobRow) -> None:
        actor = await job_actor(work, job)
        connection = await self._providers.open(work, actor, Id(job.input["connectionId"]))
        named = external_resources.ProviderResource.model_validate(job.input["resource"])
        try:
            resource = await ask_provider(
                work, job, connection.adapter.describe(connection.access, named)
            )
            if external_resources.Capability.IMPORT_FORM not in resource.capabilities:
                raise UnsupportedError(NO_FORM)
            form = await ask_provider(
                work, job, connection.adapter.form(connection.access, resource)
            )
        except NoFormError:
            raise UnsupportedError(NO_FORM) from None
        except provider_adapter.ProviderProblem as problem:
            if problem.kind is provider_adapter.ProblemKind.UNSUPPORTED:
                raise UnsupportedError(NO_FORM) from None
            raise adapters.refusal_for(problem) from problem
        title = external_resources.shown_name(form.title or resource.name)
        job.progress.update(await create_from(work, actor, title, form))

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress


class CodeExchanges(Chunks):
    """One chunk. A code is good for one exchange: whose answer is lost starts again."""

    def __init__(self, endpoints: TokenEndpoints) -> None:
        self._endpoints = endpoints

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        if job.progress:
            return None
        authorization = await authorization_commands.find_authorization(
            work, job.workspace_id, job.subject_id
        )
        if authorization is None:
            raise ValidationError("The authorization was cancelled. Start again.")
        endpoint = self._endpoints.of(ProviderName(authorization.provider))
        try:
            secrets = authorization_commands.open_secrets(self._endpoints.keys, authorization)
            exchange = endpoint.exchange(authorization.redirect_uri, secrets)
            credentials = await ask_outside(work, job, exchange)
        except (NotAcceptedError, UnreadableError):
            raise ValidationError.at(
                "code",
                "The provider rejected the authorization: it was used or has expired. Start again.",
            ) from None
        except UnansweredError:
            raise UpstreamError("The provider returned no token. Start again.") from None
        actor = await job_actor(work, job)
        keys = self._endpoints.keys
        connection_id = await authorization_commands.complete_authorization(
            work, actor, keys, authorization, credentials
        )
        return {"connectionId": str(connection_id)}

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await authorization_commands.forget_authorization(work, job.workspace_id, job.subject_id)
        return True


class UnrevokedError(Exception):
    """The provider does not answer: the chunk is repeated for a while."""

    retryable = True


class TokenRevocations(Chunks):
    """One chunk, repeated until the provider has answered; the tokens are forgotten either way."""

    def __init__(self, endpoints: TokenEndpoints) -> None:
        self._endpoints = endpoints

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        try:
            credentials = authorization_commands.open_revocation(
                self._endpoints.keys, job.id, job.input
            )
        except UnreadableError:
            # Without the key nothing can be revoked, and the sealed tokens are forgotten all the
            # same.
            credentials = {}
        endpoint = self._endpoints.of(ProviderName(job.input["provider"]))
        if credentials:
            try:
                await ask_outside(work, job, endpoint.revoke(credentials))
            except (UnansweredError, OutboundError) as error:
                if isinstance(error, OutboundError) and not error.retryable:
                    raise
                raise UnrevokedError from None
        await forget_input(work, job.id)
        return None

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await forget_input(work, job.id)
        return True
