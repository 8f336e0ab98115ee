"""An operation: its demands on a caller, its parameters, and the arguments of one request."""

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic import ValidationError as ShapeError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from starlette.responses import Response

from api.kernel.request import ApiRequest, Precondition
from api.kernel.responses import Data, error_response
from models.content.files.rules import Content
from models.core.access.rules import Level, Scope
from models.core.base import JsonObject, deferred_adapter
from models.core.openapi import Deprecated, marks_of
from models.core.problems import MAX_PROBLEMS, place, refusal, sentence
from runtime.errors import Detail, PlatformError, ValidationError
from runtime.postgresql.statements import Prefetch
from runtime.strict_json import StrictJsonError, parse

Credential = Literal["any", "session", "key", "browser", "none"]

_CREDENTIALS = {
    "any": "",
    "session": "a session",
    "key": "an API key",
    "browser": "a session in a browser",
    "none": "no credential",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The demands of one operation (interface.md#order-of-checks).

    Routers declare it beside the operation; `authorization` enforces it, `openapi` documents it.
    """

    credential: Credential = "any"
    scopes: Sequence[Scope] = ()
    """All of them are needed."""
    any_scope: Sequence[Scope] = ()
    """One is enough to reach the command, which knows by the resource's kind which it must be."""
    resource: str | None = None
    """The path parameter `<resource>Id` must identify something visible in the workspace.

    Where none is named, a guest needs the level of a writer on some item.
    """
    prefetch: Callable[[UUID], Prefetch] | None = None
    """Statements that a GET asks about the resource, sent with the look at its caller."""
    in_trash: bool = False
    """The resource may be in the trash."""
    level: Level = Level.NONE
    """The level that the caller needs on the resource."""
    idempotent: bool = False
    """It takes an `Idempotency-Key`."""
    joins: bool = False
    """An idempotent one that has one effect without a key: a repeated call waits for its answer."""
    platform_admin: bool = False
    transaction: bool = True
    """False for what must answer without a database, or takes statements of its own."""
    writes: bool = False
    """A GET that counts its use."""
    snapshot: bool = False
    """It reads rows that must agree with each other."""
    upload: bool = False
    """Its body goes to the object store; the endpoint reads `call.upload`.

    Where the endpoint has a JSON body as well, that is the body of a request. In the form of a page
    the fields before the file are the body.
    """
    bundles: str | None = None
    """The prefix of the keys of uploads that belong to no workspace."""
    raw: bool = False
    """It takes any query and any body, which the endpoint reads in `call.raw_body`."""
    starts_run: bool = False
    """It counts for the rate limit of run starts as well."""
    heavy: bool = False
    """Such requests of one caller take turns, as batches do."""
    page: bool = False
    """It is for clients that accept HTML; its body is a form, and its router tells refusals."""
    cookie: bool = False
    """Scripts of pages may ask by the cookie of the session, beside `Authorization`."""
    unattended: bool = False
    """Pages ask by themselves, which is no use of a session."""
    prefers: bool = False
    """The caller may wait for the end of the work by `Prefer: wait`."""
    hides_body: bool = False
    """The body is a secret: a proposal of it does not show it."""
    safe: bool = False
    """It changes nothing by any method (RFC 9110, 9.2.1): the audit log leaves it out."""

    def lacking(self, grants: frozenset[Scope]) -> str | None:
        """The scopes that a credential with these lacks, in words; None when it may come in."""
        missing = [scope for scope in self.scopes if scope not in grants]
        if missing:
            return " and ".join(missing)
        if self.any_scope and grants.isdisjoint(self.any_scope):
            return " or ".join(self.any_scope)
        return None

    @property
    def parameter(self) -> str | None:
        """The path parameter that names the resource."""
        return None if self.resource is None else f"{to_camel(self.resource)}Id"

    def sentence(self) -> str:
        """The demands in words, for the description of the operation."""
        needs = [_CREDENTIALS[self.credential]]
        needs += ["platform administration"] if self.platform_admin else []
        needs += [f"the scope `{scope.value}`" for scope in self.scopes]
        needs += [" or ".join(f"`{scope.value}`" for scope in self.any_scope)]
        if self.level and self.resource is not None:
            resource = self.resource.replace("_", " ")
            needs += [f"{self.level.name.lower()} access to the {resource}"]
        return f"Needs {' and '.join(filter(None, needs)) or 'any valid credential'}."

    def document(self) -> dict[str, Any]:
        """The `x-access` object of the OpenAPI document."""
        return {
            "credential": self.credential,
            "scopes": [scope.value for scope in self.scopes],
            "itemLevel": self.level.name.lower() if self.level else None,
            "idempotent": self.idempotent,
            "platformAdmin": self.platform_admin,
            "resource": self.resource,
            **({"anyScope": [scope.value for scope in self.any_scope]} if self.any_scope else {}),
        }


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
    def answers_head(self) -> bool:
        """A HEAD gets its status and headers (RFC 9110, 9.3.2).

        A GET that writes has none: previews of links send it, and a use or a run is not for them.
        """
        return self.method == "GET" and self.reads

    @property
    def heavy(self) -> bool:
        """One request may take a processor for long."""
        return self.batch or self.access.heavy

    @property
    def takes_dry_runs(self) -> bool:
        """It writes in the transaction of a caller who is known.

        Strangers are not shown what a request would change, and pages show no changes.
        """
        is_known = self.access.credential != "none" and not self.access.page
        return not self.reads and is_known and self.access.transaction

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


_MAX_PARAMETERS = 50


def query_arguments(operation: Operation, query_string: bytes) -> dict[str, Any]:
    """The parameters of the query; unknown, repeated and malformed ones are refused."""
    # A filter that is left empty in a form is like one that is not there.
    blank = not operation.access.page
    query = _read_query(query_string, keep_blank=blank) if query_string else {}
    shape = operation.query_shape
    takes_any = shape is not None and shape.shape.model_config.get("extra") == "allow"
    further: dict[str, str] = {}
    details: list[Detail] = []
    arguments: dict[str, Any] = {}
    for wire, text in query.items():
        parameter = operation.query.get(wire)
        if parameter is None and wire == "workspaceId" and operation.chooses_workspace:
            continue
        if parameter is None and takes_any:
            further[wire] = text
            continue
        if parameter is None:
            details.append(Detail(wire[:100], "Unknown query parameter."))
            continue
        try:
            arguments[parameter.name] = parameter.adapter.validate_python(text)
        except ShapeError as error:
            details.append(Detail(wire, sentence(error.errors()[0])))
    details.extend(
        Detail(wire, "This query parameter is required.")
        for wire, parameter in operation.query.items()
        if parameter.required and wire not in query
    )
    if details:
        raise refusal(details)
    if shape is not None:
        fields = arguments.keys() & shape.shape.model_fields.keys()
        values = {name: arguments.pop(name) for name in fields}
        # Each field was validated as it was read.
        arguments[shape.name] = shape.shape.model_construct(None, **values, **further)
    return arguments


def _read_query(query_string: bytes, *, keep_blank: bool) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=keep_blank,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise ValidationError("The query string is not valid UTF-8.") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        if name in query:
            raise ValidationError.at(name[:100], "This query parameter can only be sent once.")
        if "\x00" in value or "\x00" in name:
            raise ValidationError.at(name.replace("\x00", "")[:100], "must not contain NUL.")
        query[name] = value
    return query


def body_argument(
    operation: Operation, raw: bytes, upload: Content | None = None
) -> tuple[Any, Any, dict[str, Any]]:
    """The validated body, the JSON it was read from, and what of it `echoes` has to check.

    For an `upload` there is none, and what makes it the same one stands for its JSON. The form of a
    page has fields beside its file.
    """
    if upload is not None and operation.access.page:
        argument, value, echoed = body_argument(operation, raw)
        return argument, [value, upload.summary], echoed
    if upload is not None:
        return None, upload.summary, {}
    body = operation.body
    if body is None:
        return None, _nothing(raw), {}
    if not raw:
        if not body.optional:
            raise ValidationError.at("", "The body is empty. Send a JSON object.")
        raw = b"{}"
    value = _strict(raw)
    if value is None:
        raise ValidationError.at("", "The body is null. Send a JSON object.")
    raw, echoed = take_echoes(operation, raw, value)
    try:
        return body.adapter.validate_json(raw), value, echoed
    except ShapeError as error:
        problems = error.errors(include_url=False, include_input=False)
        details = [
            Detail(
                place(problem, value), sentence(problem, body.shape if at < MAX_PROBLEMS else None)
            )
            for at, problem in enumerate(problems)
        ]
        raise refusal(details) from None


def _nothing(raw: bytes) -> JsonObject:
    """An operation without a body takes none, or an object without keys."""
    if raw and _strict(raw) != {}:
        raise ValidationError.at("", "This operation takes no body.")
    return {}


def _strict(raw: bytes) -> JsonValue:
    try:
        return parse(raw)
    except StrictJsonError as error:
        raise ValidationError.at(error.path, error.message) from None


def take_echoes(operation: Operation, raw: bytes, value: object) -> tuple[bytes, dict[str, Any]]:
    """The body without what it repeats, and that; `value` is the JSON of the body.

    A client that sends back what it read names both `id` and `kind`. Equal to what is stored they
    change nothing, so they are no error; anything else in their place is one.
    """
    if not operation.echoes or not isinstance(value, dict):
        return raw, {}
    echoed = {key: value[key] for key in operation.echoes if key in value}
    if not echoed:
        return raw, {}
    rest = {key: given for key, given in value.items() if key not in echoed}
    return json.dumps(rest).encode(), echoed


def check_echoes(
    echoed: dict[str, Any], operation: Operation, request: ApiRequest, result: object
) -> None:
    """Compare what was repeated with the answer, which shows what is stored.

    Raises ValidationError.
    """
    if not echoed:
        return
    assert isinstance(result, Data)
    answer = {
        "id": request.path_params[operation.parameters[-1]],
        "kind": getattr(result.data, "kind", None),
    }
    for key, value in echoed.items():
        given = value.lower() if key == "id" and isinstance(value, str) else value
        if given != answer[key]:
            raise ValidationError.at(key, "This key is read-only. Leave it out.")
