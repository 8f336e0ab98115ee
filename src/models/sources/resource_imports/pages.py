"""Documents of providers as pages, merged with what people made of them since."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from pydantic_core import to_json

from models.content.items.queries import target_of
from models.content.surfaces.changes import hold_surface
from models.content.surfaces.commands import create_surface, replace_surface
from models.content.surfaces.queries import blocks_of, nested
from models.content.surfaces.rules.contents import SurfaceKind
from models.content.surfaces.shapes import BlockTree, ReplaceSurface
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.sources.resource_imports.native import keep_name, new_item, note, refreshed
from models.sources.resource_imports.rows import ImportedRow
from models.sources.resource_imports.rules import Outcome, PartCounts
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
    merged = merge_blocks(before, [digest_of(block) for block in here], incoming)
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


class Taken(NamedTuple):
    """A block of the merged page: one of the page, one of the document, or that in the place."""

    here: int | None
    incoming: int | None


@dataclass(slots=True)
class Merged:
    """The blocks of the merged page, and of the document the blocks that people's stand for."""

    blocks: list[Taken] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)
    counts: PartCounts = field(default_factory=PartCounts)


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


_COMPARED = 4_000_000
"""Pairs of blocks that are compared with each other; lists beyond are one change as a whole."""


class Written(NamedTuple):
    """A block that an import wrote: digests of the document's form and of the stored one."""

    incoming: str
    local: str


def digest_of(block: JsonObject) -> str:
    """The digest that tells blocks apart: kind, content and nested blocks, but no ids."""
    return hashlib.sha256(to_json(_digested(block))).hexdigest()[:16]


def _digested(block: JsonObject) -> list[object]:
    content = sorted((block.get("content") or {}).items())
    return [block["kind"], content, [_digested(one) for one in block.get("children") or ()]]


def merge_blocks(before: Sequence[Written], here: Sequence[str], incoming: Sequence[str]) -> Merged:
    """The page to write; `here` are digests of what is stored, `incoming` of the document.

    Three lists are compared, of the blocks at the top: what the import wrote last, what stands
    there now, and what the document says now. Where only one side changed, that side counts; where
    both did, people's blocks stay.
    """
    merged = Merged()
    counts = dict.fromkeys(("created", "updated", "unchanged", "removed", "kept"), 0)
    for base, ours, theirs in _chunks(before, here, incoming):
        same_here = [before[i].local for i in base] == [here[i] for i in ours]
        same_incoming = [before[i].incoming for i in base] == [incoming[i] for i in theirs]
        if same_incoming:
            merged.blocks += [Taken(i, None) for i in ours]
            merged.digests |= {j: before[i].local for i, j in zip(base, theirs, strict=True)}
            counts["unchanged"] += len(theirs)
        elif same_here:
            merged.blocks += _replaced(ours, theirs)
            both = min(len(ours), len(theirs))
            counts["updated"] += both
            counts["created"] += len(theirs) - both
            counts["removed"] += len(ours) - both
        elif (added := _added(before, here, base, ours)) is not None:
            leading = [i for i in ours if all(k in added for k in range(ours.start, i + 1))]
            rest = [i for i in ours if i not in added]
            merged.blocks += [Taken(i, None) for i in leading]
            merged.blocks += _replaced(rest, theirs)
            merged.blocks += [Taken(i, None) for i in ours if i in added and i not in leading]
            counts["updated"] += max(len(rest), len(theirs))
        else:
            merged.blocks += [Taken(i, None) for i in ours]
            merged.digests |= dict.fromkeys(theirs, "")
            counts["kept"] += max(len(theirs), 1)
    merged.counts = PartCounts(**counts)
    return merged


def _replaced(ours: Sequence[int], theirs: Sequence[int]) -> list[Taken]:
    """Blocks of the document in the places of those before them, as far as there are."""
    places = [*ours, *[None] * len(theirs)]
    return [Taken(place, j) for place, j in zip(places, theirs, strict=False)]


def _added(
    before: Sequence[Written], here: Sequence[str], base: range, ours: range
) -> set[int] | None:
    """The blocks that people added, where they did nothing else; None where they did."""
    remaining = [before[i].local for i in base]
    additions = set[int]()
    for i in ours:
        if remaining and here[i] == remaining[0]:
            remaining.pop(0)
        else:
            additions.add(i)
    return None if remaining else additions


def _chunks(
    before: Sequence[Written], here: Sequence[str], incoming: Sequence[str]
) -> Iterator[tuple[range, range, range]]:
    """The three lists in parts, each of blocks that are the same in all, or between such."""
    to_here = _matching_places([one.local for one in before], here)
    to_incoming = _matching_places([one.incoming for one in before], incoming)
    base = ours = theirs = 0
    for i in range(len(before)):
        if i not in to_here or i not in to_incoming:
            continue
        if (i, to_here[i], to_incoming[i]) != (base, ours, theirs):
            yield range(base, i), range(ours, to_here[i]), range(theirs, to_incoming[i])
        base, ours, theirs = i + 1, to_here[i] + 1, to_incoming[i] + 1
        yield range(i, base), range(to_here[i], ours), range(to_incoming[i], theirs)
    if (base, ours, theirs) != (len(before), len(here), len(incoming)):
        yield range(base, len(before)), range(ours, len(here)), range(theirs, len(incoming))


def _matching_places(one: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """The matching places of the first and the second list, in their order."""
    start, most = 0, min(len(one), len(other))
    while start < most and one[start] == other[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    pairs = {i: i for i in range(start)}
    pairs |= {len(one) - i: len(other) - i for i in range(1, end + 1)}
    inner = one[start : len(one) - end], other[start : len(other) - end]
    if len(inner[0]) * len(inner[1]) <= _COMPARED:
        for block in SequenceMatcher(None, *inner, autojunk=False).get_matching_blocks():
            for k in range(block.size):
                pairs[start + block.a + k] = start + block.b + k
    return pairs
