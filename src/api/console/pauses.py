"""Forms of pauses, of whatever they are: begun with a reason, ended at once or at a rate."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from api.console.entered import Entered, attempt
from api.console.forms import Form, number_of
from api.console.rendering import see_other
from api.kernel.routing import ApiRequest
from models.core.base import JsonObject
from runtime.errors import PlatformError


class Pause(Form):
    """The reason, which is shown wherever something waits."""

    reason: str = ""

    @property
    def values(self) -> JsonObject:
        """The body of the operation."""
        return {"reason": self.reason}


class Resume(Form):
    """So many a minute; all at once without a number."""

    rate: str = ""

    @property
    def values(self) -> JsonObject:
        """The body of the operation."""
        return {"rate": number_of(self.rate)}


async def take(
    request: ApiRequest,
    step: Callable[[], Awaitable[None]],
    texts: dict[str, str],
    page: Callable[[ApiRequest, Entered], Awaitable[Response]],
    path: str,
) -> Response:
    """Do what a form asks for and lead to its page, or show the form with what is wrong."""
    outcome = await attempt(request, step)
    if isinstance(outcome, PlatformError):
        return await page(request, Entered(texts, outcome))
    return see_other(path)
