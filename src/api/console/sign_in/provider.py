"""The way to the identity provider and back."""

from starlette.responses import Response

from api.console.rendering import see_other
from api.console.routing import page_router
from api.console.shell import local_path
from api.console.sign_in.cookies import begun
from api.kernel.browsers import is_secure, read_cookie
from api.kernel.identity_provider import CALLBACK, SECONDS, Attempt, IdentityProvider
from api.kernel.request import ApiRequest
from api.kernel.routing import Access
from models.people.browser_sessions.commands import begin_session
from models.people.users.commands import sync_profile
from runtime.errors import NotFoundError
from runtime.settings import Settings

router = page_router()

START = "/sign-in/start"


def attempt_cookie(settings: Settings) -> str:
    return "__Host-sign-in" if is_secure(settings) else "sign-in"


def provider_of(request: ApiRequest) -> IdentityProvider:
    """The provider of this platform. Raises NotFoundError without one."""
    provider = request.services.provider
    if provider is None:
        raise NotFoundError("page")
    return provider


@router.get(START, access=Access(credential="none", page=True, transaction=False))
async def start_sign_in(
    request: ApiRequest,
    next: str | None = None,  # noqa: A002  # the name in the address
) -> Response:
    """Lead to the identity provider."""
    settings, keys = request.services.settings, request.services.keys
    attempt = Attempt.begin(local_path(next))
    answer = see_other(await provider_of(request).authorization_url(attempt))
    answer.set_cookie(
        attempt_cookie(settings),
        attempt.sealed(keys),
        max_age=SECONDS,
        path="/",
        secure=is_secure(settings),
        httponly=True,
        # The provider leads back from another site.
        samesite="lax",
    )
    return answer


@router.get(CALLBACK, access=Access(credential="none", page=True, transaction=False, raw=True))
async def finish_sign_in(request: ApiRequest) -> Response:
    """Take the provider's answer, and begin a session."""
    services = request.services
    cookie = read_cookie(request.scope["headers"], attempt_cookie(services.settings))
    attempt = Attempt.read(services.keys, cookie)
    session = await provider_of(request).signed_in(attempt, str(request.url))
    # The provider was asked outside of it.
    async with services.database.transaction() as work:
        request.begin(work)
        user_id = await sync_profile(
            work,
            issuer=session.issuer,
            subject=session.subject,
            email=session.email,
            name=session.name,
            platform_admin=session.platform_admin,
        )
        answer = await begun(request, await begin_session(work, user_id), attempt.next)
    answer.delete_cookie(
        attempt_cookie(services.settings),
        path="/",
        secure=is_secure(services.settings),
        httponly=True,
        samesite="lax",
    )
    return answer
