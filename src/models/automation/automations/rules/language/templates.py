"""Templates: text with `{{ CEL }}` segments (decisions C8)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from models.core.expressions.rules.cel_text import segment_end
from models.core.expressions.rules.errors import BindingError
from models.core.expressions.rules.expressions import Expression, saved_expression

MAX_LENGTH = 20_000
MAX_SEGMENTS = 100
MAX_RESULT = 1024 * 1024
"""Characters of a rendered template."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template."""

    parts: tuple[str | Expression, ...]

    def reads(self, variable: str) -> frozenset[str] | None:
        """The keys of a variable its segments can read; None when that depends on the data."""
        names: set[str] = set()
        for part in self.parts:
            if not isinstance(part, str):
                keys = part.reads(variable)
                if keys is None:
                    return None
                names |= keys
        return frozenset(names)

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text: strings as they are, nothing for null, JSON for any other value.

        Raises ExpressionError when a segment fails, BindingError when the text grows too long.
        """
        pieces: list[str] = []
        room = MAX_RESULT
        for part in self.parts:
            piece = part if isinstance(part, str) else _as_text(part.evaluate(variables))
            room -= len(piece)
            if room < 0:
                raise BindingError(f"The text of a template has at most {MAX_RESULT} characters.")
            pieces.append(piece)
        return "".join(pieces)


def segments(text: str) -> Iterator[str]:
    """The CEL texts of a template, as far as it can be read."""
    at = 0
    while (opened := text.find("{{", at)) >= 0:
        closed = segment_end(text, opened + 2)
        if closed is None:
            return
        yield text[opened + 2 : closed].strip()
        at = closed + 2


@lru_cache(maxsize=1_024)
def compile_template(text: str) -> Template:
    """Read a template. Raises BindingError for an open segment, ExpressionError for bad CEL."""
    if len(text) > MAX_LENGTH:
        raise BindingError(f"A template has at most {MAX_LENGTH} characters.")
    parts: list[str | Expression] = []
    at = 0
    while (start := text.find("{{", at)) >= 0:
        end = segment_end(text, start + 2)
        if end is None:
            raise BindingError(f"The `{{{{` at character {start + 1} has no `}}}}`.")
        if len(parts) >= 2 * MAX_SEGMENTS:
            raise BindingError(f"A template has at most {MAX_SEGMENTS} segments.")
        parts += [text[at:start], saved_expression(text[start + 2 : end].strip())]
        at = end + 2
    parts.append(text[at:])
    return Template(tuple(part for part in parts if part != ""))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
