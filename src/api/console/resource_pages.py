"""Pages of a plain resource, declared from the operations of the API that do the same.

    Resource(noun="segment", at=f"{SETTINGS}/segments", listing=list_audience_segments, …).declare(
        router
    )

The list, the forms and the deletion ask for what their operations ask for, and call these. A form
is laid out from the body of its operation. What is not plain has its own pages; its buttons are
declared by `act`.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from api.console.controls import Control, Offers, Words, laid_out, texts_of, values_of
from api.console.entered import Entered, Fields, read_as, redisplays
from api.console.forms import done, paged
from api.console.rendering import Shell, page, see_other, shell_of
from api.console.words import plain, queried, sentence_case
from api.console.workspace.settings import Notice, frame_of
from api.kernel.awaited_work import Deferred
from api.kernel.operation import Access, Endpoint
from api.kernel.routing import FORCE, ApiRequest, Cursor, Router, route_of
from models.core.base import JsonObject
from models.core.values import read_moment
from runtime.errors import ConflictError, NotFoundError

_PAGE = 50
BY_FORM = "_by_form"
"""The end of the name of a form that does what the operation before it does."""
Stored = Any
"""A resource as its operation answers it."""
Trail = Sequence[tuple[str, str]]
"""The pages above one, each with its title and path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a list."""

    name: str
    """The attribute that has its value."""
    label: str
    signs: Mapping[Any, str] = field(default_factory=dict)
    """The sign by which each state is shown."""

    def value(self, row: Stored) -> object:
        """The value; a word for a choice and for a list."""
        value = attrgetter(self.name)(row)
        if isinstance(value, bool):
            return "Yes" if value else ""
        if isinstance(value, Enum):
            return plain(value.value)
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def sign(self, row: Stored) -> str:
        return self.signs.get(attrgetter(self.name)(row), "")


async def _no_offers(_: ApiRequest) -> Offers:
    return {}


async def _no_trail(_: ApiRequest, __: Shell) -> Trail:
    return ()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource with pages that show, make, change and delete it, as far as the API does."""

    noun: str
    at: str
    """The path of the list."""
    listing: Endpoint
    creating: Endpoint
    updating: Endpoint | None = None
    deleting: Endpoint | None = None
    reading: Endpoint | None = None
    """Without one, the resource is found in its list."""
    key: str = "id"
    """The attribute by which one is found."""
    parameter: str = ""
    """The name of the key in the paths."""
    label: str = "label"
    """The attribute with its name."""
    heading: str = ""
    """The title of the list, where it is not the plural of the noun."""
    columns: Sequence[Column]
    sentence: str
    empty: str
    """Their purpose, which an empty list tells."""
    deletion: str = ""
    """The consequence of a deletion."""
    words: Words = field(default_factory=dict)
    without: Collection[str] = ()
    """Keys of the bodies that the form does not have."""
    moving: Mapping[str, Endpoint] = field(default_factory=dict)
    """Keys that an operation of their own changes."""
    fixed: Collection[str] = ()
    """Keys that never change, and are part of the form of a new one alone."""
    section: str = ""
    """The section of the settings that it is in."""
    template: str = "resource_form.html"
    form: Callable[[ApiRequest, Entered, Stored | None], Awaitable[JsonObject]] | None = None
    """The context of a template of its own."""
    body: Callable[[ApiRequest, Mapping[str, str], Stored | None], Awaitable[JsonObject]] | None = (
        None
    )
    """The parts of the body that the form has besides. Raises ValidationError."""
    offers: Callable[[ApiRequest], Awaitable[Offers]] = _no_offers
    trail: Callable[[ApiRequest, Shell], Awaitable[Trail]] = _no_trail
    starts: Endpoint | None = None
    """The endpoint that shows the form of a new one, where its query fills it in."""
    leads: bool = False
    """It has a page of its own, below the list, which its name leads to, and its forms."""
    page_of: Callable[[Shell, Stored], str] | None = None
    """The page that its forms lead to."""

    @cached_property
    def plural(self) -> str:
        return f"{self.noun}s"

    @property
    def title(self) -> str:
        """The title of the list."""
        return self.heading or sentence_case(self.plural)

    def key_of(self, row: Stored) -> str:
        return str(attrgetter(self.key)(row))

    def name_of(self, row: Stored) -> str:
        return attrgetter(self.label)(row) or "Untitled"

    def declare(self, router: Router, *, lists: bool = True) -> None:
        """Declare the pages. A hand-made list is declared elsewhere."""
        page_path = f"{self.at}/{{{self.parameter}}}"
        word, words = self.noun.replace(" ", "_"), self.plural.replace(" ", "_")
        if lists:
            _declare(router, "GET", self.at, self._list(), f"get_{words}_page", self.listing)
        new = f"{self.at}/new"
        if self.starts is None:
            _declare(router, "GET", new, self._new(), f"get_new_{word}", self.creating)
        else:
            _declare(router, "GET", new, self.starts, f"get_new_{word}", self.creating)
        _declare(router, "POST", self.at, self._create(), f"create_{word}_by_form", self.creating)
        if self.updating is not None:
            edit = f"{page_path}/edit"
            _declare(router, "GET", edit, self._edit(), f"get_{word}_form", self.updating)
            _declare(router, "POST", edit, self._update(), f"edit_{word}", self.updating)
        if self.deleting is not None:
            name = f"delete_{word}_by_form"
            _declare(router, "POST", f"{page_path}/delete", self._delete(), name, self.deleting)

    def _list(self) -> Endpoint:
        async def listed(
            request: ApiRequest, cursor: Cursor = None, notice: Notice | None = None
        ) -> Response:
            answer = await call_operation(self.listing, request, limit=_PAGE, cursor=cursor)
            shell = await shell_of(request)
            return await self._page(
                request,
                shell,
                "resource_list.html",
                [self.listing, self.creating],
                {
                    "title": self.title,
                    "rows": _rows_of(answer),
                    "cursor": cursor,
                    "next": answer.cursor,
                    "notice": notice,
                },
            )

        return listed

    def _new(self) -> Endpoint:
        async def new(request: ApiRequest) -> Response:
            controls = await self._controls(request, None)
            return await self.show(request, Entered(texts_of(controls, {})))

        return new

    def _create(self) -> Endpoint:
        @redisplays(self.show)
        async def create(request: ApiRequest, body: Fields) -> Response:
            controls = await self._controls(request, None)
            values = values_of(controls, body.texts, {}) | await self._more(request, body, None)
            made = await call_operation(
                self.creating, request, read_as(_shape(self.creating), values)
            )
            return await self._led(request, Notice.ADDED, made)

        return create

    def _edit(self) -> Endpoint:
        async def edit(request: ApiRequest) -> Response:
            row = await self._stored(request)
            controls = await self._controls(request, row)
            return await self.show(request, Entered(texts_of(controls, _wire(row))))

        return edit

    def _update(self) -> Endpoint:
        @redisplays(self.show)
        async def submit(request: ApiRequest, body: Fields) -> Response:
            assert self.updating is not None, "a resource without changes has no such form"
            row = await self._stored(request)
            before = _wire(row)
            controls = await self._controls(request, row)
            after = values_of(controls, body.texts, before)
            changes = {
                one.key: after.get(one.key, one.default)
                for one in controls
                if after.get(one.key) != before.get(one.key)
            }
            moves = {key: changes.pop(key) for key in self.moving if key in changes}
            update = changes | await self._more(request, body, row)
            preconditions = {
                name: read_moment(body.texts.get("updatedAt"), "updatedAt")
                for name in route_of(self.updating).operation.preconditions
            }
            if update:
                wanted = read_as(_shape(self.updating), update)
                await call_operation(self.updating, request, wanted, **preconditions)
            for key, value in moves.items():
                operation = self.moving[key]
                await call_operation(operation, request, read_as(_shape(operation), {key: value}))
            return await self._led(request, Notice.SAVED, row)

        return submit

    def _delete(self) -> Endpoint:
        async def delete(request: ApiRequest, form: Fields) -> Response:
            assert self.deleting is not None, "a resource that stays has no such form"
            await call_operation(self.deleting, request, **force_of(self.deleting, form))
            return see_other(queried(_path(request, self.at), notice=Notice.REMOVED))

        return delete

    async def show(self, request: ApiRequest, entered: Entered) -> Response:
        """The form of a new one or of one that is row."""
        row = await self._stored(request) if self.parameter in request.path_params else None
        controls = await self._controls(request, row)
        operation = self.creating if row is None else self.updating
        assert operation is not None, "the form has an operation"
        extras = {} if self.form is None else await self.form(request, entered, row)
        name = "" if row is None else self.name_of(row)
        return await self._page(
            request,
            await shell_of(request),
            self.template,
            [operation] if row is None or self.deleting is None else [operation, self.deleting],
            {
                "title": name or f"New {self.noun}",
                "entered": entered,
                "stored": row,
                "controls": controls,
                "place": _path(request, self.at),
                **extras,
            },
        )

    async def _page(
        self,
        request: ApiRequest,
        shell: Shell,
        template: str,
        operations: Sequence[Endpoint],
        context: Mapping[str, Any],
    ) -> Response:
        return page(
            request,
            template,
            shell,
            resource=self,
            trail=await self.trail(request, shell),
            may_write=self._may(request, self.creating),
            may_edit=self._may(request, self.updating),
            may_delete=self._may(request, self.deleting),
            api=shell.calls(*operations),
            **frame_of(request, self.section),
            **context,
        )

    def _may(self, request: ApiRequest, operation: Endpoint | None) -> bool:
        """True for who has the scopes of an operation; it checks the level itself."""
        if operation is None:
            return False
        access = route_of(operation).operation.access
        if access.platform_admin:
            return request.principal.platform_admin
        scopes = frozenset() if request.workspace_id is None else request.actor.scopes
        return access.lacking(scopes) is None

    async def _controls(self, request: ApiRequest, row: Stored | None) -> list[Control]:
        without = {*self.without, *(self.fixed if row is not None else ())}
        return laid_out(
            _shape(self.creating),
            "",
            words=self.words,
            offers=await self.offers(request),
            without=without,
        )

    async def _more(self, request: ApiRequest, body: Fields, row: Stored | None) -> JsonObject:
        return {} if self.body is None else await self.body(request, body.texts, row)

    async def _stored(self, request: ApiRequest) -> Stored:
        """The one of the path. Raises NotFoundError."""
        if self.reading is not None:
            return await call_operation(self.reading, request)
        wanted = request.path_params[self.parameter]
        answer = await call_operation(self.listing, request)
        for one in _rows_of(answer):
            if self.key_of(one) == wanted:
                return one
        raise NotFoundError(self.noun)

    async def _led(self, request: ApiRequest, notice: Notice, row: Stored) -> Response:
        path = _path(request, self.at)
        if self.page_of is not None:
            return see_other(self.page_of(await shell_of(request), row))
        if self.leads:
            path = f"{path}/{self.key_of(row)}"
        return see_other(queried(path, notice=notice))


