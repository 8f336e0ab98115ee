"""Jobs of authorizations: a code becomes a connection; the tokens of a deleted one end."""

from typing_extensions import override

from activities.authorizations.token_endpoint import (
    NotAcceptedError,
    TokenEndpoints,
    UnansweredError,
)
from activities.jobs.transactions import Chunks, ask_outside
from models.core.base import JsonObject
from models.messages.jobs.commands import forget_input
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from models.sources.authorizations.commands import (
    complete_authorization,
    find_authorization,
    forget_authorization,
    open_secrets,
)
from models.sources.authorizations.revocation import open_revocation
from models.sources.connections.providers import ProviderName
from runtime.crypto import UnreadableError
from runtime.database import Transaction, UnitOfWork
from runtime.errors import UpstreamError, ValidationError
from runtime.outbound.errors import OutboundError


class Exchanges(Chunks):
    """One chunk. A code is good for one exchange: whose answer is lost starts again."""

    def __init__(self, endpoints: TokenEndpoints) -> None:
        self._endpoints = endpoints

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        if job.progress:
            return None
        authorization = await find_authorization(work, job.workspace_id, job.subject_id)
        if authorization is None:
            raise ValidationError("The authorization was withdrawn. Start again.")
        endpoint = self._endpoints.of(ProviderName(authorization.provider))
        try:
            secrets = open_secrets(self._endpoints.keys, authorization)
            exchange = endpoint.exchange(authorization.redirect_uri, secrets)
            credentials = await ask_outside(work, job, exchange)
        except (NotAcceptedError, UnreadableError):
            raise ValidationError.at(
                "code", "The provider does not accept it: it was used, or is too old. Start again."
            ) from None
        except UnansweredError:
            raise UpstreamError("The provider gave no token. Start again.") from None
        actor = await job_actor(work, job)
        keys = self._endpoints.keys
        connection_id = await complete_authorization(work, actor, keys, authorization, credentials)
        return {"connectionId": str(connection_id)}

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        await forget_authorization(work, job.workspace_id, job.subject_id)
        return True


class UnrevokedError(Exception):
    """The provider does not answer: the chunk is repeated for a while."""

    retryable = True


class Revocations(Chunks):
    """One chunk, repeated until the provider has answered; the tokens are forgotten either way."""

    def __init__(self, endpoints: TokenEndpoints) -> None:
        self._endpoints = endpoints

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        try:
            credentials = open_revocation(self._endpoints.keys, job.id, job.input)
        except UnreadableError:
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
