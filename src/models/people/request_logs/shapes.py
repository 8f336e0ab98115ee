"""The request log on the wire (interface, API request log entry)."""

from models.core.base import Id, Moment, Shape


class RequestLogBody(Shape):
    id: Id
    workspace_id: Id | None
    api_key_id: Id | None
    principal_type: str
    principal_id: Id | None
    method: str
    path: str
    status: int
    idempotency_key: str | None
    error: str | None
    duration_ms: float | None
    created_at: Moment | None
