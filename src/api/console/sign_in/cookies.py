"""The answers that set and delete the session cookie."""

from starlette.responses import Response

from api.console.rendering import see_other
from api.kernel.browsers import cookie_name, is_secure, read_session
from api.kernel.request import ApiRequest
from models.people.browser_sessions.commands import BegunSession, end_session
from models.people.credentials.queries import browser_session_user


async def begun(request: ApiRequest, session: BegunSession, path: str) -> Response:
    """Lead on in a session that has begun; the one the browser had before is over."""
    await _end_earlier(request)
    settings = request.services.settings
    answer = see_other(path)
    answer.set_cookie(
        cookie_name(settings),
        session.token,
        expires=session.expires_at,
        path="/",
        secure=is_secure(settings),
        httponly=True,
        samesite="lax",
    )
    return answer


async def ended(request: ApiRequest, path: str) -> Response:
    """End the session of the request and lead on."""
    await _end_earlier(request)
    settings = request.services.settings
    answer = see_other(path)
    answer.delete_cookie(
        cookie_name(settings),
        path="/",
        secure=is_secure(settings),
        httponly=True,
        samesite="lax",
    )
    answer.headers["Clear-Site-Data"] = '"cache"'
    return answer


async def _end_earlier(request: ApiRequest) -> None:
    earlier = read_session(request.scope, request.services.settings)
    if earlier is not None:
        await end_session(request.work, earlier.token)


async def is_signed_in(request: ApiRequest) -> bool:
    """True for a request with the cookie of a live session."""
    cookie = read_session(request.scope, request.services.settings)
    if cookie is None:
        return False
    return bool(await browser_session_user(request.work, cookie.digest))
