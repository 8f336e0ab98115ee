"""From the method and path of a request to its operation, or to the paths nearest to it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from typing import NoReturn

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from api.kernel.browsers import is_safe, takes_html
from api.kernel.operation import Access, Operation, describe_operation
from api.kernel.pipeline import serve
from api.kernel.request import ApiRequest
from api.kernel.routing import Route
from runtime.errors import MethodNotAllowedError, NotFoundError
from runtime.ids import parse_id


class UnknownMethodError(MethodNotAllowedError):
    """The path has operations, but none of this method; `Allow` names theirs (RFC 9110, 15.5.6)."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        known = {operation.method for operation in operations}
        known |= {"HEAD" for operation in operations if operation.answers_head}
        methods = ", ".join(sorted(known))
        super().__init__(f"This path does not support the method. Allowed: {methods}.")
        self.headers = {"Allow": methods}  # type: ignore[misc]  # of this path
        self.is_public = all(one.access.credential == "none" for one in operations)
        """Anyone may call the operations of the path."""


@dataclass(slots=True)
class _Node:
    """A place in the tree: what may follow it, and the operations of the path that ends here."""

    literals: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    operations: dict[str, Operation] = field(default_factory=dict)

    def serving(self, method: str) -> Operation | None:
        """The operation of a method; a HEAD without one of its own is answered as the GET."""
        operation = self.operations.get(method)
        if operation is None and method == "HEAD":
            read = self.operations.get("GET")
            return read if read is not None and read.answers_head else None
        return operation


