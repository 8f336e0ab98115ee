"""The rows that requests leave in the request log."""

import time

from api.kernel.request import ApiRequest
from models.core.access.rules import PrincipalType
from models.people.request_logs.commands import LogEntry
from runtime.clock import utc_now
from runtime.redaction import Redaction
from runtime.telemetry import without_tokens

_MAX_LOGGED_PATH = 2000


def log_request(request: ApiRequest, status: int, start: float) -> None:
    """Record a request of a known caller."""
    principal = request.principal
    is_key = principal.type is PrincipalType.API_KEY
    request.services.request_log.record(
        LogEntry(
            workspace_id=principal.key_workspace_id if is_key else request.workspace_id,
            principal_type=principal.type,
            principal_id=principal.id,
            api_key_id=principal.id if is_key else None,
            method=request.method,
            path=_loggable(request),
            status=status,
            idempotency_key=request.idempotency_key,
            error=request.error,
            duration_ms=round((time.perf_counter() - start) * 1000, 3),
            created_at=utc_now(),
        )
    )


def _loggable(request: ApiRequest) -> str:
    """The path as it was sent, without the secrets some paths carry, however they are escaped."""
    raw: bytes = request.scope.get("raw_path") or b""
    path = raw.partition(b"?")[0].decode("ascii", "replace")
    tokens = {
        value: f"{{{name}}}"
        for name, value in request.path_params.items()
        if name.lower().endswith("token")
    }
    if tokens:
        path = Redaction(tokens).text(path)
    # A key that somebody sends in the path is no less secret there.
    return without_tokens(path)[:_MAX_LOGGED_PATH]
