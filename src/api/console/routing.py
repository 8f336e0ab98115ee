"""The router of pages, and of what they ask for."""

from api.console.refusals import refuse
from api.kernel.routing import Router


def page_router() -> Router:
    """A router whose routes are no part of the API, and are refused as people read it."""
    return Router(tags=["console"], refuse=refuse, documented=False)
