"""Creating, renaming, moving, archiving, deleting and restoring items, under the tree's lock.

Adding an item shares the lock; moving, deleting and restoring take it exclusively. So nothing is
put below an item that goes to the trash meanwhile, and two moves cannot together form a cycle.

An item that goes to the trash, comes back from it, or is archived or unarchived takes its target
with it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.content.items.joins import item, live, subtree, way_up
from models.content.items.queries import placement
from models.content.items.rules import MAX_TREE_DEPTH, WRITE_SCOPES, ItemKind
from models.content.items.shapes import ItemRow, MoveItem
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.core.bundles import BundleKind, Stage
from models.core.values import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.statements import PreparedStatement

_KEY = sa.bindparam("key", type_=sa.BigInteger)
_SHARED = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock_shared(_KEY)))
_EXCLUSIVE = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock(_KEY)))


async def share_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Keep the shape of a workspace's tree as it is until the transaction ends."""
    await _SHARED.rows(work, {"key": _key(workspace_id)})


async def own_tree(work: UnitOfWork, workspace_id: Id) -> None:
    """Let no one else change the tree until the transaction ends."""
    await _EXCLUSIVE.rows(work, {"key": _key(workspace_id)})


def _key(workspace_id: Id) -> int:
    """A key from the last 8 bytes of the id, which are random in a UUIDv7."""
    return int.from_bytes(workspace_id.bytes[8:], "big", signed=True)


PlacementHandler = Callable[[UnitOfWork, Id, Sequence[Id]], Awaitable[None]]
"""Takes a workspace and the targets of its items that went or came back."""

_HANDLERS: dict[ItemKind, PlacementHandler] = {}


def on_placement_change(kind: ItemKind, handler: PlacementHandler) -> None:
    """Call `handler` for items of a kind, in the transaction of each change; one for each kind.

    Resources of higher domains say here what they then do; `models.registrations` lists them.
    """
    _HANDLERS[kind] = handler


def kinds_with_handlers() -> Sequence[ItemKind]:
    """The kinds of which someone hears."""
    return list(_HANDLERS)


async def placement_changed(
    work: UnitOfWork, workspace_id: Id, targets: Mapping[str, Sequence[Id]]
) -> None:
    """Call the handlers for the targets, by kind, of items that went or came back."""
    for kind, handler in _HANDLERS.items():
        if found := targets.get(kind.value):
            await handler(work, workspace_id, found)


async def check_parent(work: UnitOfWork, actor: Actor, parent_item_id: Id | None) -> None:
    """Check that the actor may put things below an item, or at the root when it is None.

    A command whose body names a parent asks this before it judges the rest
    (interface.md#order-of-checks). The parent stays where it is until the transaction ends. Raises
    `NotFoundError` when the actor does not see it, `DeniedError` without edit access,
    `ValidationError` when it is too far down.
    """
    await share_tree(work, actor.workspace_id)
    if parent_item_id is None:
        level = actor.level
    else:
        level = await placement.level(work, actor, parent_item_id)
        if level < Level.VIEW:
            raise NotFoundError
    if level < Level.EDIT:
        raise DeniedError("Adding an item here needs edit access to its parent.")
    if parent_item_id is not None:
        above = await way_up(work, actor.workspace_id, parent_item_id)
        _check_depth(len(above) + 1)


async def create_item_for(
    work: UnitOfWork,
    actor: Actor,
    kind: ItemKind,
    target_id: Id | None,
    title: str,
    *,
    parent_item_id: Id | None = None,
    icon: str | None = None,
    order: float | None = None,
) -> Id:
    """Give a new resource its item, last among its siblings unless `order` says where.

    Raises what `check_parent` raises.
    """
    await check_parent(work, actor, parent_item_id)
    item_id = new_id()
    last = last_position(actor.workspace_id, parent_item_id)
    await work.execute(
        sa.insert(item).values(
            id=item_id,
            workspace_id=actor.workspace_id,
            parent_item_id=parent_item_id,
            kind=kind.value,
            target_id=target_id,
            title=title,
            icon=icon,
            position=last if order is None else order,
            metadata={},
            created_at=work.now,
            updated_at=work.now,
        )
    )
    return item_id


def last_position(workspace_id: Id, parent_item_id: Id | None) -> sa.ColumnElement[Any]:
    """The position after the last child of a parent."""
    return (
        sa.select(sa.func.coalesce(sa.func.max(item.c.position), -1) + 1)
        .where(
            item.c.workspace_id == workspace_id,
            item.c.parent_item_id.is_not_distinct_from(parent_item_id),
            item.c.deleted_at.is_(None),
        )
        .scalar_subquery()
    )


async def rename_item(work: UnitOfWork, actor: Actor, item_id: Id, title: str) -> None:
    """Let an item carry the new label of what it places."""
    await change_item(work, actor, item_id, {"title": title})


