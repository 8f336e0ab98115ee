"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.workspace import (
    api_keys,
    deliveries,
    general,
    invitations,
    members,
    notifications,
    preferences,
    request_logs,
    secrets,
    webhooks,
)
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    general.router,
    members.router,
    invitations.router,
    api_keys.router,
    request_logs.router,
    secrets.router,
    webhooks.router,
    deliveries.router,
    notifications.router,
    preferences.router,
)
