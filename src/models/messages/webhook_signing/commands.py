"""Reading the signing secret of a workspace, which the first call creates."""

import os

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.webhook_signing.rules import SECRET_BYTES, secret_place, secret_text
from models.messages.webhook_signing.shapes import SigningSecret
from models.messages.webhook_signing.tables import webhook_signing_secret
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


async def signing_secret(work: UnitOfWork, keys: KeyRing, workspace_id: Id) -> bytes:
    """The workspace's secret, the same for whoever asks first at the same time."""
    place = secret_place(workspace_id)
    this = webhook_signing_secret.c.workspace_id == workspace_id
    statement = select(webhook_signing_secret.c.sealed).where(this)
    sealed = await work.scalar(statement)
    if sealed is None:
        made = {
            "workspace_id": workspace_id,
            "sealed": keys.seal(os.urandom(SECRET_BYTES), place),
            "created_at": work.now,
        }
        await work.execute(upsert(webhook_signing_secret).values(made).on_conflict_do_nothing())
        sealed = await work.scalar(statement)
    return keys.unseal(sealed, place)


async def show_signing_secret(work: UnitOfWork, keys: KeyRing, actor: Actor) -> SigningSecret:
    """The secret in the words of receivers."""
    return SigningSecret(secret=secret_text(await signing_secret(work, keys, actor.workspace_id)))
