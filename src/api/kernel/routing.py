"""The router by which a noun declares its operations.

    router = Router(tags=["automations"])

    @router.post("/v1/workspaces/{workspaceId}/automations", access=Access(...), status_code=201)
    async def create_automation(request: ApiRequest, body: CreateAutomation) -> Data[Automation]:
        \"\"\"Create an automation.\"\"\"
        return Data(await commands.create_automation(request.work, request.actor, body))

`dispatch` and `pipeline` serve these declarations; FastAPI makes the OpenAPI document from them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Required, TypedDict, TypeVar, Unpack

from api.kernel.operation import (
    Access,
    Endpoint,
    Operation,
    Refuse,
    describe_operation,
    refuse_as_json,
)
from api.kernel.request import (
    ApiRequest,
    Cursor,
    Flag,
    IfUnchanged,
    IfVersion,
    Limit,
    QueryId,
    WaitSeconds,
    WholeLimit,
)
from api.kernel.responses import Data
from models.core.openapi import Deprecated
from runtime.errors import PlatformError

__all__ = [
    "Access",
    "ApiRequest",
    "Cursor",
    "Data",
    "Flag",
    "IfUnchanged",
    "IfVersion",
    "Limit",
    "QueryId",
    "Route",
    "Router",
    "WaitSeconds",
    "WholeLimit",
    "route_of",
]

E = TypeVar("E", bound=Endpoint)

_PARAMETER = re.compile(r"{(\w+)}")
_ROUTES: "dict[Endpoint, Route]" = {}


@dataclass(frozen=True, slots=True)
class Route:
    """An operation at its path: what the pipeline serves, and how it is documented.

    A start declares hundreds of them, so what only the document needs is made with the document.
    """

    path: str
    operation: Operation
    tags: tuple[str, ...]
    errors: tuple[type[PlatformError], ...]
    """Refusals beyond those every operation has."""
    media_type: str
    """The media type of an answer that is not JSON."""
    statuses: tuple[int, ...]
    """The successes beside that of the operation."""
    is_documented: bool
    headers: tuple[str, ...]
    """The headers that the endpoint reads itself."""


class Options(TypedDict, total=False):
    """The options of `Router.add`."""

    access: Required[Access]
    errors: Sequence[type[PlatformError]]
    status_code: int
    batch: bool
    media_type: str
    statuses: Sequence[int]
    documented: bool
    headers: Sequence[str]
    deprecated: Deprecated | None


class Router:
    """The operations of one noun, in the order in which paths are tried."""

    def __init__(
        self,
        *,
        tags: Sequence[str],
        refuse: Refuse = refuse_as_json,
        documented: bool = True,
    ) -> None:
        self.tags = tuple(tags)
        self._refuse = refuse
        self._documented = documented
        self.routes: list[Route] = []

    def get(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a GET; options as for `add`."""
        return self._declaring("GET", path, **options)

    def head(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a HEAD; options as for `add`."""
        return self._declaring("HEAD", path, **options)

    def post(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a POST; options as for `add`."""
        return self._declaring("POST", path, **options)

    def put(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a PUT; options as for `add`."""
        return self._declaring("PUT", path, **options)

    def patch(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a PATCH; options as for `add`."""
        return self._declaring("PATCH", path, **options)

    def delete(self, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        """Declare a DELETE; options as for `add`."""
        return self._declaring("DELETE", path, **options)

    def add(  # noqa: PLR0913  # the parts of a declaration
        self,
        method: str,
        path: str,
        endpoint: Endpoint,
        *,
        access: Access,
        errors: Sequence[type[PlatformError]] = (),
        status_code: int = 200,
        batch: bool = False,
        media_type: str = "application/json",
        statuses: Sequence[int] = (),
        documented: bool = True,
        headers: Sequence[str] = (),
        deprecated: Deprecated | None = None,
    ) -> None:
        """Declare one operation.

        `errors` are refusals beyond those every operation has; `batch` raises the body limit to
        that of batches; `media_type` is that of an endpoint which answers a Response, be it in
        place of its shape, and `statuses` are its successes beside `status_code`, `headers` the
        ones it reads itself. What is no part of the API, such as a page, is not `documented`.
        """
        operation = describe_operation(
            endpoint,
            access=access,
            status=status_code,
            parameters=tuple(_PARAMETER.findall(path)),
            batch=batch,
            method=method,
            refuse=self._refuse,
            deprecated=deprecated,
        )
        route = Route(
            path,
            operation,
            self.tags,
            tuple(errors),
            media_type,
            tuple(statuses),
            documented and self._documented,
            tuple(headers),
        )
        self.routes.append(route)
        _ROUTES.setdefault(endpoint, route)

    def _declaring(self, method: str, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        def declaring(endpoint: E) -> E:
            self.add(method, path, endpoint, **options)
            return endpoint

        return declaring


def route_of(endpoint: Endpoint) -> Route:
    """The first route that was declared for an endpoint."""
    return _ROUTES[endpoint]
