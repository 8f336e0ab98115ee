"""One router per noun. A new one adds its two lines here."""

from collections.abc import Sequence

from api.kernel.routing import Router
from api.routers import (
    api_keys,
    automation_runs,
    automations,
    databases,
    me,
    members,
    records,
    service,
    workspaces,
)

ROUTERS: Sequence[Router] = (
    service.router,
    me.router,
    workspaces.router,
    members.router,
    api_keys.router,
    databases.router,
    records.router,
    automations.router,
    automation_runs.router,
)
