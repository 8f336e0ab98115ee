"""The routers of this family of pages."""

from collections.abc import Sequence

from api.console.workspace import general, invitations, members
from api.kernel.routing import Router

ROUTERS: Sequence[Router] = (general.router, members.router, invitations.router)
