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
