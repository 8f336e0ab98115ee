"""From a request to its operation, without a look at those of every other noun."""

from collections.abc import Sequence

from starlette.routing import Match, Router
from starlette.types import Receive, Scope, Send

from api.kernel.routing import Route


class Dispatch:
    """The operations by depth and noun of their paths.

    Whatever is no plain match is left to the router: other methods, unknown paths, the lifespan.
    """

    def __init__(self, router: Router, operations: Sequence[Route]) -> None:
        self.routes = router.routes
        self._router = router
        self._shelves: dict[tuple[int, str], list[Route]] = {}
        for route in operations:
            self._shelves.setdefault(_shelf(route.path), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for route in self._shelves.get(_shelf(scope["path"]), ()):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found)
                    await route.handle(scope, receive, send)
                    return
        await self._router(scope, receive, send)


def _shelf(path: str) -> tuple[int, str]:
    """How many segments a path has and its noun: `records` of `/v1/records/{recordId}`."""
    segments = path.split("/", 3)[1:]
    noun = segments[1:2] if segments[:1] == ["v1"] else segments[:1]
    return path.count("/"), "".join(noun)
