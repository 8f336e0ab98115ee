"""Steps of every change of a surface: lock, version, references, stored blocks, notices."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.types import TypeEngine

from models.content.files.queries import unhidden_files
from models.content.items.queries import item_of_target, seen_items
from models.content.surfaces import queries
from models.content.surfaces.rules.contents import Reference, SurfaceKind, references
from models.content.surfaces.rules.tree import PlannedBlock, json_size
from models.content.surfaces.shapes import MAX_BLOCKS
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.keys import share_field_keys
from models.core.problems import an
from models.core.values import InvalidValueError, check_storable
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify, notify_each
from models.people.members import members_among
from models.people.users import display_name
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.postgresql.schema import Timestamp

MAX_BYTES = 8 << 20
"""Of the contents of all blocks: what one request can bring, one answer can show."""

MAX_WIDGETS = 50
MAX_SETTINGS_BYTES = 64 << 10
MAX_SETTINGS_DEPTH = 16


def most_blocks(kind: SurfaceKind) -> int:
    """The most blocks that a surface of this kind holds."""
    return MAX_WIDGETS if kind is SurfaceKind.DASHBOARD else MAX_BLOCKS


async def hold_surface(
    work: UnitOfWork, actor: Actor, surface_id: Id, scope: Scope
) -> queries.Surface:
    """The surface, locked until the transaction ends.

    Raises `NotFoundError`, `DeniedError` for an actor without the scope.
    """
    statement = sa.select(queries.surface).where(
        queries.surface.c.workspace_id == actor.workspace_id, queries.surface.c.id == surface_id
    )
    found = await work.one(statement, "surface", of=queries.Surface)
    queries.require_scope(actor, found.kind, scope)
    if found.kind == SurfaceKind.DASHBOARD:
        # Its widgets name fields. A rename has the keys before it changes the surface.
        await share_field_keys(work, actor.workspace_id)
    locked = statement.with_for_update(key_share=True)
    return await work.one(locked, "surface", of=queries.Surface)


def check_version(surface_row: queries.Surface, expected_version: int | None) -> None:
    """Raise `ConflictError` when the surface is no longer the one that was read."""
    if expected_version is not None and expected_version != surface_row.version:
        raise ConflictError(
            f"The surface was changed since: its version is {surface_row.version}. Read it again."
        )


def check_settings(settings: JsonObject, path: str) -> None:
    """Settings are free-form, of bounded size and depth (interface.md#bodies)."""
    try:
        check_storable(settings, MAX_SETTINGS_DEPTH)
    except InvalidValueError as problem:
        raise ValidationError.at(path, str(problem)) from problem
    if json_size(settings) > MAX_SETTINGS_BYTES:
        raise ValidationError.at(path, f"is larger than {MAX_SETTINGS_BYTES >> 10} KiB")


async def close_change(
    work: UnitOfWork, actor: Actor, surface_row: queries.Surface, settings: JsonObject | None = None
) -> queries.Surface:
    """Count the blocks, and give the surface its next version and, if given, these settings.

    Raises `ValidationError` at `blocks` for more than a surface holds.
    """
    sizes = await work.first(
        sa.select(
            sa.func.count().label("blocks"), sa.func.sum(queries.block.c.byte_size).label("bytes")
        ).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == surface_row.id,
        )
    )
    assert sizes is not None
    limit = most_blocks(SurfaceKind(surface_row.kind))
    if sizes.blocks > limit:
        raise ValidationError.at("blocks", f"{an(surface_row.kind)} is limited to {limit} blocks")
    if (sizes.bytes or 0) > MAX_BYTES:
        raise ValidationError.at("blocks", f"are larger than {MAX_BYTES >> 20} MiB in total")
    new_surface = await work.first(
        sa.update(queries.surface)
        .where(
            queries.surface.c.workspace_id == actor.workspace_id,
            queries.surface.c.id == surface_row.id,
        )
        .values(
            version=queries.surface.c.version + 1,
            settings=queries.surface.c.settings if settings is None else settings,
            updated_at=sa.func.greatest(
                sa.literal(work.now, Timestamp), queries.surface.c.updated_at
            ),
        )
        .returning(queries.surface),
        of=queries.Surface,
    )
    assert new_surface is not None
    return new_surface


