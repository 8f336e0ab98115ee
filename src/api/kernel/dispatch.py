"""From the method and path of a request to its operation: the only router of the API.

Starlette's router compares a path with one route after the other, here with over a hundred. This
one walks down a tree of segments (docs/adr/0025).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from api.kernel.operation import Operation
from api.kernel.pipeline import serve
from api.kernel.routing import Route
from runtime.errors import MethodNotAllowedError, NotFoundError


class UnknownMethodError(MethodNotAllowedError):
    """The path has operations, but none of this method; `Allow` names theirs (RFC 9110, 15.5.6)."""

    def __init__(self, methods: Sequence[str]) -> None:
        super().__init__("This path does not know that method.")
        self.headers = {"Allow": ", ".join(sorted(methods))}  # type: ignore[misc]  # of this path


@dataclass(slots=True)
class _Node:
    """A place in the tree: what may follow it, and the operations of the path that ends here."""

    literals: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    operations: dict[str, Operation] = field(default_factory=dict)


class Dispatch:
    """Serves HTTP requests; every other scope is left to `lifespan`.

    Where a path fits two templates, the segment that is spelled out wins, whatever the method.
    """

    def __init__(self, routes: Sequence[Route], lifespan: ASGIApp) -> None:
        self._lifespan = lifespan
        self._root = _Node()
        for route in routes:
            self._add(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        operation, scope["path_params"] = self.find(scope["method"], scope["path"])
        await serve(operation, scope, receive, send)

    def find(self, method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
        """The operation, and the parameters in the path.

        Raises NotFoundError and UnknownMethodError.
        """
        found = _walk(self._root, path.split("/"), 0)
        if found is None:
            raise NotFoundError("path")
        node, values = found
        operation = node.operations.get(method)
        if operation is None:
            raise UnknownMethodError(tuple(node.operations))
        return operation, dict(zip(operation.parameters, reversed(values), strict=True))

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.path.split("/"):
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        operation = route.operation
        if node.operations.setdefault(operation.method, operation) is not operation:
            raise RuntimeError(f"{operation.method} {route.path} is declared twice.")


def _walk(node: _Node, segments: Sequence[str], at: int) -> tuple[_Node, list[str]] | None:
    """The end of a path, with the values of its parameters from the last to the first."""
    if at == len(segments):
        return (node, []) if node.operations else None
    segment = segments[at]
    literal = node.literals.get(segment)
    found = None if literal is None else _walk(literal, segments, at + 1)
    if found is None and node.parameter is not None and segment:
        found = _walk(node.parameter, segments, at + 1)
        if found is not None:
            found[1].append(segment)
    return found
