"""Existing names in place of one that does not exist, the nearest first (decisions C1)."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

MOST_SHOWN = 20
_MOST_COMPARED = 1_000
_LONGEST = 64
_NO_LETTER = re.compile(r"[\W_]+")


def known(asked: object, names: Iterable[str], labels: Mapping[str, str] | None = None) -> str:
    """`known: amount, title`: at most 20 of the names; `none` where there is none."""
    near = nearest_first(asked, names, labels)
    named = ", ".join(shown(name) for name in near[:MOST_SHOWN])
    return f"known: {named or 'none'}{', …' if len(near) > MOST_SHOWN else ''}"


def nearest_first(
    asked: object, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> list[str]:
    """The names, those before that are most like what was asked for, else as they come.

    `labels` has what people call some of the names. Costs little, whatever is asked: a client may
    ask for many.
    """
    wanted = _folded(asked) if isinstance(asked, str) else ""
    labels = labels or {}

    def distance(name: str) -> int:
        label = labels.get(name)
        near = _distance(wanted, name)
        return near if label is None else min(near, _distance(wanted, label))

    return sorted(islice(names, _MOST_COMPARED), key=distance)


def _distance(wanted: str, name: str) -> int:
    other = _folded(name)
    if not wanted or wanted == other:
        return -_LONGEST * 2
    if min(len(wanted), len(other)) > 2 and (wanted in other or other in wanted):
        return -_LONGEST
    alike = min(_same(wanted, other) + _same(wanted[::-1], other[::-1]), len(wanted), len(other))
    return -alike if 2 * alike >= len(wanted) else 0


def _same(one: str, other: str) -> int:
    """The characters that both begin with."""
    longest = min(len(one), len(other))
    return next((at for at in range(longest) if one[at] != other[at]), longest)


def _folded(text: str) -> str:
    """The letters and digits of a name, however they are written."""
    return _NO_LETTER.sub("", text[:_LONGEST].casefold())


def shown(name: str) -> str:
    """A name in a message: bounded and printable."""
    cut = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return "".join(char if char.isprintable() else "?" for char in cut)
