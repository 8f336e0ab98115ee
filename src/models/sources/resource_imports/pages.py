"""Documents of providers as pages, merged with what people made of them since."""

from collections.abc import Sequence
from typing import Any

from models.content.items.queries import target_of
from models.content.surfaces.commands.changes import hold_surface
from models.content.surfaces.commands.surfaces import create_surface, replace_surface
from models.content.surfaces.queries import blocks_of, nested
from models.content.surfaces.rules.kinds import SurfaceKind
from models.content.surfaces.shapes import BlockTree, ReplaceSurface
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.sources.resource_imports.block_merge import Merged, Written, digest_of, merge
from models.sources.resource_imports.native import keep_name, new_item, note, refreshed
from models.sources.resource_imports.outcomes import Outcome, PartCounts
from models.sources.resource_imports.rows import ImportedRow
from runtime.database import UnitOfWork
from runtime.ids import new_id


async def make_page(
    work: UnitOfWork,
    actor: Actor,
    row: ImportedRow,
    parent_item_id: Id | None,
    blocks: list[JsonObject],
    digest: str,
) -> tuple[Outcome, PartCounts]:
    """The page of a document; what people changed, added or removed there stays so."""
    if row.item_id is None:
        return await _create(work, actor, row, parent_item_id, blocks, digest)
    placed, same = await refreshed(work, actor, row, digest)
    if placed is None or same is not None:
        return same or Outcome.KEPT, PartCounts()
    surface_id = target_of(placed)
    await hold_surface(work, actor, surface_id, Scope.SURFACES_WRITE)
    here = await _stored(work, actor, surface_id)
    before = [Written(*pair) for pair in row.blocks or ()]
    incoming = [digest_of(block) for block in blocks]
    merged = merge(before, [digest_of(block) for block in here], incoming)
    outcome = merged.counts.outcome
    if outcome is Outcome.UPDATED:
        body = ReplaceSurface.model_validate({"blocks": _merged_blocks(merged, here, blocks)})
        written = [
            _bare(block) for block in (await replace_surface(work, actor, surface_id, body)).blocks
        ]
        await keep_name(work, actor, row, placed)
        pairs = _pairs(merged, incoming, written)
        return await note(work, row, outcome, digest=digest, blocks=pairs), merged.counts
    return await note(work, row, outcome), merged.counts


async def _create(
    work: UnitOfWork,
    actor: Actor,
    row: ImportedRow,
    parent_item_id: Id | None,
    blocks: list[JsonObject],
    digest: str,
) -> tuple[Outcome, PartCounts]:
    made = new_id()
    item_id = await new_item(work, actor, row, parent_item_id, made)
    content = {"blocks": blocks}
    await create_surface(work, actor, item_id, SurfaceKind.PAGE, content, surface_id=made)
    stored = await _stored(work, actor, made)
    pairs = [
        [digest_of(incoming), digest_of(kept)]
        for incoming, kept in zip(blocks, stored, strict=True)
    ]
    values = {"item_id": item_id, "digest": digest, "blocks": pairs}
    counts = PartCounts(created=len(blocks))
    return await note(work, row, Outcome.CREATED, **values), counts


async def _stored(work: UnitOfWork, actor: Actor, surface_id: Id) -> list[JsonObject]:
    blocks = nested(await blocks_of(work, actor.workspace_id, surface_id), None)
    return [_bare(one) for one in blocks]


def _bare(block: BlockTree) -> JsonObject:
    return {
        "id": str(block.id),
        "kind": block.kind,
        "content": block.content,
        "children": [_bare(one) for one in block.children],
    }


def _merged_blocks(
    merged: Merged, here: Sequence[JsonObject], incoming: Sequence[JsonObject]
) -> list[JsonObject]:
    """The blocks of the merged page; one that only becomes another stays that block."""
    blocks: list[JsonObject] = []
    for choice in merged.blocks:
        place = None if choice.here is None else here[choice.here]
        if choice.incoming is None:
            assert place is not None, "a block is of the page or of the document"
            blocks.append(place)
        elif place is not None and place["kind"] == incoming[choice.incoming]["kind"]:
            blocks.append({**incoming[choice.incoming], "id": place["id"]})
        else:
            blocks.append(incoming[choice.incoming])
    return blocks


def _pairs(
    merged: Merged, incoming: Sequence[str], written: Sequence[JsonObject]
) -> list[list[Any]]:
    """The pairs the next import compares with: the document, and how each block of it is stored."""
    stored = dict(merged.digests)
    for choice, block in zip(merged.blocks, written, strict=True):
        if choice.incoming is not None:
            stored[choice.incoming] = digest_of(block)
    return [[one, stored[place]] for place, one in enumerate(incoming)]