_COLUMNS: dict[str, TypeEngine[Any]] = {
    "id": sa.Uuid(),
    "parent_block_id": sa.Uuid(),
    "kind": sa.Text(),
    "position": sa.Float(53),
    "content": JSONB(),
    "byte_size": sa.Integer(),
    "x": sa.Float(53),
    "y": sa.Float(53),
    "w": sa.Float(53),
    "h": sa.Float(53),
}
_PLANNED = (
    sa.func.jsonb_to_recordset(sa.bindparam("planned", type_=JSONB))
    .table_valued(*(sa.column(name, sql_type) for name, sql_type in _COLUMNS.items()))
    .render_derived(name="planned", with_types=True)
)
_INSERT = insert(queries.block).from_select(
    ["workspace_id", "surface_id", "created_at", "updated_at", *_COLUMNS],
    sa.select(
        sa.bindparam("workspace_id", type_=sa.Uuid),
        sa.bindparam("surface_id", type_=sa.Uuid),
        sa.bindparam("now", type_=Timestamp),
        sa.bindparam("now", type_=Timestamp),
        *_PLANNED.c,
    ),
)
_CHANGING = [name for name in _COLUMNS if name not in {"id", "byte_size"}]
_STORE = _INSERT.on_conflict_do_update(
    index_elements=["surface_id", "id"],
    set_={
        **{name: _INSERT.excluded[name] for name in _COLUMNS if name != "id"},
        "updated_at": sa.func.greatest(
            _INSERT.excluded.updated_at, queries.block.c.updated_at + timedelta(milliseconds=1)
        ),
    },
    # An unchanged block keeps its time, and costs no new row version.
    where=sa.tuple_(*(queries.block.c[name] for name in _CHANGING)).is_distinct_from(
        sa.tuple_(*(_INSERT.excluded[name] for name in _CHANGING))
    ),
)


async def store_blocks(
    work: UnitOfWork, actor: Actor, surface_id: Id, blocks: Sequence[PlannedBlock]
) -> None:
    """Write blocks in one statement, over the blocks of these ids that are there already."""
    if blocks:
        parameters = {
            "workspace_id": actor.workspace_id,
            "surface_id": surface_id,
            "now": work.now,
            "planned": [one.row() for one in blocks],
        }
        await work.execute(_STORE, parameters)


async def check_references(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    contents: Iterable[Any],
    new_blocks: Iterable[Id] = (),
) -> None:
    """Check that the actor sees what contents name, unless the surface names it already.

    So whoever may edit a page can save it, although others have put on it what the actor does not
    see, or something has been deleted. Raises `NotFoundError` of the first resource that fails.

    One statement checks each kind. Higher domains register how the ids of theirs are looked up.
    """
    named = references(list(contents)) - {Reference("block", id_) for id_ in new_blocks}
    missing: set[Reference] = set()
    for resource in sorted({reference.resource for reference in named}):
        ids = [reference.id for reference in named if reference.resource == resource]
        seen = (
            _blocks(actor, surface_id, ids) if resource == "block" else _SEEN[resource](actor, ids)
        )
        rows = await work.rows(seen)
        missing |= {Reference(resource, id_) for id_ in set(ids) - {row.id for row in rows}}
    if missing:
        missing -= await _named_already(work, actor, surface_id, missing)
    if missing:
        raise NotFoundError(min(reference.resource for reference in missing))


async def _named_already(
    work: UnitOfWork, actor: Actor, surface_id: Id, missing: set[Reference]
) -> set[Reference]:
    patterns = sa.literal([f"%{reference.id}%" for reference in missing], sa.ARRAY(sa.Text))
    rows = await work.rows(
        sa.select(queries.block.c.content).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == surface_id,
            sa.cast(queries.block.c.content, sa.Text).like(sa.any_(patterns)),
        )
    )
    return references([row.content for row in rows])


