"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.workspace import (
    administration,
    api_keys,
    logs,
    members,
    notifications,
    secrets,
    settings,
    webhooks,
)
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    settings.router,
    members.router,
    logs.router,
    api_keys.router,
    secrets.router,
    webhooks.router,
    notifications.router,
    administration.router,
)
