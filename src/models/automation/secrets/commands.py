"""Storing and deleting secrets."""

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.secrets.rules import MAX_SECRETS, is_secret_name, secret_place
from models.automation.secrets.shapes import DeletedSecret, PutSecret, SecretBody
from models.automation.secrets.tables import workspace_secret
from models.core.access.rules import Actor
from runtime.advisory_locks import lock_name
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError


async def put_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, name: str, body: PutSecret
) -> SecretBody:
    """Store a secret, or replace its value. Open runs send the new value.

    Raises ValidationError for a name that is none, ConflictError when there are too many.
    """
    if not is_secret_name(name):
        raise ValidationError.at(
            "secretName", "A name has letters, digits and _, begins with no digit, and ends at 63."
        )
    # Two requests at the same time must not both take the last place.
    place = f"secrets/{actor.workspace_id}"
    await lock_name(work, place)
    sealed = keys.seal(body.value.encode(), secret_place(actor.workspace_id, name))
    statement = upsert(workspace_secret).values(
        workspace_id=actor.workspace_id,
        name=name,
        sealed_value=sealed,
        created_at=work.now,
        updated_at=work.now,
    )
    row = await work.first(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "name"],
            set_={"sealed_value": sealed, "updated_at": work.now},
        ).returning(
            workspace_secret.c.name, workspace_secret.c.created_at, workspace_secret.c.updated_at
        )
    )
    count = select(func.count()).where(workspace_secret.c.workspace_id == actor.workspace_id)
    if await work.scalar(count) > MAX_SECRETS:
        raise ConflictError(f"The workspace has {MAX_SECRETS} secrets; delete some first.")
    return SecretBody.model_validate(row)


async def delete_secret(work: UnitOfWork, actor: Actor, name: str) -> DeletedSecret:
    """Delete a secret. Nodes that name it fail from then on. Raises NotFoundError."""
    if not is_secret_name(name):
        raise NotFoundError("secret")
    deleted = await work.execute(
        delete(workspace_secret).where(
            workspace_secret.c.workspace_id == actor.workspace_id, workspace_secret.c.name == name
        )
    )
    if deleted.rowcount == 0:
        raise NotFoundError("secret")
    return DeletedSecret(name=name)
