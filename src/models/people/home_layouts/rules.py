"""Limits of a home layout (interface, Home layout; decisions C13). Pure."""

import json
from collections import Counter
from collections.abc import Sequence

from models.core.base import JsonObject
from models.core.values import InvalidValueError, check_storable

COLUMNS = 12
"""The width of the grid."""
MAX_ROW = 10_000
"""The lowest row in which a widget may begin."""
MAX_HEIGHT = 1_000
MAX_WIDGETS = 50

MAX_CONFIG_DEPTH = 8
MAX_CONFIG_BYTES = 16 * 1024


def config_problem(config: JsonObject) -> str | None:
    """The problem with the config of a widget, in words."""
    try:
        check_storable(config, MAX_CONFIG_DEPTH)
    except InvalidValueError as problem:
        return f"The config {problem}."
    if len(json.dumps(config, ensure_ascii=False).encode()) > MAX_CONFIG_BYTES:
        return f"The config must be at most {MAX_CONFIG_BYTES} bytes of JSON."
    return None


def width_problem(x: float, w: float) -> str | None:
    """The problem with a widget that begins at column `x` and is `w` columns wide."""
    if x + w > COLUMNS:
        return f"The widget ends outside of the grid: x + w must be at most {COLUMNS}."
    return None


def repeated(ids: Sequence[str]) -> str | None:
    """The first id that several widgets have."""
    return next((id_ for id_, count in Counter(ids).items() if count > 1), None)
