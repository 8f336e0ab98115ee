"""Keys of things: slugs derived from a label, unique among their siblings.

See interface.md#identifiers-and-keys.
"""

import re
import unicodedata
from collections.abc import Collection
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field

from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.statements import PreparedStatement, lock_name

LONGEST = 63

PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
Key = Annotated[str, Field(pattern=PATTERN)]
"""A key a client chose."""


_FIELD_KEYS = sa.func.hashtextextended(
    sa.literal("field keys ", sa.Text).concat(sa.bindparam("workspace_id", type_=sa.Text)), 0
)
_SHARE_KEYS = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock_shared(_FIELD_KEYS)))
_OWN_KEYS = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock(_FIELD_KEYS)))


async def share_field_keys(work: UnitOfWork, workspace_id: Id) -> None:
    """Keep the keys of all fields of a workspace until the transaction ends.

    Each command that writes a definition with names of fields calls it before its first read.
    """
    await _SHARE_KEYS.rows(work, {"workspace_id": str(workspace_id)})


async def own_field_keys(work: UnitOfWork, workspace_id: Id) -> None:
    """Wait for the transactions that share the keys of the fields, and keep others out."""
    await _OWN_KEYS.rows(work, {"workspace_id": str(workspace_id)})


def slug(text: str, fallback: str) -> str:
    """`^[a-z][a-z0-9_]{0,62}$` from any text; led by `fallback` when it starts with no letter."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "_", ascii_text).strip("_")
    return (words if re.match(r"[a-z]", words) else f"{fallback}_{words}".strip("_"))[:LONGEST]


def first_free(base: str, keys: Collection[str]) -> str:
    """`base`, or `base_2`, `base_3`, … if it is taken."""
    key, number = base, 1
    while key in keys:
        number += 1
        suffix = f"_{number}"
        key = base[: LONGEST - len(suffix)] + suffix
    return key


async def free_key(work: UnitOfWork, table: sa.Table, workspace_id: Id, base: str) -> str:
    """`base`, numbered so that no row of `table` in the workspace has it."""
    stem = base[: LONGEST - 5].replace("_", r"\_")
    rows = await work.rows(
        sa.select(table.c.key).where(
            table.c.workspace_id == workspace_id, table.c.key.like(f"{stem}%")
        )
    )
    return first_free(base, {row.key for row in rows})


async def reserve_key(
    work: UnitOfWork, table: sa.Table, workspace_id: Id, requested: str | None, label: str
) -> str:
    """The requested key, or the first free one the label suggests, reserved until the commit.

    Raises `ConflictError` when the requested one is in use.
    """
    place = f"{table.name}-key/{workspace_id}"
    # A unique index alone would refuse the second request instead of giving it another key.
    await lock_name(work, place)
    key = await free_key(work, table, workspace_id, requested or slug(label, table.name))
    if requested not in {None, key}:
        raise ConflictError(
            f"The key {requested} is in use, possibly in the trash. Choose another key."
        )
    return key
