"""From the method and path of a request to its operation: the only router of the API.

Starlette's router compares a path with one route after the other, here with over a hundred. This
one walks down a tree of segments (docs/adr/0025).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.kernel.access import Access
from api.kernel.browsers import takes_html
from api.kernel.neighbours import Neighbours, UnknownPathError
from api.kernel.operation import Operation, describe_operation
from api.kernel.pipeline import serve
from api.kernel.request import ApiRequest
from api.kernel.routing import Route
from runtime.errors import MethodNotAllowedError, NotFoundError
from runtime.ids import parse_id


class UnknownMethodError(MethodNotAllowedError):
    """The path has operations, but none of this method; `Allow` names theirs (RFC 9110, 15.5.6)."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        methods = ", ".join(sorted({operation.method for operation in operations}))
        super().__init__(f"This path does not know that method; it knows: {methods}.")
        self.headers = {"Allow": methods}  # type: ignore[misc]  # of this path
        self.is_public = all(one.access.credential == "none" for one in operations)
        """Anybody may call the operations of the path."""


@dataclass(slots=True)
class _Node:
    """A place in the tree: what may follow it, and the operations of the path that ends here."""

    literals: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    operations: dict[str, Operation] = field(default_factory=dict)


class Dispatch:
    """Serves HTTP requests; `sockets` serves WebSockets, every other scope is left to `lifespan`.

    Where a path fits two templates that know the method, the segment that is spelled out wins. What
    is not served is refused by the pipeline, so that a caller is known before it is told so. Ids in
    the path are in canonical form from here on: whatever is found, locked or kept by them is one.
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
        operation = node.operations.get(method)
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
    is_address = scope["method"] == "GET" and not scope["path"].startswith("/v1/")
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