def act(  # the parts of a declaration
    router: Router,
    path: str,
    operation: Endpoint,
    *,
    then: str,
    name: str = "",
    body: Mapping[str, object] | None = None,
    message: str = "",
    notice: Notice | None = None,
) -> None:
    """Declare a button: a form that calls an operation, and leads to the page at `then`.

    That path has the parameters of the form's, and the `answer`. The body of the operation is the
    filled fields of the form and a `body`. A `message` is shown in the page that the
    form was on, a `notice` on the one that it leads to. Without a `name` the form has that of its
    operation, and its phrase in the audit log.
    """

    async def submit(request: ApiRequest, form: Fields) -> Response:
        wanted = None
        if route_of(operation).operation.body is not None:
            filled = {key: text for key, text in form.texts.items() if text}
            wanted = read_as(_shape(operation), {**filled, **(body or {})})
        answer = await call_operation(operation, request, wanted, **force_of(operation, form))
        values = {"workspaceId": request.workspace_id, **request.path_params, "answer": answer}
        leads_to = queried(then.format_map(values), notice=notice)
        return done(request, message, leads_to) if message else see_other(leads_to)

    name = name or f"{operation.__name__}{BY_FORM}"
    _declare(router, "POST", path, submit, name, operation)


def _declare(  # the parts of a declaration
    router: Router, method: str, path: str, handler: Endpoint, name: str, api: Endpoint
) -> None:
    """Declare a page with the demands of its operation, by whose words the audit log names it."""
    route = route_of(api)
    is_form = method == "POST"
    access: Access = replace(paged(route.operation.access), idempotent=is_form, joins=is_form)
    handler.__name__, handler.__doc__ = name, api.__doc__
    router.add(method, path, handler, access=access, errors=[*route.errors, ConflictError])


