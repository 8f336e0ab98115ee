"""Copying an item with what is below it."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ARRAY, FromClause, Uuid, func, literal

from models.content.grants.commands import copy_grants
from models.content.items.commands import check_parent, check_scopes, copy_appearance
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import find_item, get_item, item_detail, items_below, target_of
from models.content.items.rows import ItemRow
from models.content.items.rules import ItemKind, copy_stem, copy_title
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.database_copies.commands.acceptance import accept_copy
from models.data.database_copies.queries import copy_outcome
from models.data.database_copies.shapes import DuplicateDatabase
from models.workspace.targets.commands.copiers import COPIERS, CopyRequest
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, UnsupportedError

MAX_COPIES = 500

WITH_RECORDS = DuplicateDatabase.model_validate({"includeRecords": True})


async def duplicate_item(
    work: UnitOfWork, actor: Actor, keys: KeyRing, item_id: Id, copy_id: Id
) -> ItemDetail | None:
    """A copy of an item beside it, with those items below it that the actor sees.

    Access mode and grants are copied too. None for a database, which a job copies with its records
    under the id `copy_id`: ask `copied_item`. Raises what
    `check_parent` raises, `DeniedError` without the write scope of a kind that is copied,
    `UnsupportedError` for a database below and for more than 500 items, and `ConflictError` for
    an item whose target refers to something that is gone.
    """
    item = await find_item(work, actor.workspace_id, item_id)
    if item.kind == ItemKind.DATABASE:
        await accept_copy(work, actor, target_of(item), copy_id, WITH_RECORDS)
        return None
    await check_parent(work, actor, item.parent_item_id)
    rows = await _visible_below(work, actor, item_id)
    check_scopes(actor, {row.kind for row in rows})
    if any(row.kind == ItemKind.DATABASE for row in rows):
        raise UnsupportedError("There is a database below. Duplicate each database by itself.")
    title = await _free_title(work, actor, item)
    copies: dict[Id, Id] = {}
    for row in rows:
        if row.id == item_id:
            request = CopyRequest(work, actor, keys, row, title, row.parent_item_id)
        elif row.parent_item_id in copies:
            request = CopyRequest(work, actor, keys, row, row.title, copies[row.parent_item_id])
        else:
            continue
        copies[row.id] = await _copy(request)
    await _copy_own_columns(work, actor, item_id, copies)
    return item_detail(await find_item(work, actor.workspace_id, copies[item_id]))


async def copied_item(
    work: UnitOfWork, actor: Actor, copy_id: Id, *, last: bool
) -> ItemDetail | None:
    """The item of a copied database when the copy is complete, None while it is not.

    Raises what `copy_outcome` raises.
    """
    made = await copy_outcome(work, actor, copy_id, last=last)
    return None if made is None else await get_item(work, actor.workspace_id, made.item_id)


async def _visible_below(work: UnitOfWork, actor: Actor, item_id: Id) -> Sequence[ItemRow]:
    """The item and what the actor sees below it, from the top down."""
    rows = await items_below(work, actor, item_id, MAX_COPIES + 1)
    if len(rows) > MAX_COPIES:
        raise UnsupportedError(f"At most {MAX_COPIES} items are copied at once; copy its parts.")
    return rows


async def _free_title(work: UnitOfWork, actor: Actor, found: ItemRow) -> str:
    rows = await work.rows(
        live_items(actor.workspace_id, ITEM.title).where(
            ITEM.parent_item_id.is_not_distinct_from(found.parent_item_id),
            ITEM.title.startswith(copy_stem(found.title), autoescape=True),
        )
    )
    return copy_title(found.title, {row.title for row in rows})


async def _copy(request: CopyRequest) -> Id:
    try:
        return await COPIERS[ItemKind(request.source.kind)](request)
    except NotFoundError as error:
        raise ConflictError(
            f"The item {request.source.id} cannot be copied. {error.message}"
        ) from error


async def _copy_own_columns(
    work: UnitOfWork, actor: Actor, root_id: Id, made: Mapping[Id, Id]
) -> None:
    """Copy the columns and grants of the items; those below the root keep their order."""
    copies = _pairs(made)
    await copy_appearance(work, actor, root_id, copies)
    await copy_grants(work, actor, copies)


def _pairs(made: Mapping[Id, Id]) -> FromClause:
    columns = literal(list(made), ARRAY(Uuid)), literal(list(made.values()), ARRAY(Uuid))
    return func.unnest(*columns).table_valued("old", "new").render_derived()
