"""Reading and rewriting CEL text without evaluating it: tokens, paths, calls of `coalesce`."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple


class Token(NamedTuple):
    kind: str
    text: str
    start: int


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<string>
        (?:[bB]?[rR]|[rR][bB])(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
      | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
               |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    )
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*|`[^`\n]*`)
  | (?P<number>(?:[0-9][0-9A-Za-z]*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?)
  | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of CEL text without spaces and comments, ending at a quote that never closes."""
    for match in _TOKEN.finditer(text, start):
        kind = match.lastgroup or "mark"
        if kind == "space":
            continue
        yield Token(kind, match.group(), match.start())
        if kind == "mark" and match.group() in "\"'`":
            return


def segment_end(text: str, start: int) -> int | None:
    """The position of the `}}` that closes a template segment begun at `start`, or None.

    Braces of map literals and braces inside strings close nothing.
    """
    depth = 0
    for token in tokens(text, start):
        if token.kind != "mark":
            continue
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            if depth == 0:
                return token.start if text.startswith("}}", token.start) else None
            depth -= 1
    return None


def names(text: str) -> frozenset[str]:
    """Every identifier in the text, fields and functions included."""
    return frozenset(token.text.strip("`") for token in tokens(text) if token.kind == "name")


def free_names(text: str) -> frozenset[str]:
    """The identifiers that stand by themselves, which are no fields of something."""
    sequence = list(tokens(text))
    return frozenset(
        token.text.strip("`")
        for place, token in enumerate(sequence)
        if token.kind == "name" and not is_field(sequence, place)
    )


def selections(text: str, variable: str) -> frozenset[str] | None:
    """The keys of a variable an expression can read, or None when that depends on the data.

    Errs on the side of more: a local variable of the same name counts as the variable.
    """
    keys = paths(text, variable)
    return None if () in keys else frozenset(path[0] for path in keys)


def paths(text: str, variable: str) -> frozenset[tuple[str, ...]]:
    """The keys under keys of a variable that an expression can read, as far as the text tells.

    An empty path is all of the variable. Errs as `selections` does.
    """
    sequence = list(tokens(text))
    return frozenset(
        tuple(_path(sequence, index + 1))
        for index, token in enumerate(sequence)
        if token.kind == "name" and token.text == variable and not is_field(sequence, index)
    )


def dotted(text: str, variable: str, spell: Callable[[str], str]) -> str:
    """The text with `variable["key"]` written `variable.key`, every character at its place.

    Only for keys that are identifiers; `spell` says how one is written, no longer than it is.
    """
    parts: list[str] = []
    start = 0
    read = list(tokens(text))
    for index, token in enumerate(read):
        bracket, key, end = (read[index + 1 : index + 4] + [None] * 3)[:3]
        if token.text != variable or is_field(read, index) or bracket is None or end is None:
            continue
        name = _literal(key.text) if key is not None and key.kind == "string" else None
        if bracket.text != "[" or end.text != "]" or name is None or not name.isidentifier():
            continue
        parts.append(
            text[start : bracket.start] + f".{spell(name)}".ljust(end.start + 1 - bracket.start)
        )
        start = end.start + 1
    return "".join(parts) + text[start:]


def with_doubles(text: str) -> str:
    """The text with every whole number in it written as a double: `2` as `2.0`."""
    parts: list[str] = []
    start = 0
    for token in tokens(text):
        if token.kind == "number" and token.text.isdecimal():
            end = token.start + len(token.text)
            parts.append(f"{text[start:end]}.0")
            start = end
    return "".join(parts) + text[start:]


def is_field(read: list[Token], index: int) -> bool:
    """True when the name at `index` is a field of something: `x.name`, not `.name`."""
    at = index - 1
    if at >= 0 and read[at].text == "?":
        at -= 1
    if at < 1 or read[at].text != ".":
        return False
    before = read[at - 1]
    return before.text in (")", "]", "}") if before.kind == "mark" else before.text != "in"


def _path(read: list[Token], at: int) -> Iterator[str]:
    """The keys selected one under the other from a place on."""
    while (selected := _selected(read[at : at + 5])) is not None:
        key, length = selected
        yield key
        at += length


def _selected(after: list[Token]) -> tuple[str, int] | None:
    """The key in `.key`, `.?key`, `["key"]` or `[?"key"]`, and the number of its tokens; None for
    all else or a method call.
    """
    texts = [token.text for token in after]
    at = 2 if texts[1:2] == ["?"] else 1
    if texts[:1] == ["."]:
        called = texts[at + 1 : at + 2] == ["("]
        if len(after) <= at or after[at].kind != "name" or called:
            return None
        return texts[at].strip("`"), at + 1
    if texts[:1] == ["["]:
        if texts[at + 1 : at + 2] != ["]"] or after[at].kind != "string":
            return None
        key = _literal(texts[at])
        return None if key is None else (key, at + 2)
    return None


def _literal(text: str) -> str | None:
    """The text of a simple string literal; None when it has a prefix, escapes or three quotes."""
    inner = text[1:-1]
    if text[0] not in "\"'" or "\\" in inner or text[0] in inner:
        return None
    return inner


COALESCE = "coalesce"

MOST_COALESCED = 16

MOST_COALESCE_CALLS = 20
"""In one expression: each is ten to twenty times as long in CEL's own functions."""

LONGEST_WITHOUT_COALESCE = 20_000
"""Characters of a text spelled out. Compiling this number takes a quarter of a second."""

_CONSTANTS = frozenset({"true", "false", "null"})


def without_coalesce(text: str, qualifiers: Collection[str] = ()) -> str:
    """CEL text that compiles, with every call of `coalesce` written in CEL's own functions.

    Raises ValueError for too many calls or arguments and for a bracket without its other half.
    `qualifiers` are the first names of variables like `record.price`, which are there always.

    `coalesce(a, b, …)` is the first that is there and not null, as in SQL
    (interface.md#expressions). CEL has no such function and the library runs none of ours. A path
    into the data that ends on its way (`trigger.customer.name` without a customer) is null here,
    where it would be an error elsewhere. What follows the argument that counts is not evaluated.
    """
    if sum(token.text == COALESCE for token in tokens(text)) > MOST_COALESCE_CALLS:
        raise ValueError(f"{COALESCE} is called more than {MOST_COALESCE_CALLS} times.")
    written = _CoalesceText(text, qualifiers).between(0, None)
    if len(written) > LONGEST_WITHOUT_COALESCE:
        raise ValueError(f"The calls of {COALESCE} have too many or too long paths.")
    return written


class _CoalesceText:
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
                parts += [self._quote(quoted, at), _first_of(arguments)]
                quoted = at = closing + 1
            else:
                at += 1
        return "".join(parts) + self._quote(quoted, end)

    def _is_call(self, at: int) -> bool:
        following = self._read[at : at + 2]
        return [token.text for token in following] == [COALESCE, "("] and not is_field(
            self._read, at
        )

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


def _first_of(values: Iterator[str]) -> str:
    first, *options = (f"{value}[?0]" for value in values)
    return f"dyn({first}{''.join(f'.or({option})' for option in options)}.orValue(dyn(null)))"
