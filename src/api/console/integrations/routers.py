"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.integrations import connecting, connections, limits, resources
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (
    connections.router,
    connecting.router,
    connecting.returning,
    resources.router,
    limits.router,
)
