"""The outermost layer: request ids, headers of every answer, and the last refusal."""

import re
import secrets

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.kernel.responses import as_refusal, error_response

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_NO_STORE = (b"cache-control", b"no-store")
_SAFE = {
    b"x-content-type-options": b"nosniff",
    # Some URLs carry a token: webhooks, assets, share links, invitations.
    b"referrer-policy": b"no-referrer",
}
"""On every answer, whatever it says itself: an automation may choose the headers of its own."""


def complete(headers: list[tuple[bytes, bytes]], request_id: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with the headers that every answer has."""
    whole = [one for one in headers if one[0] not in _SAFE]
    if not any(name == b"cache-control" for name, _ in whole):
        whole.append(_NO_STORE)
    return [*whole, (b"x-request-id", request_id), *_SAFE.items()]


class RequestContext:
    """Pure ASGI: it starts no task and no queue for a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given_id(scope) or new_request_id()
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = complete(message["headers"], request_id)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if has_started:
                raise
            await error_response(as_refusal(error))(scope, receive, send_with_headers)


def new_request_id() -> bytes:
    """An id for a request that brings none."""
    return secrets.token_hex(16).encode()


def _given_id(scope: Scope) -> bytes | None:
    """The client's id, when it is one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            given: bytes = value
            return given
    return None
