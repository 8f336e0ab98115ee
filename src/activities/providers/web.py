"""Providers that are asked by HTTP: requests, the meaning of refusals, and tokens in force."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from pydantic import JsonValue
from typing_extensions import override

from activities.connections import ConnectionUseError, Tokens, UnansweredError
from activities.providers import adapter as provider_adapter
from models.sources.authorizations.rules import ACCESS_TOKEN, is_stale
from runtime.clock import utc_now
from runtime.outbound import errors
from runtime.outbound.client import OutboundClient
from runtime.outbound.messages import OutboundRequest, OutboundResponse, Sink, authentication

MAX_LISTING_BYTES = 16 * 1024 * 1024
"""Bytes of one answer about resources."""
SECONDS = 20.0
DOWNLOAD_SECONDS = 600.0
MAX_PAUSE = 5.0
"""Seconds that a provider can have a call wait; one that asks for more is asked later."""
ATTEMPTS = 3


class Question(TypedDict, total=False):
    """The parts of a question beside its URL, as `Web.send` takes them."""

    method: str
    query: Mapping[str, str | Sequence[str]]
    body: object
    headers: Mapping[str, str]


_UNREACHED: Mapping[type[errors.OutboundError], provider_adapter.ProblemKind] = {
    errors.OutboundTimeoutError: provider_adapter.ProblemKind.TIMEOUT,
    errors.ResponseTooLargeError: provider_adapter.ProblemKind.TOO_LARGE,
    errors.OutboundBlockedError: provider_adapter.ProblemKind.INVALID,
    errors.InvalidUrlError: provider_adapter.ProblemKind.INVALID,
    errors.InvalidRequestError: provider_adapter.ProblemKind.INVALID,
    errors.TooManyRedirectsError: provider_adapter.ProblemKind.MALFORMED,
}

_REFUSED: Mapping[int, tuple[provider_adapter.ProblemKind, str]] = {
    400: (provider_adapter.ProblemKind.INVALID, "The provider rejected the request."),
    401: (
        provider_adapter.ProblemKind.AUTH,
        "The provider rejected the credentials of the connection.",
    ),
    403: (provider_adapter.ProblemKind.DENIED, "The provider denied access to the resource."),
    404: (provider_adapter.ProblemKind.GONE, "The resource was not found at the provider."),
    410: (provider_adapter.ProblemKind.GONE, "The resource was deleted at the provider."),
    413: (provider_adapter.ProblemKind.TOO_LARGE, "The resource is too large for the provider."),
    416: (provider_adapter.ProblemKind.INVALID, "The provider rejected the request."),
    422: (provider_adapter.ProblemKind.INVALID, "The provider rejected the request."),
    429: (provider_adapter.ProblemKind.RATE_LIMITED, "The rate limit of the provider was reached."),
    # Google says so of too many questions, Notion of too many for all its users.
    529: (provider_adapter.ProblemKind.UNAVAILABLE, "The provider is overloaded."),
}


def refusal_of(answer: OutboundResponse) -> provider_adapter.ProviderProblem:
    """The problem that an answer that is no success means, by its status alone."""
    kind, message = _REFUSED.get(
        answer.status,
        (provider_adapter.ProblemKind.MALFORMED, f"The provider returned {answer.status}."),
    )
    if answer.status >= 500:
        kind, message = (
            provider_adapter.ProblemKind.UNAVAILABLE,
            f"The provider returned {answer.status}.",
        )
    return provider_adapter.ProviderProblem(kind, message, retry_after=answer.retry_after)


@dataclass(frozen=True, slots=True)
class Web:
    """Requests to one provider for one connection; `headers` authenticate them.

    A message never repeats the answer of a provider, which may echo a secret.
    """

    outbound: OutboundClient
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def url(self, *segments: str) -> str:
        """A URL below the base, of whole segments."""
        path = "/".join(segment_of(one) for one in segments)
        return f"{self.base_url.rstrip('/')}/{path}"

    async def send(
        self,
        url: str,
        *,
        method: str = "GET",
        query: Mapping[str, str | Sequence[str]] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_LISTING_BYTES,
        accepted: Sequence[int] = (200,),
    ) -> OutboundResponse:
        """An answer of an `accepted` status. Raises ProviderProblem."""
        request = OutboundRequest(
            method=method,
            url=url,
            query=query or {},
            headers={**self.headers, **(headers or {})},
            body=body,
            timeout_seconds=SECONDS,
            max_bytes=max_bytes,
        )
        for attempt in range(1, ATTEMPTS + 1):
            answer = await sent(self.outbound, request)
            if answer.status in accepted:
                return answer
            problem = self.refusal(answer)
            if attempt == ATTEMPTS or not _is_pause(problem):
                raise problem
            await asyncio.sleep(problem.retry_after or 0)
        raise AssertionError("the last attempt returns or raises")

    def refusal(self, answer: OutboundResponse) -> provider_adapter.ProviderProblem:
        """The meaning of a refusal; a provider with words of its own says more."""
        return refusal_of(answer)

    async def json(self, url: str, **options: Unpack[Question]) -> dict[str, Any]:
        """The object that is answered. Raises ProviderProblem."""
        answer = await self.send(url, **options)
        return object_of(answer)

    async def download(
        self,
        url: str,
        path: Path,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> OutboundResponse:
        """Write an answer to a file; 304 leaves it empty. Raises ProviderProblem."""
        request = OutboundRequest(
            url=url,
            query=query or {},
            headers={**self.headers, **(headers or {})},
            timeout_seconds=DOWNLOAD_SECONDS,
            max_bytes=provider_adapter.MAX_DOWNLOAD_BYTES,
        )
        with await asyncio.to_thread(path.open, "wb") as file:

            async def keep(chunk: bytes) -> None:
                await asyncio.to_thread(file.write, chunk)

            answer = await sent(self.outbound, request, keep)
        if answer.status not in {200, 304}:
            raise self.refusal(answer)
        if answer.status == 304:
            # A server may send a body with 304 all the same.
            await asyncio.to_thread(path.write_bytes, b"")
        return answer

    async def text(self, url: str, **options: Unpack[Question]) -> str:
        """Text that can be shown, at most MAX_READ_BYTES of it. Raises ProviderProblem."""
        answer = await self.send(url, max_bytes=provider_adapter.MAX_READ_BYTES, **options)
        text = answer.shown_text("text/plain")
        if text is None:
            raise provider_adapter.ProviderProblem(
                provider_adapter.ProblemKind.UNSUPPORTED, "The content is not text."
            )
        return text


async def sent(
    outbound: OutboundClient, request: OutboundRequest, sink: Sink | None = None
) -> OutboundResponse:
    """The answer of any status. Raises ProviderProblem when there is none."""
    try:
        return await outbound.send(request, sink)
    except errors.OutboundError as error:
        kind = _UNREACHED.get(type(error), provider_adapter.ProblemKind.UNAVAILABLE)
        raise provider_adapter.ProviderProblem(kind, error.message) from None


def _is_pause(problem: provider_adapter.ProviderProblem) -> bool:
    return problem.retry_after is not None and problem.retry_after <= MAX_PAUSE


def json_of(answer: OutboundResponse) -> JsonValue:
    """The JSON value of an answer, regardless of its content type; None when there is none."""
    try:
        return answer.parsed()
    except errors.InvalidBodyError:
        return None


def object_of(answer: OutboundResponse) -> dict[str, Any]:
    """The JSON object of an answer. Raises ProviderProblem."""
    content = json_of(answer)
    if not isinstance(content, dict):
        raise provider_adapter.ProviderProblem(
            provider_adapter.ProblemKind.MALFORMED,
            "The response of the provider is not a JSON object.",
        )
    return content


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list of an answer, without its other values."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """A text of an answer that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def shown_text(text: str) -> str:
    """Text without NUL, which no JSON of ours can keep."""
    return text.replace("\0", "\ufffd")