async def change_item(
    work: UnitOfWork,
    actor: Actor,
    item_id: Id,
    values: Mapping[str, Any],
    expected_updated_at: datetime | None = None,
) -> ItemRow:
    """Set columns of an item and return its row; `expected_updated_at` is as last read.

    Raises `NotFoundError`, and `ConflictError` when the item is no longer the one that was read.
    """
    statement = (
        sa.update(item)
        .where(*live(actor.workspace_id, item_id))
        .values(**values, updated_at=next_updated_at(item.c.updated_at, work.now))
        .returning(item)
    )
    if expected_updated_at is not None:
        statement = statement.where(item.c.updated_at == expected_updated_at)
    row = await work.first(statement, of=ItemRow)
    if row is None and expected_updated_at is not None:
        raise ConflictError("The item was changed since it was read. Read it again.")
    if row is None:
        raise NotFoundError
    return row


async def copy_appearance(
    work: UnitOfWork, actor: Actor, root_id: Id, copies: sa.FromClause
) -> None:
    """Give items what others look like, and who sees them by their mode.

    `copies` has columns `old` and `new` of item ids. All but the copy of `root_id` get the
    position, too.
    """
    original = item.alias("original")
    conditions = (
        item.c.workspace_id == actor.workspace_id,
        original.c.workspace_id == actor.workspace_id,
        item.c.id == copies.c.new,
        original.c.id == copies.c.old,
    )
    copied = ("icon", "color", "access_mode", "metadata", "archived")
    await work.execute(
        sa.update(item).where(*conditions).values({name: original.c[name] for name in copied})
    )
    await work.execute(
        sa.update(item)
        .where(*conditions, original.c.id != root_id)
        .values(position=original.c.position)
    )


async def move_item(work: UnitOfWork, actor: Actor, item_id: Id, body: MoveItem) -> ItemRow:
    """Move an item with what is below it to another parent; gives its new row.

    Raises what `check_parent` raises, `ValidationError` for a place below the item itself and
    `DeniedError` without the kind's write scope.
    """
    await own_tree(work, actor.workspace_id)
    await check_parent(work, actor, body.parent_item_id)
    below = subtree(actor.workspace_id, item_id)
    height = await work.scalar(sa.select(sa.func.max(below.c.depth)))
    if height is None:
        raise NotFoundError
    if body.parent_item_id is not None:
        above = await way_up(work, actor.workspace_id, body.parent_item_id)
        if item_id in above:
            raise ValidationError.at("parentItemId", "An item cannot be moved into itself.")
        _check_depth(len(above) + 1 + height)
    last = last_position(actor.workspace_id, body.parent_item_id)
    position = last if body.order is None else body.order
    values = {"parent_item_id": body.parent_item_id, "position": position}
    row = await change_item(work, actor, item_id, values)
    check_scopes(actor, {row.kind})
    return row


async def trash_item(work: UnitOfWork, actor: Actor, item_id: Id) -> ItemRow:
    """Put an item and everything below it into the trash; gives its new row.

    What is below remembers the item it went with. Raises `NotFoundError`, and `DeniedError` when
    the actor lacks the write scope of a kind below.
    """
    await own_tree(work, actor.workspace_id)
    below = subtree(actor.workspace_id, item_id)
    trashed = (
        sa.update(item)
        .where(item.c.workspace_id == actor.workspace_id, item.c.id.in_(sa.select(below.c.id)))
        .values(
            deleted_at=work.now,
            deleted_with=item_id,
            updated_at=next_updated_at(item.c.updated_at, work.now),
        )
    )
    return await _change_many(work, actor, item_id, trashed)


async def restore_item(work: UnitOfWork, actor: Actor, item_id: Id) -> ItemRow:
    """Bring an item back with all that went to the trash with it; one not there is un-archived.

    Raises `NotFoundError`, `ConflictError` when what is above it is still in the trash, and
    `DeniedError` as `trash_item`.
    """
    await own_tree(work, actor.workspace_id)
    above = item.alias("above")
    row = await work.first(
        sa.select(item, above.c.deleted_at.label("above_deleted_at"))
        .outerjoin(
            above,
            (above.c.workspace_id == item.c.workspace_id) & (above.c.id == item.c.parent_item_id),
        )
        .where(item.c.workspace_id == actor.workspace_id, item.c.id == item_id)
    )
    if row is None:
        raise NotFoundError
    if row.deleted_at is None:
        return await archive_item(work, actor, item_id, archived=False)
    if row.above_deleted_at is not None:
        raise ConflictError("The parent of the item is in the trash too. Restore the parent first.")
    restored = (
        sa.update(item)
        .where(item.c.workspace_id == actor.workspace_id, item.c.deleted_with == item_id)
        .values(
            deleted_at=None,
            deleted_with=None,
            updated_at=next_updated_at(item.c.updated_at, work.now),
        )
    )
    return await _change_many(work, actor, item_id, restored)


