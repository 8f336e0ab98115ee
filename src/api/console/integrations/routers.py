"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.integrations import (
    bringing,
    browsing,
    connecting,
    editing,
    limits,
    mounts,
    pausing,
    routes,
)
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    routes.router,
    connecting.router,
    connecting.returning,
    browsing.router,
    bringing.router,
    editing.router,
    limits.router,
    mounts.router,
    pausing.router,
)
