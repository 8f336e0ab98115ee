"""The request log on the wire (interface, API request log entry)."""

from models.core.base import Id, Moment, Nullable, Shape


class RequestLogBody(Shape):
    id: Id
    workspace_id: Nullable[Id]
    api_key_id: Nullable[Id]
    principal_type: str
    principal_id: Nullable[Id]
    method: str
    path: str
    status: int
    idempotency_key: Nullable[str]
    error: Nullable[str]
    duration_ms: Nullable[float]
    created_at: Nullable[Moment]


class AuditEntryBody(Shape):
    """A call that changed something, or was refused to; the user is who called, or whose key did.

    `status` and `error` say what came of it.
    """

    id: Id
    principal_type: str
    principal_id: Id
    user_id: Id
    api_key_id: Id | None
    method: str
    path: str
    status: int
    error: str | None
    idempotency_key: str | None
    created_at: Moment


class AuditLog(Shape):
    entries: list[AuditEntryBody]
    cursor: Nullable[str]
