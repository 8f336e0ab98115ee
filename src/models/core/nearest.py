"""Existing names in place of one that does not exist, the nearest first (decisions C1)."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

MOST_SHOWN = 20
_MOST_COMPARED = 1_000
_LONGEST = 64
_NO_LETTER = re.compile(r"[\W_]+")


def known(name: object, names: Iterable[str], labels: Mapping[str, str] | None = None) -> str:
    """`known: amount, title`: at most 20 of the names; `none` where there is none."""
    near = nearest_first(name, names, labels)
    named = ", ".join(shown(name) for name in near[:MOST_SHOWN])
    return f"known: {named or 'none'}{', …' if len(near) > MOST_SHOWN else ''}"


def nearest_first(
    name: object, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> list[str]:
    """The names, those before that are most like what was asked for, else as they come.

    `labels` has what people call some of the names. Costs little, whatever is asked: a client may
    ask for many.
    """
    target = _folded(name) if isinstance(name, str) else ""
    labels = labels or {}

    def distance(candidate: str) -> int:
        label = labels.get(candidate)
        near = _distance(target, candidate)
        return near if label is None else min(near, _distance(target, label))

    return sorted(islice(names, _MOST_COMPARED), key=distance)


def _distance(target: str, name: str) -> int:
    other = _folded(name)
    if not target or target == other:
        return -_LONGEST * 2
    if min(len(target), len(other)) > 2 and (target in other or other in target):
        return -_LONGEST
    alike = min(_same(target, other) + _same(target[::-1], other[::-1]), len(target), len(other))
    return -alike if 2 * alike >= len(target) else 0


def _same(first: str, second: str) -> int:
    """The characters that both begin with."""
    longest = min(len(first), len(second))
    return next((at for at in range(longest) if first[at] != second[at]), longest)


def _folded(text: str) -> str:
    """The letters and digits of a name, however they are written."""
    return _NO_LETTER.sub("", text[:_LONGEST].casefold())


def shown(name: str) -> str:
    """A name in a message: bounded and printable."""
    cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in cut)
