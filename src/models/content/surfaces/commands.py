"""Creating surfaces, replacing their content, copying and deleting them; their comments."""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError as ShapeError
from sqlalchemy.dialects.postgresql import insert as upsert

from models.content.items.joins import ITEM, live_items
from models.content.surfaces import changes, queries, shapes
from models.content.surfaces.rules.contents import BLOCKS, SurfaceKind
from models.content.surfaces.rules.tree import MAX_CONTENT_BYTES, TOP, json_size, plan_blocks
from models.core.access.rules import Actor, Level, Placement, Scope, level_on
from models.core.base import Deleted, Id, JsonObject
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage
from models.core.keys import share_field_keys
from models.core.problems import located, refusal, sentence
from models.core.repository import copying_rows
from models.core.values import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.schema import is_among


async def create_surface(
    work: UnitOfWork,
    actor: Actor,
    item_id: Id,
    kind: SurfaceKind,
    content: JsonObject | None = None,
    *,
    surface_id: Id | None = None,
) -> Id:
    """The surface of an item, with the content `{settings?, blocks?}` of a body if it has one.

    Raises `ValidationError` below `content`, `NotFoundError` for what the content names.
    """
    new_surface_id = surface_id or new_id()
    if kind == SurfaceKind.DASHBOARD:
        await share_field_keys(work, actor.workspace_id)
    body = _read(content or {}, "content")
    changes.check_settings(body.settings or {}, "content.settings")
    blocks = plan_blocks(
        kind, body.blocks, TOP, new_id, most=changes.most_blocks(kind), path="content.blocks"
    )
    contents, own = [one.content for one in blocks], [one.id for one in blocks]
    await changes.check_references(work, actor, new_surface_id, contents, own)
    await _insert(work, actor, new_surface_id, kind, settings=body.settings or {}, item_id=item_id)
    await changes.store_blocks(work, actor, new_surface_id, blocks)
    here = changes.Home(id=new_surface_id, item_id=item_id)
    await changes.notify_mentioned(work, actor, here, {one.id: one.content for one in blocks})
    return new_surface_id


async def create_missing(
    work: UnitOfWork, workspace_id: Id, item_ids: Sequence[Id], kind: SurfaceKind
) -> None:
    """Create empty surfaces for the items among these that have none."""
    rows = [
        {
            "id": new_id(),
            "workspace_id": workspace_id,
            "item_id": item_id,
            "kind": kind.value,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for item_id in item_ids
    ]
    if rows:
        statement = upsert(queries.surface).values(rows)
        await work.execute(statement.on_conflict_do_nothing(index_elements=["item_id"]))


async def replace_surface(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    body: shapes.ReplaceSurface,
    expected_version: int | None = None,
) -> shapes.SurfaceDetail:
    """Replace the whole content of a surface.

    Raises `NotFoundError`, also for what the content names, `ValidationError` at `settings` or
    below `blocks`, and `ConflictError` when the surface is no longer the one that was read.
    """
    surface_row = await changes.hold_surface(work, actor, surface_id, Scope.SURFACES_WRITE)
    kind = SurfaceKind(surface_row.kind)
    changes.check_settings(body.settings, "settings")
    blocks = plan_blocks(kind, body.blocks, TOP, new_id, most=changes.most_blocks(kind))
    own = [entry.id for entry in blocks]
    await changes.check_references(
        work, actor, surface_id, [entry.content for entry in blocks], own
    )
    changes.check_version(
        surface_row, body.expected_version if expected_version is None else expected_version
    )
    # First what stays, then the rest goes: a block moved out of one that goes must outlive it.
    await changes.store_blocks(work, actor, surface_id, blocks)
    await work.execute(
        sa.delete(queries.block).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == surface_id,
            queries.block.c.id != sa.func.all(own),
        )
    )
    here = changes.home_of(surface_row)
    await changes.notify_mentioned(work, actor, here, {entry.id: entry.content for entry in blocks})
    return await queries.detail(
        work, actor, await changes.close_change(work, actor, surface_row, body.settings)
    )


async def create_content_surface(
    work: UnitOfWork, actor: Actor, database_id: Id, record_id: Id | None = None
) -> Id:
    """An empty surface for a record of a database, or for a record template without one."""
    made = new_id()
    home = {"database_id": database_id, "record_id": record_id}
    await _insert(work, actor, made, SurfaceKind.RECORD, settings={}, **home)
    return made


