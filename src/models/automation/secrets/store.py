"""Secrets of a workspace: stored sealed and deleted, listed by name, opened for nodes."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.automation.secrets.rules import SecretValue, is_secret_name, secret_place
from models.core.access.rules import Actor
from models.core.base import Id, Input, Moment, Shape
from models.core.pagination import Listed, PageRequest
from models.core.repository import Bound
from runtime.crypto import KeyRing, sealed
from runtime.database import UnitOfWork, Work
from runtime.errors import NotFoundError, ValidationError
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement


class WorkspaceSecret(SQLModel, table=True):
    """A named value that outside nodes send. Only its name is shown."""

    __tablename__ = "workspace_secret"
    __table_args__ = (sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),)

    workspace_id: Id = Field(primary_key=True)
    name: str = Field(primary_key=True)
    sealed_value: bytes = Field(
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: secret_place(row.workspace_id, row.name)),
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


workspace_secret = table_of(WorkspaceSecret)

SECRETS = Bound(workspace_secret, 500, "secrets")


class SecretBody(Shape):
    """A secret as everyone sees it."""

    name: str
    created_at: Moment
    updated_at: Moment


class SecretList(Listed):
    secrets: list[SecretBody]


class PutSecret(Input):
    """Body of put secret."""

    value: SecretValue


class DeletedSecret(Shape):
    name: str


async def list_secrets(work: UnitOfWork, actor: Actor, page: PageRequest) -> SecretList:
    """The secrets of the workspace by name, without their values."""
    shown = workspace_secret.c
    statement = sa.select(shown.name, shown.created_at, shown.updated_at).where(
        shown.workspace_id == actor.workspace_id
    )
    found = await page.ascending(work, statement, shown.name, of=WorkspaceSecret)
    return SecretList.of(found)


_SEALED = PreparedStatement(
    sa.select(workspace_secret.c.name, workspace_secret.c.sealed_value).where(
        workspace_secret.c.workspace_id == sa.bindparam("workspace_id"),
        workspace_secret.c.name == sa.func.any(sa.bindparam("names", type_=sa.ARRAY(sa.Text))),
    )
)


async def secret_values(
    work: Work, keys: KeyRing, workspace_id: Id, names: Collection[str]
) -> dict[str, str]:
    """The values of the secrets that exist among these, by name. Raises UnreadableError."""
    parameters = {"workspace_id": workspace_id, "names": sorted(names)}
    return {
        row.name: keys.unseal(row.sealed_value, secret_place(workspace_id, row.name)).decode()
        for row in await _SEALED.rows(work, parameters)
    }


def sealed_secret(
    workspace_id: sa.ColumnElement[Any], name: sa.ColumnElement[Any]
) -> sa.ColumnElement[bytes | None]:
    """The column `sealed_value` of the secret that columns name; null when there is none."""
    this = (workspace_secret.c.workspace_id == workspace_id, workspace_secret.c.name == name)
    return (
        sa.select(workspace_secret.c.sealed_value)
        .where(*this)
        .scalar_subquery()
        .label("sealed_value")
    )


async def existing_names(
    work: UnitOfWork, workspace_id: Id, names: Collection[str]
) -> frozenset[str]:
    """The names of the secrets that exist among these."""
    if not names:
        return frozenset()
    parameters = {"workspace_id": workspace_id, "names": sorted(names)}
    return frozenset(row.name for row in await _SEALED.rows(work, parameters))


async def put_secret(
    work: UnitOfWork, actor: Actor, keys: KeyRing, name: str, body: PutSecret
) -> SecretBody:
    """Store a secret, or replace its value. Open runs send the new value.

    Raises ValidationError for a name that is none, ConflictError when there are too many.
    """
    if not is_secret_name(name):
        raise ValidationError.at(
            "secretName", "Use up to 63 letters, digits and _, not starting with a digit."
        )
    sealed = keys.seal(body.value.encode(), secret_place(actor.workspace_id, name))
    statement = upsert(workspace_secret).values(
        workspace_id=actor.workspace_id,
        name=name,
        sealed_value=sealed,
        created_at=work.now,
        updated_at=work.now,
    )
    async with SECRETS.place(work, actor.workspace_id):
        row = await work.first(
            statement.on_conflict_do_update(
                index_elements=["workspace_id", "name"],
                set_={"sealed_value": sealed, "updated_at": work.now},
            ).returning(
                workspace_secret.c.name,
                workspace_secret.c.created_at,
                workspace_secret.c.updated_at,
            )
        )
    return SecretBody.model_validate(row)


async def delete_secret(work: UnitOfWork, actor: Actor, name: str) -> DeletedSecret:
    """Delete a secret. Nodes that name it fail from then on. Raises NotFoundError."""
    if not is_secret_name(name):
        raise NotFoundError("secret")
    deleted = await work.execute(
        sa.delete(workspace_secret).where(
            workspace_secret.c.workspace_id == actor.workspace_id, workspace_secret.c.name == name
        )
    )
    if deleted.rowcount == 0:
        raise NotFoundError("secret")
    return DeletedSecret(name=name)
