"""The secret of an automation's webhook, with which calls are verified."""

import base64
import secrets
from datetime import timedelta

from sqlalchemy import update

from models.automation.automations.rules.webhook_secrets import webhook_secret_place
from models.automation.automations.tables import automation
from models.automation.automations.versions import lock
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

OVERLAP = timedelta(hours=24)
"""The time for which the previous secret is valid after a rotation (decisions C7)."""


def sealed_webhook_secret(keys: KeyRing, automation_id: Id) -> bytes:
    """A new secret, sealed: `whsec_` and 32 random bytes in base64 (Standard Webhooks)."""
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    return keys.seal(secret.encode(), webhook_secret_place(automation_id))


async def rotate_webhook_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id
) -> None:
    """Give the webhook a new secret. The previous one is valid for `OVERLAP`, older ones are not.

    Raises NotFoundError.
    """
    owner = await lock(work, actor, automation_id)
    await work.execute(
        update(automation)
        .where(automation.c.workspace_id == actor.workspace_id, automation.c.id == automation_id)
        .values(
            sealed_previous_webhook_secret=automation.c.sealed_webhook_secret,
            previous_webhook_secret_until=work.now + OVERLAP,
            sealed_webhook_secret=sealed_webhook_secret(keys, automation_id),
            updated_at=owner.changed_at(work.now),
        )
    )
