"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.workspace import (
    api_keys,
    audit,
    deliveries,
    experiments,
    general,
    invitations,
    members,
    model,
    notifications,
    pausing,
    preferences,
    release_notices,
    request_logs,
    secrets,
    system,
    usage,
    webhooks,
)
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    general.router,
    pausing.router,
    members.router,
    invitations.router,
    usage.router,
    audit.router,
    api_keys.router,
    request_logs.router,
    secrets.router,
    webhooks.router,
    deliveries.router,
    model.router,
    notifications.router,
    preferences.router,
    system.router,
    experiments.router,
    release_notices.router,
)