async def call_operation(
    endpoint: Endpoint, request: ApiRequest, body: object = None, **values: object
) -> Stored:
    """The data that an operation answers to this body and these values of its query.

    None where a job gives the answer: pages do not wait for it, but show that it runs.
    """
    operation = route_of(endpoint).operation
    if operation.request_name is not None:
        values[operation.request_name] = request
    if operation.body is not None:
        values[operation.body.name] = body
    answer = await operation.endpoint(**values)
    return None if isinstance(answer, Deferred) else answer.data


def force_of(endpoint: Endpoint, form: Fields) -> Mapping[str, object]:
    """The `force` of a deletion: true once the person was shown what it breaks."""
    takes = FORCE in route_of(endpoint).operation.query
    return {FORCE: form.texts.get(FORCE) == "true"} if takes else {}


def _shape(operation: Endpoint) -> type[BaseModel]:
    """The body of an operation."""
    body = route_of(operation).operation.body
    assert body is not None, "the operation has a body"
    shape: type[BaseModel] = body.shape
    return shape


def _rows_of(answer: BaseModel) -> Sequence[Stored]:
    """The rows of a list, whatever it calls them."""
    return next(value for _, value in answer if isinstance(value, list))


def _wire(row: BaseModel) -> JsonObject:
    return row.model_dump(mode="json", by_alias=True)


def _path(request: ApiRequest, path: str) -> str:
    return path.format_map(request.path_params)