async def archive_item(work: UnitOfWork, actor: Actor, item_id: Id, *, archived: bool) -> ItemRow:
    """Archive an item, which takes it out of lists, or unarchive it; repeating it changes nothing.

    Raises `NotFoundError`, and `DeniedError` without the kind's write scope.
    """
    this = sa.select(item).where(*live(actor.workspace_id, item_id))
    row = await work.first(this.with_for_update(), of=ItemRow)
    if row is None:
        raise NotFoundError
    check_scopes(actor, {row.kind})
    if row.archived is archived:
        return row
    changed = await change_item(work, actor, item_id, {"archived": archived})
    if row.target_id is not None:
        await placement_changed(work, actor.workspace_id, {row.kind: [row.target_id]})
    return changed


def check_scopes(actor: Actor, kinds: Set[str]) -> None:
    """Check that the actor may write items of these kinds. Raises `DeniedError`."""
    needed = {WRITE_SCOPES[ItemKind(kind)] for kind in kinds}
    missing = sorted(needed - actor.scopes)
    if missing:
        raise DeniedError(f"The credential lacks the scope {' and '.join(missing)}.")


class _ChangedKind(Protocol):
    kind: str
    targets: list[Id] | None


async def _change_many(work: UnitOfWork, actor: Actor, item_id: Id, change: sa.Update) -> ItemRow:
    """Change an item and all that goes with it, if the actor may; gives the row of the item.

    A folder may hold a hundred thousand: only what handlers hear of is read.
    """
    changed = change.returning(item.c.kind, item.c.target_id).cte("changed")
    handled = changed.c.kind.in_(kinds_with_handlers()) & changed.c.target_id.is_not(None)
    targets = sa.func.array_agg(changed.c.target_id).filter(handled).label("targets")
    kinds = await work.rows(
        sa.select(changed.c.kind, targets).group_by(changed.c.kind), of=_ChangedKind
    )
    if not kinds:
        raise NotFoundError
    check_scopes(actor, {one.kind for one in kinds})
    by_kind = {one.kind: one.targets or [] for one in kinds}
    await placement_changed(work, actor.workspace_id, by_kind)
    this = sa.select(item).where(item.c.workspace_id == actor.workspace_id, item.c.id == item_id)
    row = await work.first(this, of=ItemRow)
    assert row is not None, "it was changed"
    return row


def _check_depth(depth: int) -> None:
    if depth > MAX_TREE_DEPTH:
        raise ValidationError.at(
            "parentItemId", f"Items can be at most {MAX_TREE_DEPTH} levels deep."
        )


async def create_items_for(
    work: UnitOfWork,
    workspace_id: Id,
    parent_item_id: Id | None,
    kind: ItemKind,
    targets: Sequence[tuple[Id | None, str]],
) -> list[Id]:
    """Give new resources, each with a title, their items, last below a parent that was checked."""
    first = await work.scalar(sa.select(last_position(workspace_id, parent_item_id)))
    rows = [
        {
            "id": new_id(),
            "workspace_id": workspace_id,
            "parent_item_id": parent_item_id,
            "kind": kind.value,
            "target_id": target_id,
            "title": title,
            "position": first + place,
            "metadata": {},
            "created_at": work.now,
            "updated_at": work.now,
        }
        for place, (target_id, title) in enumerate(targets)
    ]
    if rows:
        await work.execute(sa.insert(item), rows)
    return [row["id"] for row in rows]


async def rename_items(work: UnitOfWork, renamed: Sequence[tuple[Id, str, str]]) -> None:
    """Give items, each with its old and its new name, the new one; unless people named them."""
    if not renamed:
        return
    await work.execute(
        sa.update(item)
        .where(item.c.id == sa.bindparam("this"), item.c.title == sa.bindparam("old"))
        .values(title=sa.bindparam("new"), updated_at=next_updated_at(item.c.updated_at, work.now)),
        [{"this": one, "old": old, "new": new} for one, old, new in renamed],
    )


def _bundled_rows(workspace_id: Id) -> sa.Select[Any]:
    """Items outside the trash with their `depth`, so that those above others come first."""
    top = sa.select(item, sa.literal(0).label("depth")).where(
        item.c.workspace_id == workspace_id,
        item.c.parent_item_id.is_(None),
        item.c.deleted_at.is_(None),
    )
    tree = top.cte("tree", recursive=True)
    below = sa.select(item, tree.c.depth + 1).where(
        item.c.workspace_id == workspace_id,
        item.c.parent_item_id == tree.c.id,
        item.c.deleted_at.is_(None),
    )
    return sa.select(tree.union_all(below))


ITEMS = BundleKind(
    name="item",
    stage=Stage.CREATING,
    file="items.ndjson",
    table=item,
    rows=_bundled_rows,
    references={"parent_item_id": "item", "target_id": "*"},
    parent="parent_item_id",
    contents=("metadata",),
    left_out={"deleted_at": "what is in the trash stays behind", "deleted_with": "as deleted_at"},
    order=("depth", "id"),
    hides=True,
)
