"""Planning the rows of nested blocks: checks contents, frames, nesting, depth, number, size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError as ShapeError
from pydantic_core import to_json

from models.content.surfaces.rules.contents import BLOCKS, BlockRule, SurfaceKind, may_hold, stored
from models.content.surfaces.shapes import BlockInput
from models.core.base import Id, JsonObject
from models.core.problems import an, located, refuse
from runtime.errors import Detail, ValidationError

COLUMNS = 12
"""Of a dashboard, as in home layouts (interface.md#home-layout)."""

MAX_ROWS = 10_000
MAX_HEIGHT = 100
MAX_COORDINATE = 1e6
MAX_EXTENT = 1e5

_UNPLACED = frozenset({"connector"})
"""Kinds of blocks that a canvas draws between other blocks, wherever these are."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The upper left corner and the size; None for what is given no place."""

    x: float | None = None
    y: float | None = None
    w: float | None = None
    h: float | None = None


def frame_problems(surface: SurfaceKind, kind: str, frame: Frame) -> Iterator[tuple[str, str]]:
    """The problems with a block's frame, each as key and sentence."""
    sides = {"x": frame.x, "y": frame.y, "w": frame.w, "h": frame.h}
    if surface not in {SurfaceKind.CANVAS, SurfaceKind.DASHBOARD}:
        for key, value in sides.items():
            if value is not None:
                yield key, f"does not apply to {an(surface)}; leave it out"
        return
    optional = surface is SurfaceKind.CANVAS and kind in _UNPLACED
    for key, value in sides.items():
        if value is None:
            if not optional:
                yield key, f"is required on {an(surface)}"
        elif surface is SurfaceKind.CANVAS:
            yield from _on_canvas(key, value)
        else:
            yield from _in_grid(key, value)
    if surface is SurfaceKind.DASHBOARD and (frame.x or 0) + (frame.w or 0) > COLUMNS:
        yield "w", f"exceeds the {COLUMNS} columns"


def _on_canvas(key: str, value: float) -> Iterator[tuple[str, str]]:
    if key in {"x", "y"} and abs(value) > MAX_COORDINATE:
        yield key, f"must be from -{MAX_COORDINATE:.0f} to {MAX_COORDINATE:.0f}"
    if key in {"w", "h"} and not 0 < value <= MAX_EXTENT:
        yield key, f"must be above 0 and at most {MAX_EXTENT:.0f}"


_GRID = {"x": (0, COLUMNS - 1), "y": (0, MAX_ROWS), "w": (1, COLUMNS), "h": (1, MAX_HEIGHT)}


def _in_grid(key: str, value: float) -> Iterator[tuple[str, str]]:
    lowest, highest = _GRID[key]
    if value != int(value) or not lowest <= value <= highest:
        yield key, f"must be a whole number from {lowest} to {highest}"


MAX_DEPTH = 20
MAX_CONTENT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBlock:
    """A block as it is to be stored."""

    id: Id
    parent_block_id: Id | None
    kind: str
    position: float
    content: JsonObject
    byte_size: int
    frame: Frame

    def row(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "parent_block_id": None if self.parent_block_id is None else str(self.parent_block_id),
            "kind": self.kind,
            "position": self.position,
            "content": self.content,
            "byte_size": self.byte_size,
            "x": self.frame.x,
            "y": self.frame.y,
            "w": self.frame.w,
            "h": self.frame.h,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place where blocks go: into a block, or to the top.

    `way` leads from that block to the top. `last` is the position of the block that they follow,
    and each is `step` after the one before.
    """

    parent_block_id: Id | None = None
    parent_kind: str | None = None
    way: tuple[Id, ...] = ()
    last: float = -1
    step: float = 1

    @property
    def depth(self) -> int:
        """The number of levels below the top."""
        return len(self.way)


TOP = Place()


def plan_blocks(
    surface: SurfaceKind,
    blocks: Sequence[BlockInput],
    place: Place,
    make_id: Callable[[], Id],
    *,
    most: int,
    path: str = "blocks",
) -> list[PlannedBlock]:
    """The rows of a tree of at most `most` blocks, parents before what is nested in them.

    Raises `ValidationError` with every problem at its place below `path`.
    """
    planner = _Planner(surface, make_id, most)
    planner.add(blocks, place, path)
    if planner.count > most:
        raise ValidationError.at(path, f"has more than {most} blocks")
    refuse(planner.problems)
    return planner.planned


def read_content(
    surface: SurfaceKind, kind: str, raw: JsonObject, path: str
) -> tuple[JsonObject, int]:
    """A content in its stored form, and its size in bytes.

    Raises `ValidationError` with every problem at its place below `path`.
    """
    problems: list[Detail] = []
    content = _content(BLOCKS[surface][kind], raw, path, problems)
    refuse(problems)
    return content, json_size(content)


def kind_problem(surface: SurfaceKind, parent: str | None, kind: str) -> str | None:
    """The reason why a block of this kind is not allowed there, or None."""
    if kind not in BLOCKS[surface]:
        return f"must be one of: {', '.join(BLOCKS[surface])}"
    if not may_hold(surface, parent, kind):
        return f"is not allowed {'at the top' if parent is None else f'in {an(parent)}'}"
    return None


class _Planner:
    def __init__(self, surface: SurfaceKind, make_id: Callable[[], Id], most: int) -> None:
        self.surface = surface
        self.make_id = make_id
        self.most = most
        self.count = 0
        self.planned: list[PlannedBlock] = []
        self.problems: list[Detail] = []
        self._ids: set[Id] = set()

    def add(self, blocks: Sequence[BlockInput], place: Place, path: str) -> None:
        if blocks and place.depth >= MAX_DEPTH:
            self.problems.append(Detail(path, f"is nested more than {MAX_DEPTH} levels deep"))
            return
        self.count += len(blocks)
        if self.count > self.most:
            return
        last = place.last
        for index, block in enumerate(blocks):
            position = last + place.step if block.order is None else block.order
            self._add_one(block, place, position, f"{path}.{index}")
            last = max(last, position)

    def _add_one(self, block: BlockInput, place: Place, position: float, path: str) -> None:
        problem = kind_problem(self.surface, place.parent_kind, block.kind)
        if problem is not None:
            self.problems.append(Detail(f"{path}.kind", problem))
            return
        rule = BLOCKS[self.surface][block.kind]
        frame = Frame(block.x, block.y, block.w, block.h)
        content = _content(rule, block.content, f"{path}.content", self.problems)
        self.problems += [
            Detail(f"{path}.{key}", message)
            for key, message in frame_problems(self.surface, block.kind, frame)
        ]
        block_id = self._own_id(block, path)
        self.planned.append(
            PlannedBlock(
                id=block_id,
                parent_block_id=place.parent_block_id,
                kind=block.kind,
                position=position,
                content=content,
                byte_size=json_size(content),
                frame=frame,
            )
        )
        way = (block_id, *place.way)
        inner = Place(parent_block_id=block_id, parent_kind=block.kind, way=way)
        self.add(block.children, inner, f"{path}.children")

    def _own_id(self, block: BlockInput, path: str) -> Id:
        block_id = block.id or self.make_id()
        if block_id in self._ids:
            self.problems.append(
                Detail(f"{path}.id", "is already the id of another block of this body")
            )
        self._ids.add(block_id)
        return block_id


def _content(rule: BlockRule, raw: JsonObject, path: str, problems: list[Detail]) -> JsonObject:
    try:
        content = stored(rule.content.model_validate(raw))
    except ShapeError as error:
        problems += located(error, path)
        return {}
    if json_size(content) > MAX_CONTENT_BYTES:
        problems.append(Detail(path, f"is larger than {MAX_CONTENT_BYTES >> 10} KiB"))
    return content


def json_size(content: JsonObject) -> int:
    """Bytes of a value as JSON text."""
    return len(to_json(content))
