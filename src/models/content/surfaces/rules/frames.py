"""The position and size of a block: coordinates on a canvas, cells of a grid on a dashboard."""

from collections.abc import Iterator
from dataclasses import dataclass

from models.content.surfaces.rules.kinds import SurfaceKind
from models.core.problems import an

COLUMNS = 12
"""Of a dashboard (decisions C13, the grid of the home layout)."""

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
                yield key, f"has no meaning on {an(surface)}; leave it out"
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
        yield "w", f"reaches beyond the {COLUMNS} columns"


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
