"""The outermost layer: request ids, headers every answer carries, and framework refusals."""

import re
import secrets

import structlog
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from api.kernel.dispatch import Dispatch
from api.kernel.errors import as_refusal, error_response

_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_NO_STORE = (b"cache-control", b"no-store")


class RequestContext:
    """Pure ASGI: a task or a queue per request would cost more than the request itself."""

    def __init__(self, app: Dispatch) -> None:
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
                headers.append((b"x-request-id", request_id))
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_NO_STORE)
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if started:
                raise
            response = error_response(as_refusal(error))
            if response.status_code == 405:
                response.headers["Allow"] = self._allowed(scope)
            await response(scope, receive, send_with_headers)

    def _allowed(self, scope: Scope) -> str:
        """Every method of the path: each operation is a route of its own (RFC 9110, 10.2.1)."""
        return ", ".join(
            sorted(
                method
                for route in self._app.routes
                if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
                for method in route.methods or ()
            )
        )


def _request_id(scope: Scope) -> bytes:
    """The client's id when it is one, else a fresh one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            given: bytes = value
            return given
    return secrets.token_hex(16).encode()
