"""Authorizing connections: the way out, the way back, the exchange of the code, the revocation.

The table of pending authorizations holds their secrets sealed only."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from pydantic import Field, model_validator
from sqlmodel import Field as TableField
from sqlmodel import SQLModel

from models.core.access.rules import Actor
from models.core.base import Deleted, Id, Input, InputId, JsonObject, Label, Moment, Shape, example
from models.core.purging import Retention
from models.messages.jobs.rules import OPEN_JOB, SEALED_INPUT, JobStatus, sealed_input_place
from models.messages.jobs.store import accept_job, find_job
from models.sources.authorizations import rules
from models.sources.connections import store as connections
from models.sources.connections.providers import ConnectionDetail, CreateConnection, ProviderName
from models.sources.outbound_limits.commands import call_back
from runtime.configuration.sections import ProviderSettings
from runtime.crypto import KeyRing, UnreadableError, sealed
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UnsupportedError, UpstreamError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


def secrets_place(authorization_id: Id) -> str:
    """The place that the sealed secrets of an authorization are bound to."""
    return f"oauth_authorization|{authorization_id}|sealed"


class OAuthAuthorization(SQLModel, table=True):
    """One user on the way to a provider and back.

    `connection_id` is that of the connection which is authorized anew. `sealed` holds the PKCE
    verifier, and after the user is back the code. `returned_at` is set once: a state is used once.
    """

    __tablename__ = "oauth_authorization"
    __table_args__ = (
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.Index("ix_oauth_authorization_expires_at", "expires_at"),
    )

    id: Id = TableField(primary_key=True)
    workspace_id: Id
    user_id: Id
    provider: str
    connection_id: Id | None = None
    label: str
    shared: bool
    state_digest: bytes = TableField(sa_type=sa.LargeBinary, unique=True)
    sealed: bytes = TableField(
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: secrets_place(row.id), short_lived=True),
    )
    redirect_uri: str
    created_at: datetime = TableField(sa_type=Timestamp)
    expires_at: datetime = TableField(sa_type=Timestamp)
    returned_at: datetime | None = TableField(default=None, sa_type=Timestamp)


oauth_authorization = table_of(OAuthAuthorization)


_Secret = Annotated[str, Field(min_length=1, max_length=4_096)]


class StartAuthorization(Input):
    """Body of start authorization: the connection to make, or the one to authorize again.

    `label` and `shared` are as in create connection.
    """

    model_config = example({"provider": "github", "label": "Our repositories"})

    provider: Annotated[ProviderName | None, Field(strict=False)] = None
    label: Label | None = None
    shared: bool = False
    connection_id: InputId | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "StartAuthorization":
        if self.connection_id is None:
            if self.provider is None or self.label is None:
                raise ValueError("needs either provider and label, or connectionId")
        elif self.model_fields_set != {"connection_id"}:
            raise ValueError("connectionId can't be combined with other keys")
        return self


class StartedAuthorization(Shape):
    """Send the user to `authorizationUrl` before `expiresAt`; they come back with `state`."""

    authorization_url: str
    state: str
    redirect_uri: str
    expires_at: Moment


class FinishAuthorization(Input):
    """Body of finish authorization: what the provider sent the user back with.

    `error` replaces `code` where the user or the provider refused (RFC 6749, 4.1.2.1).
    """

    model_config = example({"state": "af0ifjsldkj", "code": "SplxlOBeZQQYbYS6WxSbIA"})

    state: _Secret
    code: _Secret | None = None
    error: _Secret | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "FinishAuthorization":
        if (self.code is None) is (self.error is None):
            raise ValueError("needs either code or error, as returned by the provider")
        return self


MAX_OPEN = 20
"""Authorizations that one user may have on the way in a workspace; the oldest gives way."""


class Registered(NamedTuple):
    """The platform as the operator registered it: by provider, and the URL users reach it at."""

    providers: Mapping[str, ProviderSettings]
    public_url: str | None


class _Requested(NamedTuple):
    provider: ProviderName
    label: str
    shared: bool


async def start_authorization(
    work: UnitOfWork, actor: Actor, keys: KeyRing, platform: Registered, body: StartAuthorization
) -> StartedAuthorization:
    """Remember that the actor is on the way to a provider, and say where that is.

    Raises NotFoundError for a connection that the actor does not see, UnsupportedError when no one
    can sign in there.
    """
    request = await _requested(work, actor, body)
    client = rules.oauth_client(request.provider, platform.providers)
    if client is None or platform.public_url is None:
        raise UnsupportedError(
            f"Sign-in with {request.provider} is not set up. An operator must register the platform"
            " there and set WORKSPACE_PROVIDERS and WORKSPACE_PUBLIC_URL."
        )
    attempt, authorization_id = rules.new_attempt(actor.workspace_id), new_id()
    redirect_uri, expires_at = platform.public_url + rules.CALLBACK, work.now + rules.LIFETIME
    await _make_room(work, actor)
    await work.execute(
        sa.insert(oauth_authorization).values(
            id=authorization_id,
            workspace_id=actor.workspace_id,
            user_id=actor.user_id,
            connection_id=body.connection_id,
            **request._asdict(),
            state_digest=keys.digest(attempt.state.encode()),
            sealed=seal_secrets(keys, authorization_id, {"verifier": attempt.verifier}),
            redirect_uri=redirect_uri,
            created_at=work.now,
            expires_at=expires_at,
        )
    )
    return StartedAuthorization(
        authorization_url=rules.authorization_url(client, redirect_uri, attempt),
        state=attempt.state,
        redirect_uri=redirect_uri,
        expires_at=expires_at,
    )


async def _requested(work: UnitOfWork, actor: Actor, body: StartAuthorization) -> _Requested:
    if body.connection_id is not None:
        found = await connections.get_connection(work, actor, body.connection_id)
        return _Requested(found.provider, found.label, found.shared)
    assert body.provider is not None, "the shape asks for it"
    assert body.label is not None, "the shape asks for it"
    return _Requested(body.provider, body.label, body.shared)


async def _make_room(work: UnitOfWork, actor: Actor) -> None:
    mine = (
        oauth_authorization.c.workspace_id == actor.workspace_id,
        oauth_authorization.c.user_id == actor.user_id,
        oauth_authorization.c.returned_at.is_(None),
    )
    newest = sa.select(oauth_authorization.c.id).where(*mine)
    kept = newest.order_by(oauth_authorization.c.id.desc()).limit(MAX_OPEN - 1)
    await work.execute(
        sa.delete(oauth_authorization).where(*mine).where(oauth_authorization.c.id.not_in(kept))
    )


async def accept_return(
    work: UnitOfWork, actor: Actor, keys: KeyRing, job_id: Id, body: FinishAuthorization
) -> None:
    """Accept the exchange of the code that the actor was sent back with. A state is used once.

    Raises NotFoundError for the state of anyone else, of another workspace, one that was used or
    has expired, ValidationError when the provider refused.
    """
    digests = keys.digests(body.state.encode())
    row = await work.one(
        sa.update(oauth_authorization)
        .where(
            oauth_authorization.c.workspace_id == actor.workspace_id,
            oauth_authorization.c.user_id == actor.user_id,
            oauth_authorization.c.state_digest.in_(digests),
            oauth_authorization.c.returned_at.is_(None),
            oauth_authorization.c.expires_at > work.now,
        )
        .values(returned_at=work.now)
        .returning(oauth_authorization),
        "authorization",
        of=OAuthAuthorization,
    )
    if body.code is None:
        raise ValidationError.at("error", "Access denied. Start again to retry.")
    secrets = {**open_secrets(keys, row), "code": body.code}
    await work.execute(
        sa.update(oauth_authorization)
        .where(oauth_authorization.c.id == row.id)
        .values(sealed=seal_secrets(keys, row.id, secrets))
    )
    await accept_job(
        work,
        actor,
        WorkflowKind.OAUTH_EXCHANGE,
        job_id,
        row.id,
        summary=f"Authorize · {row.provider}",
    )


async def find_authorization(
    work: UnitOfWork, workspace_id: Id, authorization_id: Id
) -> OAuthAuthorization | None:
    """An authorization whose user is back."""
    statement = sa.select(oauth_authorization).where(
        oauth_authorization.c.workspace_id == workspace_id,
        oauth_authorization.c.id == authorization_id,
    )
    return await work.first(statement, of=OAuthAuthorization)


async def complete_authorization(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    authorization: OAuthAuthorization,
    credentials: Mapping[str, str],
) -> Id:
    """Make the connection, or authorize it anew, and forget the authorization.

    Raises NotFoundError for a connection that is gone, ConflictError when there are too many.
    """
    await forget_authorization(work, authorization.workspace_id, authorization.id)
    if authorization.connection_id is None:
        body = CreateConnection.model_construct(
            provider=ProviderName(authorization.provider),
            label=authorization.label,
            config={},
            credentials=dict(credentials),
            shared=authorization.shared,
        )
        return (await connections.add_connection(work, actor, keys, body, body.config)).id
    await connections.get_connection(work, actor, authorization.connection_id)
    await connections.store_credentials(
        work, keys, authorization.workspace_id, authorization.connection_id, credentials
    )
    return authorization.connection_id


async def forget_authorization(work: UnitOfWork, workspace_id: Id, authorization_id: Id) -> None:
    """Remove an authorization with its secrets."""
    await work.execute(
        sa.delete(oauth_authorization).where(
            oauth_authorization.c.workspace_id == workspace_id,
            oauth_authorization.c.id == authorization_id,
        )
    )


def seal_secrets(keys: KeyRing, authorization_id: Id, secrets: Mapping[str, str]) -> bytes:
    """The verifier, and the code, as they are stored."""
    return keys.seal(json.dumps(secrets).encode(), secrets_place(authorization_id))


def open_secrets(keys: KeyRing, authorization: OAuthAuthorization) -> dict[str, str]:
    """The verifier, and the code. Raises UnreadableError."""
    opened: dict[str, str] = json.loads(
        keys.unseal(authorization.sealed, secrets_place(authorization.id))
    )
    return opened


async def exchange_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> ConnectionDetail | None:
    """The connection that a code became; None while the provider is asked.

    Raises ValidationError for a code that is not accepted, UpstreamError when the provider does
    not answer, InProgressError when this is the last time to ask.
    """
    found = await find_job(work, actor.workspace_id, WorkflowKind.OAUTH_EXCHANGE, job_id)
    if found.status == JobStatus.SUCCEEDED and found.result is not None:
        return await connections.get_connection(work, actor, Id(found.result["connectionId"]))
    if found.status not in OPEN_JOB:
        message = found.error or "The provider returned no token. Start again."
        refused = found.error_code == ValidationError.code
        raise ValidationError(message) if refused else UpstreamError(message)
    if last:
        raise InProgressError("The provider is slow to respond. The connection may still appear.")
    return None


async def disconnect(work: UnitOfWork, actor: Actor, keys: KeyRing, connection_id: Id) -> Deleted:
    """Delete a connection with its credentials, and have the provider end its tokens.

    Raises NotFoundError.
    """
    found = await connections.get_connection(work, actor, connection_id)
    if found.provider in rules.OAUTH_PROVIDERS:
        await _accept_revocation(work, actor, keys, connection_id)
    await call_back(work, actor.workspace_id, connection_id)
    return await connections.delete_connection(work, actor, connection_id)


async def _accept_revocation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, connection_id: Id
) -> None:
    try:
        connection = await connections.open_connection(
            work, keys, actor.workspace_id, connection_id
        )
    except UnreadableError:
        return
    if connection is None or rules.ACCESS_TOKEN not in connection.credentials:
        return
    job_id = new_id()
    sealed = keys.seal(json.dumps(connection.credentials).encode(), sealed_input_place(job_id))
    await accept_job(
        work,
        actor,
        WorkflowKind.OAUTH_REVOCATION,
        job_id,
        connection_id,
        summary=f"Revoke · {connection.provider}",
        input={
            "provider": connection.provider.value,
            SEALED_INPUT: base64.b64encode(sealed).decode(),
        },
    )


def open_revocation(keys: KeyRing, job_id: Id, job_input: JsonObject) -> dict[str, str]:
    """The credentials that a job ends. Raises UnreadableError."""
    sealed = base64.b64decode(job_input[SEALED_INPUT])
    opened: dict[str, str] = json.loads(keys.unseal(sealed, sealed_input_place(job_id)))
    return opened


purge_authorizations = Retention(
    oauth_authorization,
    oauth_authorization.c.expires_at,
    conditions=(oauth_authorization.c.returned_at.is_(None),),
)
"""Authorizations that have expired and were not exchanged."""
