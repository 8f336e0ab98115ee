"""The outermost layer: request ids, headers of every answer, and the last refusal."""

import re
import secrets

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.kernel.responses import as_refusal, error_response

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_NO_STORE = (b"cache-control", b"no-store")
_NO_SNIFF = (b"x-content-type-options", b"nosniff")


def request_headers(request_id: bytes | None = None) -> list[tuple[bytes, bytes]]:
    """The headers of every answer, for one that says nothing of them itself."""
    return [(b"x-request-id", request_id or secrets.token_hex(16).encode()), _NO_STORE, _NO_SNIFF]


class RequestContext:
    """Pure ASGI: it starts no task and no queue for a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message["headers"]
                said = {name for name, _ in headers}
                headers += [one for one in request_headers(request_id) if one[0] not in said]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if started:
                raise
            await error_response(as_refusal(error))(scope, receive, send_with_headers)


def _request_id(scope: Scope) -> bytes:
    """The client's id when it is one, else a fresh one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            given: bytes = value
            return given
    return secrets.token_hex(16).encode()
