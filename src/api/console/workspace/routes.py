"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.workspace import (
    api_keys,
    general,
    invitations,
    members,
    request_logs,
    secrets,
)
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    general.router,
    members.router,
    invitations.router,
    api_keys.router,
    request_logs.router,
    secrets.router,
)
