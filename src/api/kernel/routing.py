"""The router by which a resource declares its operations.

    router = Router(tags=["automations"])

    @router.post("/v1/workspaces/{workspaceId}/automations", access=Access(...), status_code=201)
    async def create_automation(request: ApiRequest, body: CreateAutomation) -> Data[Automation]:
        \"\"\"Create an automation.\"\"\"
        return Data(await commands.create_automation(request.work, request.actor, body))

What only passes on what the request has is declared by `calls`, and has no body (`_bound`):

    @router.get(AUTOMATION, access=Access(...), calls=queries.get_automation)
    async def get_automation() -> None:
        \"\"\"Get an automation.\"\"\"

`dispatch` and `pipeline` serve these declarations; FastAPI makes the OpenAPI document from them.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter
from operator import attrgetter
from typing import Required, TypedDict, TypeVar, Unpack, cast, get_args, get_origin

from pydantic.alias_generators import to_camel

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
from models.core.base import Id
from models.core.openapi import Deprecated
from models.core.pagination import DEFAULT_LIMIT, Page, PageRequest
from models.core.references.rules import SubjectKind
from models.workspace.impact.deletions import InUseError, unless_in_use
from models.workspace.impact.queries import ImpactQuestion
from runtime.errors import PlatformError

__all__ = [
    "FORCE",
    "Access",
    "ApiRequest",
    "Cursor",
    "Data",
    "Deletes",
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
FORCE = "force"
"""The parameter by which a deletion breaks what uses the thing."""


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


@dataclass(frozen=True, slots=True)
class Deletes:
    """The kind of the thing that an operation deletes; the last parameter of its path names it.

    An item is the one that the resource of the operation has.
    """

    kind: SubjectKind
    forced: bool = False
    """The value of `force` where the client sends none."""

    def sentence(self) -> str:
        """The rule in words, for the description of the operation."""
        unless = "With `force=false` it" if self.forced else "Without `force=true` it"
        return f"{unless} is refused with `in_use` while it breaks a place that names the thing."

    def question(self, request: ApiRequest, parameter: str) -> ImpactQuestion:
        """The question for the impact of the deletion."""
        if self.kind is SubjectKind.SECRET:
            return ImpactQuestion.model_construct(
                kind=self.kind, key=request.path_params[parameter]
            )
        id_ = request.ids[parameter]
        if self.kind is SubjectKind.ITEM and request.placement is not None:
            id_ = request.placement.item_id or id_
        return ImpactQuestion.model_construct(kind=self.kind, id=id_)


class Options(TypedDict, total=False):
    """The options of `Router.add`.

    `errors` are refusals besides the ones of every operation. `batch` allows the body of a batch.
    `media_type` is for an endpoint that answers a Response. `statuses` are successes besides
    `status_code`, and `headers` names of headers that the endpoint reads. Pages are not documented.
    `calls` is the command or query that the operation passes on to. `deletes` is the thing that a
    DELETE deletes, where others may name it.
    """

    access: Required[Access]
    errors: Sequence[type[PlatformError]]
    status_code: int
    batch: bool
    media_type: str
    statuses: Sequence[int]
    documented: bool
    headers: Sequence[str]
    deprecated: Deprecated | None
    calls: Endpoint | None
    deletes: Deletes | None


class Router:
    """The operations of one resource, in the order in which paths are tried."""

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
        calls: Endpoint | None = None,
        deletes: Deletes | None = None,
    ) -> None:
        """Declare one operation; `Options` says what its parts mean."""
        in_path = tuple(_PARAMETER.findall(path))
        called = endpoint if calls is None else _bound(endpoint, calls, in_path)
        operation = describe_operation(
            called if deletes is None else _guarded(called, deletes, in_path[-1]),
            access=access,
            status=status_code,
            parameters=in_path,
            batch=batch,
            method=method,
            refuse=self._refuse,
            deprecated=deprecated,
        )
        route = Route(
            path,
            operation,
            self.tags,
            (*errors, *(() if deletes is None else (InUseError,))),
            media_type,
            tuple(statuses),
            documented and self._documented,
            tuple(headers),
        )
        self.routes.append(route)
        _ROUTES.setdefault(endpoint, route)
        _ROUTES.setdefault(operation.endpoint, route)

    def _declaring(self, method: str, path: str, **options: Unpack[Options]) -> Callable[[E], E]:
        def declaring(endpoint: E) -> E:
            self.add(method, path, endpoint, **options)
            return endpoint

        return declaring


def route_of(endpoint: Endpoint) -> Route:
    """The first route that was declared for an endpoint."""
    return _ROUTES[endpoint]


def _guarded(endpoint: Endpoint, deletes: Deletes, parameter: str) -> Endpoint:
    """The endpoint with `force`: without it a deletion that breaks something is refused."""
    signature = inspect.signature(endpoint, eval_str=True)

    async def guarded_endpoint(
        request: ApiRequest, *, force: bool = deletes.forced, **arguments: object
    ) -> object:
        if force:
            return await endpoint(request=request, **arguments)
        # A proposal is tried with more scopes than its author has to read with.
        scopes = request.principal.usable_scopes(request.actor.role)
        reader = replace(request.actor, scopes=scopes)
        question = deletes.question(request, parameter)
        async with unless_in_use(request.work, reader, question):
            return await endpoint(request=request, **arguments)

    guarded_endpoint.__name__, guarded_endpoint.__module__ = endpoint.__name__, endpoint.__module__
    guarded_endpoint.__doc__ = f"{inspect.cleandoc(endpoint.__doc__ or '')}\n\n{deletes.sentence()}"
    force = Parameter(FORCE, Parameter.KEYWORD_ONLY, default=deletes.forced, annotation=Flag)
    guarded_endpoint.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), force]
    )
    return guarded_endpoint


_Source = Callable[[ApiRequest], object]

_OF_REQUEST: Mapping[str, _Source] = {
    "work": attrgetter("work"),
    "actor": attrgetter("actor"),
    "principal": attrgetter("principal"),
    "roles": attrgetter("roles"),
    "placement": attrgetter("placement"),
    "keys": attrgetter("services.keys"),
    "workspace_id": attrgetter("actor.workspace_id"),
}
"""Values of a request by the names that commands and queries have for them."""

_OF_WIRE: Mapping[object, object] = {bool: Flag, Id | None: QueryId | None}
"""The parameters of a query string by the types that they have once they are read."""

_PRECONDITIONS: Mapping[str, object] = {
    "expected_updated_at": IfUnchanged,
    "expected_version": IfVersion,
}


def _bound(declared: Endpoint, calls: Endpoint, in_path: Collection[str]) -> Endpoint:
    """The endpoint of a declaration: it passes to `calls` what that takes, by name.

    That is what `_OF_REQUEST` has, and the parameters of the path, also by the last words of their
    name: `alertRuleId` as `rule_id`. Another `Id` is the one of what the request makes. A
    `PageRequest` is read from limit and cursor. All that is left is the body, or of the query
    string, where the declaration may say it in its own signature; but what has a default and is
    given by keyword alone is for other callers.
    """
    signature = inspect.signature(calls, eval_str=True)
    arguments = signature.parameters
    sources = {n: source for n, value in arguments.items() if (source := _source(value, in_path))}
    page = next((n for n, value in arguments.items() if value.annotation is PageRequest), None)
    parameters = dict(inspect.signature(declared, eval_str=True).parameters)
    if page is not None:
        parameters.setdefault("limit", _parameter("limit", Limit, DEFAULT_LIMIT))
        parameters.setdefault("cursor", _parameter("cursor", Cursor, None))
    for name, value in arguments.items():
        if name not in sources and name != page and not _is_for_others(value):
            parameters.setdefault(name, _of_wire(value))

    async def endpoint(request: ApiRequest, **given: object) -> object:
        values = {name: given.get(name, value.default) for name, value in parameters.items()}
        if page is not None:
            limit = cast("int", values.pop("limit"))
            cursor = cast("str | None", values.pop("cursor"))
            # A cursor is that of one list: of this operation, at this path, with these filters.
            place = *request.path_params.values(), *values.values()
            values[page] = request.page(declared.__name__, limit, cursor, *place)
        values |= {name: source(request) for name, source in sources.items()}
        answer = await calls(**values)
        return request.array(answer) if isinstance(answer, Page) else Data(answer)

    endpoint.__name__, endpoint.__doc__ = declared.__name__, declared.__doc__
    endpoint.__module__ = declared.__module__
    request = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=ApiRequest)
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [request, *(value.replace(kind=Parameter.KEYWORD_ONLY) for value in parameters.values())],
        return_annotation=_answer(signature.return_annotation),
    )
    return endpoint


def _source(parameter: Parameter, in_path: Collection[str]) -> _Source | None:
    """The value of an argument in a request; None for one that the client sends."""
    if parameter.name in _OF_REQUEST:
        return _OF_REQUEST[parameter.name]
    name = to_camel(parameter.name)
    of_path = [one for one in in_path if one == name or one.endswith(name[0].upper() + name[1:])]
    if len(of_path) > 1:
        raise TypeError(f"{parameter.name} may be any of {', '.join(of_path)}.")
    if of_path:
        return partial(_path_value, of_path[0])
    return attrgetter("new_id") if parameter.annotation is Id else None


def _is_for_others(parameter: Parameter) -> bool:
    if parameter.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
        return True
    return parameter.kind is Parameter.KEYWORD_ONLY and parameter.default is not Parameter.empty


def _path_value(key: str, request: ApiRequest) -> object:
    return request.ids[key] if key in request.ids else request.path_params[key]


def _of_wire(parameter: Parameter) -> Parameter:
    """A parameter as clients send it; one that may be None may be left out."""
    annotation = parameter.annotation
    if parameter.name in _PRECONDITIONS:
        annotation = _PRECONDITIONS[parameter.name]
    default = parameter.default
    if default is Parameter.empty and type(None) in get_args(annotation):
        default = None
    return _parameter(parameter.name, _OF_WIRE.get(annotation, annotation), default)


def _parameter(name: str, annotation: object, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _answer(annotation: object) -> object:
    """The answer of an endpoint: of a page, its items as an array."""
    if get_origin(annotation) is Page:
        annotation = list.__class_getitem__(get_args(annotation)[0])
    return Data[annotation]  # type: ignore[valid-type]
