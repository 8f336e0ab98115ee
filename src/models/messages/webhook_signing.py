"""The secret a workspace signs its outgoing webhooks with, and the signatures."""

import base64
import hmac
import os
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.access.rules import Actor
from models.core.base import Id, Shape
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, table_of

PREFIX = "whsec_"
SECRET_BYTES = 32


def secret_place(workspace_id: Id) -> str:
    """The place that the sealed secret of a workspace is bound to."""
    return f"webhook_signing_secret|{workspace_id}|sealed"


def secret_text(secret: bytes) -> str:
    """The secret as receivers' libraries take it."""
    return PREFIX + base64.b64encode(secret).decode()


def signed_headers(
    secrets: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """The three headers of an attempt at `timestamp` (seconds since the epoch).

    It has a signature by each secret: two of them while a secret is changed.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = [hmac.digest(secret, signed, "sha256") for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(digest).decode()}" for digest in digests
        ),
    }


class WebhookSigningSecret(SQLModel, table=True):
    """A workspace's secret, sealed; made when it is first needed."""

    __tablename__ = "webhook_signing_secret"
    __table_args__ = (sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    sealed: bytes = Field(
        sa_type=sa.LargeBinary, sa_column_kwargs=sealed(lambda row: secret_place(row.workspace_id))
    )
    created_at: datetime = Field(sa_type=Timestamp)


webhook_signing_secret = table_of(WebhookSigningSecret)


class SigningSecret(Shape):
    """`whsec_` and the base64 of 32 bytes, the format of Standard Webhooks."""

    secret: str


async def signing_secret(work: UnitOfWork, keys: KeyRing, workspace_id: Id) -> bytes:
    """The workspace's secret, the same for concurrent first callers."""
    place = secret_place(workspace_id)
    this = webhook_signing_secret.c.workspace_id == workspace_id
    statement = sa.select(webhook_signing_secret.c.sealed).where(this)
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