async def delete_content_surface(work: UnitOfWork, actor: Actor, surface_id: Id) -> None:
    """Delete a surface with its blocks, for what nothing names any more."""
    await work.execute(
        sa.delete(queries.surface).where(
            queries.surface.c.workspace_id == actor.workspace_id, queries.surface.c.id == surface_id
        )
    )


async def copy_surface(work: UnitOfWork, actor: Actor, surface_id: Id, new_item_id: Id) -> Id:
    """A copy of a surface, without its comments, for another item. Raises `NotFoundError`."""
    copy_id = new_id()
    copied = await work.execute(
        sa.insert(queries.surface).from_select(
            ["id", "workspace_id", "item_id", "kind", "settings", "created_at", "updated_at"],
            sa.select(
                sa.literal(copy_id),
                queries.surface.c.workspace_id,
                sa.literal(new_item_id),
                queries.surface.c.kind,
                queries.surface.c.settings,
                sa.literal(work.now),
                sa.literal(work.now),
            ).where(
                queries.surface.c.workspace_id == actor.workspace_id,
                queries.surface.c.id == surface_id,
            ),
        )
    )
    if copied.rowcount == 0:
        raise NotFoundError("surface")
    await _copy_blocks(work, actor, surface_id, sa.literal(copy_id))
    return copy_id


async def copy_to_records(
    work: UnitOfWork, actor: Actor, database_id: Id, copies: Sequence[tuple[Id, Id, Id]]
) -> None:
    """Give new records the blocks of templates' surfaces.

    `copies` are (surface copied, surface made, record that names it already).
    """
    sources, targets, record_ids = (
        sa.literal(list(ids), sa.ARRAY(sa.Uuid)) for ids in zip(*copies, strict=True)
    )
    names = (sa.column(name, sa.Uuid) for name in ("source", "target", "record_id"))
    rows = sa.func.unnest(sources, targets, record_ids).table_valued(*names).render_derived("made")
    await work.execute(
        sa.insert(queries.surface).from_select(
            ["id", "workspace_id", "database_id", "record_id", "kind", "created_at", "updated_at"],
            sa.select(
                rows.c.target,
                sa.literal(actor.workspace_id),
                sa.literal(database_id),
                rows.c.record_id,
                sa.literal(SurfaceKind.RECORD.value),
                sa.literal(work.now),
                sa.literal(work.now),
            ),
        )
    )
    await _copy_blocks(work, actor, rows.c.source, rows.c.target)


async def _copy_blocks(
    work: UnitOfWork, actor: Actor, source: Id | sa.ColumnElement[Id], target: sa.ColumnElement[Id]
) -> None:
    """Blocks keep their ids: what refers to one of them refers to the copy's.

    The source is an id, or as the target a column of ids.
    """
    now = sa.literal(work.now)
    values: dict[str, sa.ColumnElement[Any]] = {
        "surface_id": target,
        "created_at": now,
        "updated_at": now,
    }
    these = (
        queries.block.c.workspace_id == actor.workspace_id,
        queries.block.c.surface_id == source,
    )
    await work.execute(copying_rows(queries.block, values, these))


def copying_contents(
    workspace_id: Id,
    surface_ids: sa.Select[Any],
    database_id: Id,
    id_of: Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]],
) -> tuple[sa.Insert, sa.Insert]:
    """The statements that copy the contents of records, and their blocks, into a database.

    `id_of` gives the id of a copy from that of a surface or record. Blocks keep their ids, which
    are unique within a surface.
    """
    values = {
        "id": id_of(queries.surface.c.id),
        "database_id": sa.literal(database_id),
        "record_id": id_of(queries.surface.c.record_id),
    }
    own = (
        queries.surface.c.workspace_id == workspace_id,
        is_among(queries.surface.c.id, surface_ids),
    )
    on_them = (
        queries.block.c.workspace_id == workspace_id,
        is_among(queries.block.c.surface_id, surface_ids),
    )
    of_surface = {"surface_id": id_of(queries.block.c.surface_id)}
    return copying_rows(queries.surface, values, own), copying_rows(
        queries.block, of_surface, on_them
    )


async def _insert(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    kind: SurfaceKind,
    *,
    settings: JsonObject,
    **home: object,
) -> None:
    """`home` is the item, or the database with the record if there is one."""
    await work.execute(
        sa.insert(queries.surface).values(
            id=surface_id,
            workspace_id=actor.workspace_id,
            kind=kind.value,
            settings=settings,
            created_at=work.now,
            updated_at=work.now,
            **home,
        )
    )


