"""The request that an endpoint gets, and the parameters that several operations share."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeVar, cast
from uuid import UUID

from fastapi import Header
from pydantic import BeforeValidator, WithJsonSchema
from starlette.requests import Request
from starlette.types import Receive, Scope

from api.kernel.awaited_work import Deferred, Poll, Then, Wait
from api.kernel.browsers import CookieToken, Form
from api.kernel.limits import Quota
from api.kernel.responses import Data
from api.kernel.services import Services
from models.content.files.rules import Content
from models.core import pagination
from models.core.access.rules import Actor, Placement, Principal, Role
from models.core.openapi import Deprecated
from models.core.values import expected_version, read_if_match
from runtime.database import UnitOfWork
from runtime.ids import new_id, parse_id

_COUNT = re.compile(r"0*([1-9][0-9]*)")
_SECONDS = re.compile(r'("?)([0-9]+)\1')
_PREFERENCE = re.compile(r'(?:[^,"]|"(?:\\.|[^"\\])*")+')
WAIT_SECONDS = 60
"""The longest that a caller may wait for work."""


def _limit(value: object, most: int = pagination.MAX_LIMIT) -> object:
    if not isinstance(value, str):
        return value
    count = _COUNT.fullmatch(value)
    if count is None:
        raise ValueError("Must be a whole number of at least 1.")
    # Python refuses to read a number of thousands of digits.
    return min(int(count[1][:9]), most)


def _flag(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in {"true", "false"}:
        raise ValueError("Must be true or false.")
    return value == "true"


def _wait(value: object) -> object:
    if not isinstance(value, str):
        return value
    seconds = _SECONDS.fullmatch(value)
    if seconds is None or seconds[1]:
        raise ValueError("Must be a whole number of seconds.")
    return min(int(seconds[2].lstrip("0")[:9] or 0), WAIT_SECONDS)


def _id(value: object) -> object:
    if not isinstance(value, str):
        return value
    parsed = parse_id(value)
    if parsed is None:
        raise ValueError("Must be a UUID such as 0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f.")
    return parsed


Limit = Annotated[
    int,
    BeforeValidator(_limit),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": pagination.DEFAULT_LIMIT}),
]
"""The number of rows to show: default 30, more than 100 is read as 100."""

WholeLimit = Annotated[
    int,
    BeforeValidator(partial(_limit, most=pagination.WHOLE_LIMIT)),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": pagination.WHOLE_LIMIT}),
]
"""The number of rows to show of a list that is answered whole by default, up to 1000 rows."""

Cursor = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""The end of the previous page."""

Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""`true` or `false`, nothing else."""

QueryId = Annotated[
    UUID, BeforeValidator(_id), WithJsonSchema({"type": "string", "format": "uuid"})
]
"""An id given in the query."""

WaitSeconds = Annotated[
    int,
    BeforeValidator(_wait),
    WithJsonSchema({"type": "integer", "minimum": 0, "default": 0}),
]
"""The seconds to wait until the work has ended; more than 60 is read as 60."""


def preferred_wait(headers: Sequence[bytes]) -> int | None:
    """The seconds of `Prefer: wait=30` (RFC 7240), at most `WAIT_SECONDS`; None without a wait.

    The first `wait` counts. What cannot be read is no preference.
    """
    for preference in _PREFERENCE.findall(b",".join(headers).decode("latin-1")):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            seconds = _SECONDS.fullmatch(value.strip())
            return (seconds and min(int(seconds[2].lstrip("0")[:9] or 0), WAIT_SECONDS)) or None
    return None


def prefers(preference: str, headers: Sequence[bytes]) -> bool:
    """True for `Prefer: dry-run`, and for others like it.

    A value does not matter: a preference that is not read would let the request write.
    """
    return any(
        one.partition(";")[0].partition("=")[0].strip().lower() == preference
        for one in _PREFERENCE.findall(b",".join(headers).decode("latin-1"))
    )


@dataclass(frozen=True, slots=True)
class Precondition:
    """Marks the parameter of an endpoint that is read from the header `If-Match`."""

    read: Callable[[str | None], Any]


IfUnchanged = Annotated[
    datetime | None,
    Precondition(read_if_match),
    Header(
        alias="If-Match",
        description="The `updatedAt` that you last read. Fails if it was changed since.",
    ),
    WithJsonSchema({"type": "string"}),
]
"""The `updatedAt` that the caller knows, None for any."""

IfVersion = Annotated[
    int | None,
    Precondition(expected_version),
    Header(
        alias="If-Match",
        description="The version that you last read. Fails if it was changed since.",
    ),
    WithJsonSchema({"type": "string"}),
]
"""The version that the caller knows, None for any."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Claim:
    """A key of one caller, method and path, and the request it was sent with.

    One that does not last stands for a request without a key, until that is answered.
    """

    fingerprint: bytes
    request_hash: bytes
    workspace_id: UUID | None
    lasting: bool


