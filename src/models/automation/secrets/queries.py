"""Reading secrets: names for the API, values for the nodes that send them."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Text, bindparam, func, select

from models.automation.secrets.rules import secret_place
from models.automation.secrets.shapes import SecretBody, SecretList
from models.automation.secrets.tables import WorkspaceSecret, workspace_secret
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work


async def list_secrets(work: UnitOfWork, actor: Actor, page: PageRequest) -> SecretList:
    """The secrets of the workspace by name, without their values."""
    shown = workspace_secret.c
    statement = select(shown.name, shown.created_at, shown.updated_at).where(
        shown.workspace_id == actor.workspace_id
    )
    found = await page.ascending(work, statement, shown.name, of=WorkspaceSecret)
    secrets = [SecretBody.model_validate(row) for row in found.items]
    return SecretList(secrets=secrets, cursor=found.cursor)


_SEALED = PreparedStatement(
    select(workspace_secret.c.name, workspace_secret.c.sealed_value).where(
        workspace_secret.c.workspace_id == bindparam("workspace_id"),
        workspace_secret.c.name == func.any(bindparam("names", type_=ARRAY(Text))),
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
    workspace_id: ColumnElement[Any], name: ColumnElement[Any]
) -> ColumnElement[bytes | None]:
    """The column `sealed_value` of the secret that columns name; null when there is none."""
    this = (workspace_secret.c.workspace_id == workspace_id, workspace_secret.c.name == name)
    return (
        select(workspace_secret.c.sealed_value).where(*this).scalar_subquery().label("sealed_value")
    )


async def existing_names(
    work: UnitOfWork, workspace_id: Id, names: Collection[str]
) -> frozenset[str]:
    """The names of the secrets that exist among these."""
    if not names:
        return frozenset()
    parameters = {"workspace_id": workspace_id, "names": sorted(names)}
    return frozenset(row.name for row in await _SEALED.rows(work, parameters))
