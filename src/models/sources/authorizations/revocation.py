"""Deleting a connection: its tokens end at the provider too."""

import base64
import json

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.jobs.commands import accept_job
from models.messages.jobs.rules import SEALED_INPUT, sealed_input_place
from models.sources.authorizations.rules import ACCESS_TOKEN, OAUTH_PROVIDERS
from models.sources.connections.commands import delete_connection
from models.sources.connections.queries import get_connection, open_connection
from models.sources.connections.shapes import DeletedConnection
from models.sources.outbound_limits.pauses import call_back
from runtime.crypto import KeyRing, UnreadableError
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.ids import new_id


async def disconnect(
    work: UnitOfWork, actor: Actor, keys: KeyRing, connection_id: Id
) -> DeletedConnection:
    """Delete a connection with its credentials, and have the provider end its tokens.

    Raises NotFoundError.
    """
    found = await get_connection(work, actor, connection_id)
    if found.provider in OAUTH_PROVIDERS:
        await _accept_revocation(work, actor, keys, connection_id)
    await call_back(work, actor.workspace_id, connection_id)
    return await delete_connection(work, actor, connection_id)


async def _accept_revocation(
    work: UnitOfWork, actor: Actor, keys: KeyRing, connection_id: Id
) -> None:
    try:
        connection = await open_connection(work, keys, actor.workspace_id, connection_id)
    except UnreadableError:
        return
    if connection is None or ACCESS_TOKEN not in connection.credentials:
        return
    job_id = new_id()
    sealed = keys.seal(json.dumps(connection.credentials).encode(), sealed_input_place(job_id))
    await accept_job(
        work,
        actor,
        Family.OAUTH_REVOCATION,
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
