"""An operation as the pipeline runs it, read once from the signature of its endpoint."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from starlette.responses import Response

from api.kernel.access import Access
from api.kernel.parameters import Precondition
from api.kernel.request import ApiRequest
from api.kernel.responses import Data, error_response
from models.core.base import deferred_adapter
from models.core.deprecation import Deprecated, marks_of
from runtime.errors import PlatformError

Endpoint = Callable[..., Awaitable[Any]]
Refuse = Callable[[ApiRequest, PlatformError], Response]
"""Makes the answer that tells a refusal."""


def refuse_as_json(_: ApiRequest, refusal: PlatformError) -> Response:
    """The refusal as clients of the API read it."""
    return error_response(refusal)


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One parameter of the query string; `name` is the endpoint's, the wire's is camelCase."""

    name: str
    adapter: TypeAdapter[Any]
    required: bool
    deprecated: tuple[Deprecated, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryShape:
    """A shape of a GET, whose fields are parameters of the query string."""

    name: str
    shape: type[BaseModel]


@dataclass(frozen=True, slots=True)
class BodyParameter:
    """The endpoint's body; an optional one may be left empty by the client."""

    name: str
    adapter: TypeAdapter[Any]
    optional: bool
    shape: Any
    """The annotation."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Everything about one route that does not change from request to request."""

    endpoint: Endpoint
    method: str
    access: Access
    status: int
    parameters: tuple[str, ...]
    """The names in the path, from left to right."""
    ids: tuple[str, ...]
    """The names among `parameters` that must be UUIDs, sorted."""
    request_name: str | None
    body: BodyParameter | None
    query: Mapping[str, QueryParameter]
    query_shape: QueryShape | None
    preconditions: Mapping[str, Precondition]
    """The endpoint's parameter that is read from `If-Match`, if it has one."""
    result: TypeAdapter[Any] | None
    batch: bool
    reads: bool
    """A GET or HEAD, which by its meaning changes nothing (RFC 9110, 9.2.1)."""
    chooses_workspace: bool
    """Neither path nor resource name a workspace: a session says `workspaceId` in the query."""
    echoes: frozenset[str]
    """The unchangeable keys a PATCH may repeat as they are; its body does not have them."""
    refuse: Refuse
    deprecated: Deprecated | None = None

    @property
    def heavy(self) -> bool:
        """One request may take a processor for long."""
        return self.batch or self.access.heavy

    @property
    def query_fields(self) -> Mapping[str, FieldInfo]:
        """The fields of the shape of its query, if it has one."""
        return {} if self.query_shape is None else self.query_shape.shape.model_fields

    @property
    def name(self) -> str:
        """The name it has in metrics and traces."""
        return self.endpoint.__name__


def describe_operation(
    endpoint: Endpoint,
    *,
    access: Access,
    status: int,
    parameters: tuple[str, ...],
    batch: bool,
    method: str,
    refuse: Refuse = refuse_as_json,
    deprecated: Deprecated | None = None,
) -> Operation:
    """Read an endpoint's signature; raises TypeError for one the kernel cannot call."""
    signature = inspect.signature(endpoint, eval_str=True)
    request_name: str | None = None
    body: BodyParameter | None = None
    query: dict[str, QueryParameter] = {}
    query_shape = _query_shape(method, signature)
    preconditions = _preconditions(signature)
    for name, parameter in spread(signature, query_shape).items():
        if parameter.annotation is ApiRequest:
            request_name = name
        elif _is_body(parameter.annotation):
            body = _body(name, parameter)
        elif name not in preconditions:
            query[_query_name(endpoint, name, parameters)] = _query(name, parameter)
    return Operation(
        endpoint=endpoint,
        method=method,
        access=access,
        status=status,
        parameters=parameters,
        ids=tuple(sorted(name for name in parameters if name.endswith("Id"))),
        request_name=request_name,
        body=body,
        query=query,
        query_shape=query_shape,
        preconditions=preconditions,
        result=_result(endpoint, signature.return_annotation),
        batch=batch,
        reads=method in {"GET", "HEAD"} and not access.writes,
        chooses_workspace=_chooses_workspace(access, parameters),
        echoes=_echoes(method, parameters, signature, body),
        refuse=refuse,
        deprecated=deprecated,
    )


def _query_name(endpoint: Endpoint, name: str, parameters: Collection[str]) -> str:
    if to_camel(name) in parameters:
        raise TypeError(f"{endpoint.__name__}: take {name} from call.ids or path_params.")
    return wire_name(name)


def wire_name(name: str) -> str:
    """The name of a query parameter on the wire; a word of Python ends with `_` in the endpoint."""
    return to_camel(name.rstrip("_"))


def _query_shape(method: str, signature: inspect.Signature) -> QueryShape | None:
    if method != "GET":
        return None
    shapes = (
        QueryShape(name, parameter.annotation)
        for name, parameter in signature.parameters.items()
        if inspect.isclass(parameter.annotation) and issubclass(parameter.annotation, BaseModel)
    )
    return next(shapes, None)


def spread(
    signature: inspect.Signature, shape: QueryShape | None
) -> Mapping[str, inspect.Parameter]:
    """The parameters of an endpoint, with the fields of its query shape in place of that."""
    parameters = dict(signature.parameters)
    if shape is None:
        return parameters
    del parameters[shape.name]
    for name, field in shape.shape.model_fields.items():
        annotation = field.annotation
        for mark in field.metadata:
            annotation = Annotated[annotation, mark]  # type: ignore[assignment]
        default = inspect.Parameter.empty if field.is_required() else field.default
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
    return parameters


def _chooses_workspace(access: Access, parameters: tuple[str, ...]) -> bool:
    return bool(access.scopes) and access.resource is None and "workspaceId" not in parameters


def _is_body(annotation: object) -> bool:
    """True for a shape, which stands in the body, alone or with None for a body that may lack."""
    return any(
        inspect.isclass(one) and issubclass(one, BaseModel)
        for one in (annotation, *get_args(annotation))
    )


def _body(name: str, parameter: inspect.Parameter) -> BodyParameter:
    adapter = deferred_adapter(parameter.annotation)
    fields = getattr(parameter.annotation, "model_fields", None)
    optional = fields is not None and not any(field.is_required() for field in fields.values())
    return BodyParameter(name, adapter, optional, parameter.annotation)


def _query(name: str, parameter: inspect.Parameter) -> QueryParameter:
    required = parameter.default is inspect.Parameter.empty
    adapter = deferred_adapter(parameter.annotation)
    return QueryParameter(name, adapter, required, tuple(marks_of(parameter.annotation)))


def _preconditions(signature: inspect.Signature) -> dict[str, Precondition]:
    return {
        name: mark
        for name, parameter in signature.parameters.items()
        for mark in getattr(parameter.annotation, "__metadata__", ())
        if isinstance(mark, Precondition)
    }


def _echoes(
    method: str,
    parameters: tuple[str, ...],
    signature: inspect.Signature,
    body: BodyParameter | None,
) -> frozenset[str]:
    if method != "PATCH" or body is None or not parameters[-1].endswith("Id"):
        return frozenset()
    (answered,) = get_args(signature.return_annotation)
    known = {field.alias for field in body.shape.model_fields.values()}
    return frozenset({"id", *({"kind"} & answered.model_fields.keys())} - known)


def _result(endpoint: Endpoint, annotation: object) -> TypeAdapter[Any] | None:
    """The serializer of what stands under `data`; None for an endpoint that answers bytes."""
    if inspect.isclass(annotation) and issubclass(annotation, Response):
        return None
    if get_origin(annotation) is not Data:
        raise TypeError(f"{endpoint.__name__} must be annotated to return Data[…] or a Response.")
    return deferred_adapter(get_args(annotation)[0])