def _read(content: JsonObject, path: str) -> shapes.SurfaceContent:
    try:
        return shapes.SurfaceContent.model_validate(content)
    except ShapeError as error:
        raise refusal(list(located(error, path))) from None


async def create_comment(
    work: UnitOfWork, actor: Actor, surface_id: Id, body: shapes.CreateComment
) -> shapes.CommentDetail:
    """Begin a thread, or answer one; an answer is about the block its thread is about.

    Raises `NotFoundError`, also for the block or the thread.
    """
    surface_row = await queries.find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    block_id = body.block_id
    if body.block_id is not None:
        await queries.find_block(work, actor, surface_id, body.block_id)
    if body.parent_comment_id is not None:
        thread = await _find(work, actor, surface_id, body.parent_comment_id)
        if thread.parent_comment_id is not None:
            raise ValidationError.at(
                "parentCommentId", "is a reply; name the comment it replies to"
            )
        if block_id not in {None, thread.block_id}:
            raise ValidationError.at("blockId", "is not the block the thread is about")
        block_id = thread.block_id
    (comment,) = await work.rows(
        sa.insert(queries.surface_comment)
        .values(
            id=new_id(),
            workspace_id=actor.workspace_id,
            surface_id=surface_id,
            block_id=block_id,
            parent_comment_id=body.parent_comment_id,
            author_user_id=actor.user_id,
            body=body.body,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(queries.surface_comment),
        of=queries.SurfaceComment,
    )
    await changes.notify_of_comment(work, actor, changes.home_of(surface_row), comment)
    return shapes.CommentDetail.model_validate(comment)


async def update_comment(
    work: UnitOfWork, actor: Actor, surface_id: Id, comment_id: Id, body: shapes.UpdateComment
) -> shapes.CommentDetail:
    """Change one's own words, or resolve a thread and open it again.

    Raises `NotFoundError`, `DeniedError` for the words of another, `ValidationError` for resolving
    an answer.
    """
    await queries.find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    comment = await _find(work, actor, surface_id, comment_id)
    if body.body is not None and comment.author_user_id != actor.user_id:
        raise DeniedError("Only the author of a comment can edit it.")
    if body.resolved is not None and comment.parent_comment_id is not None:
        raise ValidationError.at("resolved", "applies to the whole thread; name its first comment")
    values: dict[str, Any] = {}
    if body.body is not None:
        values = {"body": body.body, "updated_at": sa.func.greatest(work.now, comment.updated_at)}
    if body.resolved is True and comment.resolved_at is None:
        values |= {"resolved_at": work.now, "resolved_by_user_id": actor.user_id}
    if body.resolved is False:
        values |= {"resolved_at": None, "resolved_by_user_id": None}
    if values:
        statement = sa.update(queries.surface_comment).where(*_this(actor, surface_id, comment_id))
        await work.execute(statement.values(values))
    return shapes.CommentDetail.model_validate(await _find(work, actor, surface_id, comment_id))


async def delete_comment(
    work: UnitOfWork, actor: Actor, placement: Placement | None, surface_id: Id, comment_id: Id
) -> Deleted:
    """Delete one's own comment, or as a manager of the place anyone's; a thread goes whole.

    Raises `NotFoundError`, `DeniedError` for the comment of another.
    """
    await queries.find_surface(work, actor, surface_id, Scope.BLOCKS_COMMENT)
    found = await _find(work, actor, surface_id, comment_id)
    level = Level.NONE if placement is None else level_on(placement, actor.role)
    if found.author_user_id != actor.user_id and level < Level.MANAGE:
        raise DeniedError(
            "Only its author, or someone with manage access to the surface, can do this."
        )
    await work.execute(
        sa.delete(queries.surface_comment).where(*_this(actor, surface_id, comment_id))
    )
    return Deleted(id=comment_id)


def _this(actor: Actor, surface_id: Id, comment_id: Id) -> tuple[Any, ...]:
    return (
        queries.surface_comment.c.workspace_id == actor.workspace_id,
        queries.surface_comment.c.surface_id == surface_id,
        queries.surface_comment.c.id == comment_id,
    )


async def _find(
    work: UnitOfWork, actor: Actor, surface_id: Id, comment_id: Id
) -> queries.SurfaceComment:
    """The comment, held until the transaction ends. Raises `NotFoundError`."""
    return await work.one(
        sa.select(queries.surface_comment)
        .where(*_this(actor, surface_id, comment_id))
        .with_for_update(key_share=True),
        "comment",
        of=queries.SurfaceComment,
    )


async def rewrite_block(
    work: UnitOfWork, workspace_id: Id, surface_id: Id, block_id: Id, content: JsonObject
) -> None:
    """Store the content of a block in which a field has another key, with its size.

    Who has read the surface before cannot save it over this.
    """
    await work.execute(
        sa.update(queries.block)
        .where(
            queries.block.c.workspace_id == workspace_id,
            queries.block.c.surface_id == surface_id,
            queries.block.c.id == block_id,
        )
        .values(
            content=content,
            byte_size=json_size(content),
            updated_at=next_updated_at(queries.block.c.updated_at, work.now),
        )
    )
    await work.execute(
        sa.update(queries.surface)
        .where(queries.surface.c.workspace_id == workspace_id, queries.surface.c.id == surface_id)
        .values(
            version=queries.surface.c.version + 1,
            updated_at=sa.func.greatest(work.now, queries.surface.c.updated_at),
        )
    )


LiveContent = Callable[[sa.FromClause], sa.ColumnElement[bool]]
"""Takes the columns of surfaces; whether what they are the content of is outside the trash."""

_Live = Callable[[Id], sa.ColumnElement[bool]]
_FILE = "surfaces.ndjson"


def surface_kinds(live_content: LiveContent) -> tuple[BundleKind, BundleKind, BundleKind]:
    """Surfaces of items, records and templates, and the blocks and comments on them."""

    def live(workspace_id: Id) -> sa.ColumnElement[bool]:
        own = queries.surface.c.item_id.in_(live_items(workspace_id, ITEM.id))
        content = sa.and_(queries.surface.c.item_id.is_(None), live_content(queries.surface))
        return sa.and_(queries.surface.c.workspace_id == workspace_id, sa.or_(own, content))

    return _surfaces(live), _blocks(live), _comments(live)


def _surfaces(live: _Live) -> BundleKind:
    return BundleKind(
        name="surface",
        stage=Stage.CONTENT,
        file=_FILE,
        table=queries.surface,
        rows=lambda workspace_id: sa.select(queries.surface).where(live(workspace_id)),
        references={"item_id": "item", "database_id": "database", "record_id": "record"},
        required=("item_id", "database_id", "record_id"),
        contents=("settings",),
    )


def _blocks(live: _Live) -> BundleKind:
    on = sa.select(queries.block).join(queries.surface, _on(queries.block))
    return BundleKind(
        name="block",
        stage=Stage.CONTENT,
        file=_FILE,
        table=queries.block,
        rows=lambda workspace_id: on.where(live(workspace_id)),
        references={"surface_id": "surface"},
        contents=("content",),
        left_out={"byte_size": "follows from the content"},
        order=("surface_id", "id"),
        group="surface_id",
        parent="parent_block_id",
        check=_block_problem,
        prepare=_measured,
    )


def _comments(live: _Live) -> BundleKind:
    on = sa.select(queries.surface_comment).join(queries.surface, _on(queries.surface_comment))
    return BundleKind(
        name="surface_comment",
        stage=Stage.CONTENT,
        file=_FILE,
        table=queries.surface_comment,
        rows=lambda workspace_id: on.where(live(workspace_id)),
        references={
            "surface_id": "surface",
            "parent_comment_id": "surface_comment",
            "author_user_id": USER,
            "resolved_by_user_id": USER,
        },
        parent="parent_comment_id",
    )


def _on(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(
        queries.surface.c.workspace_id == table.c.workspace_id,
        queries.surface.c.id == table.c.surface_id,
    )


def _block_problem(row: Row) -> str | None:
    """The problem with a block, whichever kind of surface it stands on."""
    rules = [kinds[row["kind"]] for kinds in BLOCKS.values() if row["kind"] in kinds]
    if not rules:
        return f"unknown kind of block: {row['kind'][:50]}"
    if json_size(row["content"]) > MAX_CONTENT_BYTES:
        return "the content is too large"
    problem = None
    for rule in rules:
        try:
            rule.content.model_validate(row["content"])
        except ShapeError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"content.{'.'.join(map(str, first['loc']))}: {sentence(first)}"
        else:
            return None
    return problem


async def _measured(_work: UnitOfWork, _target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    return [{**row, "byte_size": json_size(row["content"])} for row in rows]