class ApiRequest(Request):
    """A request, with the facts that the steps of the pipeline find out.

    As a Starlette request it is no parameter of the OpenAPI document.
    """

    def __init__(self, scope: Scope, receive: Receive, services: Services) -> None:
        super().__init__(scope, receive)
        self.services = services
        self.ids: Mapping[str, UUID] = {}
        self.placement: Placement | None = None
        self.error: str | None = None
        self.quota: Quota | None = None
        """The quota the caller has left of the rate limit that this request counts for."""
        self.caller_name = b""
        """The caller's name in the rate limits."""
        self.share: Hashable = scope["path"]
        """The share of the connections it takes: the caller's, else that of its path."""
        self.raw_body = b""
        """The body as it was sent, before it is validated."""
        self.idempotency_key: str | None = None
        self.claim: Claim | None = None
        """The claim on the request's idempotency key."""
        self.new_id: UUID = new_id()
        """The id of what the request makes; repeated under its idempotency key it has the same."""
        self.status: int | None = None
        """The status of a success that is not the operation's own; one of its `statuses`."""
        self.next_cursor: str | None = None
        """The cursor of the page behind an array, which has no place for one."""
        self.deprecated: Sequence[Deprecated] = ()
        """The deprecated parts of all that it uses."""
        self.is_dry_run = False
        """All that the request writes is rolled back."""
        self.is_safe = False
        """It asks for a preview: it changes nothing, though its operation may."""
        self.is_proposal = False
        """It is kept after its dry run, for someone who may apply it."""
        self.replayed = False
        """The answer is that of an earlier request with the same idempotency key."""
        self.session_expires_at: datetime | None = None
        """The time the session ends that the request was sent with."""
        self.caller: Principal | None = None
        self.roles: Mapping[UUID, Role] = {}
        self.sent_form: Form | None = None
        """The form that a page sent."""
        self.cookie: CookieToken | None = None
        """The session in a browser that the request was sent in."""
        self._actor: Actor | None = None
        self._work: UnitOfWork | None = None
        self._upload: Content | None = None

    @property
    def request(self) -> Request:
        return self

    def count_run_starts(self, further: int) -> None:
        """Count runs that the request starts besides the first for the rate limit of run starts."""
        self.quota = self.services.limits.run_starts.owe(self.caller_name, further) or self.quota

    @property
    def work(self) -> UnitOfWork:
        """The request's one transaction."""
        if self._work is None:
            raise RuntimeError("This operation declared that it needs no transaction.")
        return self._work

    @property
    def uploaded(self) -> Content | None:
        """The body, if it went to the object store."""
        return self._upload

    @property
    def upload(self) -> Content:
        """The body, which is in the object store already."""
        if self._upload is None:
            raise RuntimeError("This operation declared that it takes no upload.")
        return self._upload

    @upload.setter
    def upload(self, content: Content) -> None:
        self._upload = content

    @property
    def principal(self) -> Principal:
        """The sender of the request."""
        if self.caller is None:
            raise RuntimeError("This operation declared that it needs no caller.")
        return self.caller

    @property
    def actor(self) -> Actor:
        """The caller as a member of the workspace the request is about."""
        if self._actor is None:
            raise RuntimeError("This operation is about no workspace.")
        return self._actor

    @property
    def workspace_id(self) -> UUID | None:
        """The workspace the request is about; None until the caller is found to belong to it."""
        return None if self._actor is None else self._actor.workspace_id

    def headers_named(self, name: bytes) -> list[bytes]:
        """Every value of a header, in order; `name` in lower case."""
        return [value for header, value in self.scope["headers"] if header == name]

    def idempotency_keys(self) -> list[bytes]:
        """The idempotency keys that were given; a form has its own in a field."""
        if self.sent_form is not None:
            return self.sent_form.idempotency_keys
        return self.headers_named(b"idempotency-key")

    def begin(self, work: UnitOfWork) -> None:
        """Set the transaction."""
        self._work = work

    def enter(self, actor: Actor) -> None:
        """Set the actor, who belongs to the workspace."""
        self._actor = actor

    def deferred(
        self,
        poll: Poll[T],
        *,
        within: float,
        of: UUID | Wait | None = None,
        then: Then | None = None,
        is_fresh: bool = False,
    ) -> Data[T]:
        """The value of an endpoint whose answer a job gives: `poll` finds it after the commit.

        `within` is in seconds. The job is the one `of` this id, or of this wait that has begun,
        else that of `new_id`. `then` is done after the answer. `is_fresh` as in `Deferred`.
        """
        wait = of if isinstance(of, Wait) else Wait(self.services.awaited, of or self.new_id)
        # The pipeline replaces it by the answer; to its endpoint it stands for the answer.
        return cast("Data[T]", Deferred(poll, within, wait, then, is_fresh))

    def awaited(
        self, work_id: UUID, poll: Poll[T], *, seconds: int | None = None
    ) -> Data[T] | None:
        """The answer of `poll` at the end of accepted work; None for a caller who does not wait.

        The caller waits for `seconds`, or the seconds of `Prefer: wait`, and not where too many
        of the workspace do. Nothing begins in a dry run, so nothing is waited for. A HEAD has no
        body to tell of an end.
        """
        if self.is_dry_run or self.method == "HEAD":
            return None
        preferred = preferred_wait(self.headers_named(b"prefer")) if seconds is None else None
        within = seconds or preferred
        wait = within and self.services.awaited.patient_wait(work_id, self.workspace_id)
        if not within or not wait:
            return None
        headers = {} if preferred is None else {"Preference-Applied": f"wait={preferred}"}
        # The state of older work was read before the wait began.
        is_fresh = seconds is None
        return cast("Data[T]", Deferred(poll, within, wait, is_fresh=is_fresh, headers=headers))

    def page(
        self, name: str, limit: int, cursor: str | None, *filters: object
    ) -> pagination.PageRequest:
        """The page of the list `name` that was asked for; a cursor is bound to the filters too."""
        return pagination.page_request(
            self.services.keys,
            limit,
            cursor,
            name,
            self.workspace_id,
            self.principal.user_id,
            *filters,
        )

    def array(self, page: pagination.Page[T]) -> Data[list[T]]:
        """The items of a page as an array; the header `Link` leads to the next page."""
        self.next_cursor = page.cursor
        return Data(page.items)