def segment_of(text: str) -> str:
    """One segment of a path. Raises ProviderProblem for one that leads elsewhere."""
    if text in {"", ".", ".."}:
        raise no_such_resource()
    return quote(text, safe="")


def secret_of(access: provider_adapter.ProviderAccess, username: str | None) -> str:
    """The secret a connection signs in with, after its user name if it has one."""
    secret = access.credentials.get("secret", "")
    return secret if username is None else f"{username}:{secret}"


def no_such_resource() -> provider_adapter.ProviderProblem:
    return provider_adapter.ProviderProblem(
        provider_adapter.ProblemKind.GONE, "The resource was not found at the provider."
    )


T = TypeVar("T")


class AuthorizedAdapter(provider_adapter.AdapterWrapper):
    """Another adapter, whose calls are repeated once with a new token when theirs is rejected."""

    def __init__(self, adapter: provider_adapter.Adapter, tokens: Tokens) -> None:
        super().__init__(adapter)
        self._tokens = tokens

    @override
    async def _asked(
        self,
        access: provider_adapter.ProviderAccess,
        call: Callable[[provider_adapter.ProviderAccess], Awaitable[T]],
    ) -> T:
        token = access.credentials.get(ACCESS_TOKEN)
        if token is None:
            return await call(access)
        if is_stale(access.credentials, utc_now()):
            access = await self._renewed(access, None)
            token = access.credentials[ACCESS_TOKEN]
        try:
            return await call(access)
        except provider_adapter.ProviderProblem as problem:
            # Only a rejected token is renewed. A second rejection is raised, so that no loop
            # follows.
            if problem.kind is not provider_adapter.ProblemKind.AUTH:
                raise
        return await call(await self._renewed(access, token))

    async def _renewed(
        self, access: provider_adapter.ProviderAccess, rejected: str | None
    ) -> provider_adapter.ProviderAccess:
        try:
            connection = await self._tokens.connected(
                access.workspace_id, access.connection_id, rejected=rejected
            )
        except ConnectionUseError as error:
            raise provider_adapter.ProviderProblem(
                provider_adapter.ProblemKind.AUTH, error.message
            ) from None
        except (errors.OutboundError, UnansweredError):
            message = "The provider did not return a new token."
            raise provider_adapter.ProviderProblem(
                provider_adapter.ProblemKind.UNAVAILABLE, message
            ) from None
        return replace(access, credentials=connection.credentials)


class TokenAdapter(provider_adapter.Adapter):
    """An adapter that asks one API by HTTP, with a token; `headers` are said beside it."""

    api_url: ClassVar[str]
    web: ClassVar[type[Web]] = Web
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, outbound: OutboundClient, api_url: str = "") -> None:
        self._outbound = outbound
        self._api_url = api_url or self.api_url

    def _web(self, access: provider_adapter.ProviderAccess, api_url: str = "") -> Web:
        """Requests with the token that a user's authorization gave, or one that was given."""
        token = access.credentials.get(ACCESS_TOKEN) or access.credentials["token"]
        headers = {**authentication("bearer", token), **self.headers}
        return self.web(self._outbound, api_url or self._api_url, headers)