def _users(actor: Actor, ids: Sequence[Id]) -> sa.Select[Any]:
    member = members_among(actor.workspace_id, ids).subquery()
    return sa.select(member.c.user_id.label("id"))


def _blocks(actor: Actor, surface_id: Id, ids: Sequence[Id]) -> sa.Select[Any]:
    return sa.select(queries.block.c.id).where(
        queries.block.c.workspace_id == actor.workspace_id,
        queries.block.c.surface_id == surface_id,
        queries.block.c.id == sa.func.any(ids),
    )


Seen = Callable[[Actor, Sequence[Id]], sa.Select[Any]]
"""Selects, as `id`, the ids among these that the actor sees."""

_SEEN: dict[str, Seen] = {"item": seen_items, "file": unhidden_files, "user": _users}


def register_reference(resource: str, query: Seen) -> None:
    """Let contents name things of a higher domain; `models.registrations` lists them."""
    _SEEN[resource] = query


MOST_TOLD = 50
"""Maximum authors who are notified of a new comment: the ones who wrote last."""
MOST_MENTIONED = 500
"""Mentions that one write tells of."""

_comment = queries.surface_comment.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A surface and where it belongs: an item, or the database of a record."""

    id: Id
    item_id: Id | None = None
    database_id: Id | None = None
    record_id: Id | None = None


def home_of(row: queries.Surface) -> Home:
    """The home of a surface's row."""
    return Home(
        id=row.id, item_id=row.item_id, database_id=row.database_id, record_id=row.record_id
    )


async def notify_mentioned(
    work: UnitOfWork, actor: Actor, home: Home, contents: Mapping[Id, JsonObject]
) -> None:
    """Notify those whom blocks mention, each once of a block, however often that is written."""
    mentions: dict[Id, list[Id]] = defaultdict(list)
    for block_id, content in contents.items():
        for reference in references(content):
            if reference.resource == "user":
                mentions[block_id].append(reference.id)
    if not mentions:
        return
    place = await item_of_target(work, actor.workspace_id, home.item_id, home.database_id)
    if place is None:
        return
    title = about(f"{await display_name(work, actor.person)} mentioned you on “{place.title}”")
    notices = [
        (
            user_ids,
            Notice(
                kind=NotificationKind.MENTION,
                title=title,
                item_id=place.id,
                record_id=home.record_id,
                actor_user_id=actor.person,
                data={"surfaceId": str(home.id), "blockId": str(block_id)},
                key=f"mention/{home.id}/{block_id}",
            ),
        )
        for block_id, user_ids in list(mentions.items())[:MOST_MENTIONED]
    ]
    await notify_each(work, actor.workspace_id, notices)


async def notify_of_comment(
    work: UnitOfWork, actor: Actor, home: Home, comment: queries.SurfaceComment
) -> None:
    """Notify the authors of earlier comments: in the thread, or at all when this begins one."""
    place = await item_of_target(work, actor.workspace_id, home.item_id, home.database_id)
    if place is None:
        return
    notice = Notice(
        kind=NotificationKind.COMMENT,
        title=about(f"{await display_name(work, actor.person)} commented on “{place.title}”"),
        body=comment.body,
        item_id=place.id,
        record_id=home.record_id,
        actor_user_id=actor.person,
        data={"surfaceId": str(home.id), "commentId": str(comment.id)},
        key=f"comment/surface-comment/{comment.id}",
    )
    await notify(work, actor.workspace_id, await _authors(work, comment), notice)


async def _authors(work: UnitOfWork, comment: queries.SurfaceComment) -> set[Id]:
    thread = comment.parent_comment_id
    statement = (
        sa.select(_comment.author_user_id)
        .where(
            _comment.workspace_id == comment.workspace_id, _comment.surface_id == comment.surface_id
        )
        .order_by(_comment.created_at.desc())
        .limit(MOST_TOLD)
    )
    if thread is not None:
        statement = statement.where(
            (_comment.id == thread) | (_comment.parent_comment_id == thread)
        )
    return {row.author_user_id for row in await work.rows(statement)}