class Dispatch:
    """Serves HTTP requests; `sockets` serves WebSockets, every other scope is left to `lifespan`.

    Where a path fits two templates that know the method, the segment that is spelled out wins. What
    is not served is refused by the pipeline, so that a caller is known before it is told so. Ids in
    the path are in canonical form from here on: whatever is found, locked or kept by them is one.

    Starlette's router compares a path with one route after the other, here with several hundred.
    This one walks down a tree of segments (docs/adr/0025).
    """

    def __init__(self, routes: Sequence[Route], lifespan: ASGIApp, sockets: ASGIApp) -> None:
        self._others = {"lifespan": lifespan, "websocket": sockets}
        self._root = _Node()
        self._pages = _Node()
        self._neighbours = Neighbours(routes)
        pages = (one.operation for one in routes if one.operation.access.credential == "browser")
        self._refuse_page = next((page.refuse for page in pages), None)
        for route in routes:
            self._add(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._others[scope["type"]](scope, receive, send)
            return
        try:
            operation, values = self._page_for(scope) or self.find(scope["method"], scope["path"])
        except (NotFoundError, UnknownMethodError) as refusal:
            operation, values = self._refusing(refusal, scope), {}
        for name in operation.ids:
            value = values[name]
            canonical = value.lower()
            if canonical != value and parse_id(value) is not None:
                values[name] = canonical
                scope["path"] = scope["path"].replace(value, canonical)
        scope["path_params"] = values
        await serve(operation, scope, receive, send)

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        """The operation, and the parameters in the path.

        Raises NotFoundError and UnknownMethodError.
        """
        segments = path.split("/")
        found = _found(self._root, segments, method)
        if found is None:
            raise _unserved(self._root, segments)
        operation, values = found
        if any(parse_id(values[name]) is None for name in operation.ids):
            # A word in the place of an id: it may be a path of its own, with other methods.
            refusal = _unserved(self._root, segments)
            if isinstance(refusal, UnknownMethodError):
                raise refusal
        if "\x00" in path and _names_nothing(operation, values):
            raise NotFoundError("path")
        return operation, values

    def find_page(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """The page at a path, and the parameters in the path."""
        return _found(self._pages, path.split("/"), method)

    def _page_for(self, scope: Scope) -> tuple[Operation, dict[str, str]] | None:
        """The page of a request that accepts one: to all others its path is like any other."""
        if not takes_html(scope):
            return None
        found = self._well_named_page(scope["method"], scope["path"])
        if found is not None and not found[0].reads:
            scope["page_of_form"] = self._page_of_form(scope["path"])
        return found

    def _well_named_page(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        found = self.find_page(method, path)
        if found is None or any(parse_id(found[1][name]) is None for name in found[0].ids):
            return None
        return found

    def _page_of_form(self, path: str) -> str | None:
        """The page at the path of a form, or else the nearest above it."""
        while path.count("/") > 1:
            found = self._well_named_page("GET", path)
            if found is not None and found[0].access.credential == "browser":
                return path
            path = path.rpartition("/")[0]
        return None

    def _refusing(self, refusal: NotFoundError | UnknownMethodError, scope: Scope) -> Operation:
        """An operation that refuses once its caller is known; a public path has none to know."""

        async def refuse(_: ApiRequest) -> NoReturn:
            if isinstance(refusal, NotFoundError):
                raise UnknownPathError(self._neighbours.of(scope["method"], scope["path"]))
            other = self._neighbours.taking(scope["method"], scope["path"])
            if other is not None:
                refusal.message += f" Nearest with {scope['method']}: {other}."
            raise refusal

        is_public = isinstance(refusal, UnknownMethodError) and refusal.is_public
        if self._refuse_page is not None and not is_public and _may_be_a_page(scope):
            return replace(_PAGE_REFUSAL, endpoint=_no_page, refuse=self._refuse_page)
        return replace(_PUBLIC_REFUSAL if is_public else _REFUSAL, endpoint=refuse)

    def _add(self, route: Route) -> None:
        node = self._pages if route.operation.access.page else self._root
        for segment in route.path.split("/"):
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        operation = route.operation
        if node.operations.setdefault(operation.method, operation) is not operation:
            raise RuntimeError(f"{operation.method} {route.path} is declared twice.")


def _found(
    root: _Node, segments: Sequence[str], method: str
) -> tuple[Operation, dict[str, str]] | None:
    """The operation of a path, and the parameters in it."""
    found = _walk(root, segments, 0, method)
    if found is None:
        return None
    operation, given = found
    return operation, dict(zip(operation.parameters, reversed(given), strict=True))


def _walk(
    node: _Node, segments: Sequence[str], at: int, method: str
) -> tuple[Operation, list[str]] | None:
    """The operation of a path, with the values of its parameters from the last to the first."""
    if at == len(segments):
        operation = node.serving(method)
        return None if operation is None else (operation, [])
    segment = segments[at]
    literal = node.literals.get(segment)
    found = None if literal is None else _walk(literal, segments, at + 1, method)
    if found is None and node.parameter is not None and segment:
        found = _walk(node.parameter, segments, at + 1, method)
        if found is not None:
            found[1].append(segment)
    return found


def _may_be_a_page(scope: Scope) -> bool:
    """True for an address that a person opens; one of an operation is told of in JSON."""
    is_address = is_safe(scope) and not scope["path"].startswith("/v1/")
    return is_address and takes_html(scope)


async def _no_page(_: ApiRequest) -> NoReturn:
    raise NotFoundError("page")


def _names_nothing(operation: Operation, values: Mapping[str, str]) -> bool:
    """True when a word has a NUL: PostgreSQL has no such text. A public path has its own words."""
    words = [value for name, value in values.items() if name not in operation.ids]
    return operation.access.credential != "none" and any("\x00" in word for word in words)


def _unserved(root: _Node, segments: Sequence[str]) -> NotFoundError | UnknownMethodError:
    """The reason a path is not served: a word in the place of an id is no path that has methods."""
    operations = [
        operation
        for node, values in _ends(root, segments, ())
        for operation in node.operations.values()
        if all(
            parse_id(value) is not None
            for name, value in zip(operation.parameters, values, strict=True)
            if name in operation.ids
        )
    ]
    return UnknownMethodError(operations) if operations else NotFoundError("path")


def _ends(
    node: _Node, segments: Sequence[str], values: tuple[str, ...]
) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    """Every place where a path may end, with the values of its parameters."""
    if not segments:
        yield node, values
        return
    segment, rest = segments[0], segments[1:]
    if (literal := node.literals.get(segment)) is not None:
        yield from _ends(literal, rest, values)
    if node.parameter is not None and segment:
        yield from _ends(node.parameter, rest, (*values, segment))


async def _nothing(request: ApiRequest) -> Response:
    raise NotImplementedError


_REFUSAL = describe_operation(
    _nothing,
    access=Access(raw=True),
    status=404,
    parameters=(),
    batch=False,
    method="GET",
)
_PUBLIC_REFUSAL = replace(_REFUSAL, access=Access(raw=True, credential="none", transaction=False))
_PAGE_REFUSAL = replace(_REFUSAL, access=Access(raw=True, credential="browser", page=True))

MOST = 3
_MOST_SEGMENTS = 16
_MOST_WORDS = 2
_FAR = 5.0
"""Cost from which the last word of a path says less about it than the word before."""
_LONGEST_WORD = 64
_ALIKE = 0.75
"""Similarity of two words, from 0 to 1, from which one may be meant by the other."""

_OTHER_ENDING, _OTHER_WORD, _MORE_OR_LESS = 2.0, 1.5, 1.0
_LONG_PART = 6
"""Letters of a word from which it may be meant by a part that it only resembles."""
_SIMILAR, _SIMILAR_PART, _NO_ID = 0.25, 0.5, 0.5
"""Costs of making one path of another, segment by segment."""


class UnknownPathError(NotFoundError):
    """No operation has the path; the message names the paths that are nearest to it."""

    def __init__(self, near: Sequence[str]) -> None:
        super().__init__("path")
        named = f"Nearest: {', '.join(near)}." if near else "/docs/operations lists all paths."
        self.message = f"This path does not exist. {named}"


@dataclass(slots=True)
class _Template:
    path: str
    segments: list[str]
    methods: set[str] = field(default_factory=set)

    @override
    def __str__(self) -> str:
        return f"{self.path} ({', '.join(sorted(self.methods))})"


class Neighbours:
    """Compares a path with the templates that have a word of it; what it costs is bounded."""

    def __init__(self, routes: Sequence[Route]) -> None:
        templates: dict[str, _Template] = {}
        for route in routes:
            if route.is_documented:
                segments = route.path.split("/")[1:]
                one = templates.setdefault(route.path, _Template(route.path, segments))
                one.methods.add(route.operation.method)
        self._templates = list(templates.values())
        self._words = {word for one in self._templates for word in _words(one.segments)}
        self._parts = _by_part(self._words)

    def of(self, method: str, path: str) -> list[str]:
        """At most three paths with their methods, the nearest first; none when nothing is alike."""
        segments = [segment for segment in path.split("/") if segment]
        if len(segments) > _MOST_SEGMENTS:
            return []
        found = (alike for segment in reversed(segments) if (alike := self._alike(segment)))
        near: list[tuple[float, bool, _Template]] = []
        for alike in islice(found, _MOST_WORDS):
            near = self._nearest(method, segments, alike)
            if near[0][0] < _FAR:
                break
        return [str(template) for _, _, template in near[:MOST]]

    def taking(self, method: str, path: str) -> str | None:
        """The path that has the method and is hardly another one; None where there is none."""
        segments = [segment for segment in path.split("/") if segment]
        if not segments or len(segments) > _MOST_SEGMENTS or len(segments[-1]) > _LONGEST_WORD:
            return None
        word = segments[-1]
        close = get_close_matches(word, self._words, MOST, _ALIKE)
        alike = {(word, other): _SIMILAR for other in close} | {(word, word): 0}
        near = self._nearest(method, segments, alike)
        costs = (
            template.path for cost, lacks, template in near if cost < _OTHER_WORD and not lacks
        )
        return next(costs, None)

    def _nearest(
        self, method: str, segments: Sequence[str], alike: Mapping[tuple[str, str], float]
    ) -> list[tuple[float, bool, _Template]]:
        """The templates that have one of the words, each behind its cost."""
        meant = {other for _, other in alike}
        costs = (
            (_cost(segments, one.segments, alike), method not in one.methods, one)
            for one in self._templates
            if not meant.isdisjoint(one.segments)
        )
        return sorted(costs, key=lambda each: each[:2])

    def _alike(self, word: str) -> dict[tuple[str, str], float]:
        """The word and each word of templates that it may stand for, with what the change costs."""
        if parse_id(word) is not None or len(word) > _LONGEST_WORD:
            return {}
        if word in self._words:
            return {(word, word): 0}
        lowered = word.lower()
        # A short word is like a part of many: `nope` is hardly the `node` of `run-from-node`.
        known = self._parts if len(lowered) >= _LONG_PART else [lowered]
        close = get_close_matches(lowered, known, MOST, _ALIKE)
        parts = [part for part in close if part in self._parts]
        found = {(word, whole): _SIMILAR_PART for part in parts for whole in self._parts[part]}
        close = get_close_matches(lowered, self._words, MOST, _ALIKE)
        return found | {(word, whole): _SIMILAR for whole in close}


def _by_part(words: Iterable[str]) -> dict[str, list[str]]:
    """The words by what they consist of: `import-spreadsheet` has two parts."""
    found: dict[str, list[str]] = {}
    for word in sorted(words):
        for part in re.split(r"\W", word):
            found.setdefault(part, []).append(word)
    return found


def _words(segments: Sequence[str]) -> Iterator[str]:
    return (one for one in segments if not one.startswith("{") and one != "v1")


def _cost(
    segments: Sequence[str], template: Sequence[str], alike: Mapping[tuple[str, str], float]
) -> float:
    """The least it costs to make the template of the path: the edit distance of their segments."""
    costs = [at * _MORE_OR_LESS for at in range(len(template) + 1)]
    for row, segment in enumerate(segments, 1):
        diagonal, costs[0] = costs[0], row * _MORE_OR_LESS
        for at, other in enumerate(template, 1):
            change = diagonal + _difference(segment, other, alike)
            diagonal = costs[at]
            costs[at] = min(change, diagonal + _MORE_OR_LESS, costs[at - 1] + _MORE_OR_LESS)
    ends_alike = _difference(segments[-1], template[-1], alike) < _OTHER_WORD
    return costs[-1] + (0 if ends_alike else _OTHER_ENDING)


def _difference(segment: str, other: str, alike: Mapping[tuple[str, str], float]) -> float:
    if segment == other:
        return 0
    if other.startswith("{"):
        return 0 if parse_id(segment) is not None else _NO_ID
    return alike.get((segment, other), _OTHER_WORD)
