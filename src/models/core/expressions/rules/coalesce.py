"""`coalesce(a, b, …)`: the first that is there and not null, as in SQL (decisions C11).

CEL has no such function and the library runs none of ours, so a call is written in what CEL has.
A path into the data that ends on its way (`trigger.customer.name` without a customer) is null
here, where it would be an error elsewhere. What follows the argument that counts is not evaluated.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from models.core.expressions.rules.cel_text import Token, is_field, names, tokens

NAME = "coalesce"
MOST_ARGUMENTS = 16
MOST_CALLS = 20
"""In one expression: each is ten to twenty times as long in CEL's own functions."""
LONGEST = 20_000
"""Characters of a text spelled out. To compile so many takes a quarter of a second."""

_CONSTANTS = frozenset({"true", "false", "null"})


def spelled_out(text: str, qualifiers: Collection[str] = ()) -> str:
    """CEL text that compiles, with every call of `coalesce` written in CEL's own functions.

    Raises ValueError for too many calls or arguments and for a bracket without its other half.
    `qualifiers` are the first names of variables like `record.price`, which are there always.
    """
    if sum(token.text == NAME for token in tokens(text)) > MOST_CALLS:
        raise ValueError(f"It calls {NAME} more than {MOST_CALLS} times.")
    written = _Text(text, qualifiers).between(0, None)
    if len(written) > LONGEST:
        raise ValueError(f"Its calls of {NAME} have too many paths, or too long ones.")
    return written


class _Text:
    def __init__(self, text: str, qualifiers: Collection[str]) -> None:
        self._text = text
        self._read = list(tokens(text))
        self._fixed = _CONSTANTS.union(qualifiers)
        self._local = "value"
        while self._local in names(text):
            self._local += "_"

    def between(self, start: int, end: int | None) -> str:
        """The text of the tokens from `start` to before `end`, its calls spelled out."""
        end = len(self._read) if end is None else end
        parts: list[str] = []
        quoted = at = start
        while at < end:
            if self._is_call(at):
                *commas, closing = _separators(self._read, at + 2)
                starts = [at + 2, *(comma + 1 for comma in commas)]
                arguments = map(self._argument, starts, [*commas, closing])
                parts += [self._quote(quoted, at), _first(arguments)]
                quoted = at = closing + 1
            else:
                at += 1
        return "".join(parts) + self._quote(quoted, end)

    def _is_call(self, at: int) -> bool:
        following = self._read[at : at + 2]
        return [token.text for token in following] == [NAME, "("] and not is_field(self._read, at)

    def _argument(self, start: int, end: int) -> str:
        """A list of the value, which is empty for null and for a path that ends on its way."""
        root = self._read[start]
        steps = [] if root.text in self._fixed else _steps(self._read[start:end])
        value = root.text if steps else self.between(start, end)
        present = f".filter({self._local}, {self._local} != null)"
        text = f"[dyn({value})]{present}"
        for step in steps:
            selected = self.between(start + step.start, start + step.end)
            selection = f"[?{selected}]" if step.bracket else f".?{selected}"
            text += f".map({self._local}, {self._local}{selection}.orValue(dyn(null))){present}"
        return text

    def _quote(self, start: int, end: int) -> str:
        """The text as it is, from one token to before another."""
        places = [token.start for token in self._read[start:end]]
        if not places:
            return ""
        until = self._read[end].start if end < len(self._read) else len(self._text)
        return self._text[places[0] : until]


class _Step(NamedTuple):
    """The tokens of what is selected: a field, or what stands in a bracket."""

    start: int
    end: int
    bracket: bool


def _steps(read: list[Token]) -> list[_Step]:
    """The steps of a path after its root; empty when the tokens are anything but a path."""
    steps: list[_Step] = []
    at = 1
    while read[0].kind == "name" and at < len(read) - 1:
        start = at + 2 if read[at + 1].text == "?" else at + 1
        if read[at].text == "." and start < len(read) and read[start].kind == "name":
            steps.append(_Step(start, start + 1, bracket=False))
            at = start + 1
        elif read[at].text == "[":
            *_, end = _separators(read, start)
            steps.append(_Step(start, end, bracket=True))
            at = end + 1
        else:
            return []
    return steps if at == len(read) else []


def _separators(read: list[Token], start: int) -> Iterator[int]:
    """The commas between what stands in a bracket opened before `start`, and its closing one."""
    depth = 0
    for at in range(start, len(read)):
        mark = read[at].text if read[at].kind == "mark" else " "
        if depth == 0 and mark in ",)]}":
            yield at
            if mark != ",":
                return
        depth += (mark in "([{") - (mark in ")]}")
    raise ValueError("A bracket is not closed.")


def _first(values: Iterator[str]) -> str:
    first, *options = (f"{value}[?0]" for value in values)
    return f"dyn({first}{''.join(f'.or({option})' for option in options)}.orValue(dyn(null)))"
