"""Signing in and out: the form, the identity provider, the link, the session cookie (ADR 0082)."""

from starlette.responses import Response

from api.console.entered import BLANK
from api.console.rendering import bare, console_page, home_of, local_path, see_other, shell_of
from api.console.routing import page_router
from api.console.words import queried
from api.kernel.browsers import cookie_name, is_secure, read_cookie, read_session
from api.kernel.routing import Access, ApiRequest
from api.kernel.sessions import CALLBACK, SECONDS, Attempt, IdentityProvider
from models.people import credentials
from models.people.users import find_user, sync_profile
from runtime.configuration.settings import Settings
from runtime.errors import NotFoundError

router = page_router()

LINK = "/sign-in/{signInToken}"
_OPEN = Access(credential="none", page=True)


@router.get("/", access=Access(credential="browser", page=True))
async def get_start(request: ApiRequest) -> Response:
    """Lead to the first workspace of the caller."""
    shell = await shell_of(request)
    if not shell.workspaces:
        return await _without_workspace(request)
    return see_other(home_of(shell.workspaces[0].workspace.id))


async def _without_workspace(request: ApiRequest) -> Response:
    person = await find_user(request.work, request.principal.user_id)
    address = None if person is None else person.email
    return await console_page(request, "no_workspace.html", entered=BLANK, address=address)


@router.get("/sign-in", access=_OPEN)
async def get_sign_in(request: ApiRequest, next: str | None = None) -> Response:  # noqa: A002
    """Say how to sign in; who is signed in already is led on."""
    if await is_signed_in(request):
        return see_other(local_path(next))
    minutes = round(credentials.LINK_LIFETIME.total_seconds() / 60)
    provider = request.services.provider
    return bare(
        request,
        "sign_in.html",
        provider=None if provider is None else queried(START, next=local_path(next)),
        host=None if provider is None else provider.host,
        command="workspace sign-in",
        minutes=minutes,
    )


@router.get(LINK, access=_OPEN)
async def get_sign_in_link(request: ApiRequest) -> Response:
    """Ask before a link is used: what reads links ahead must not use them up."""
    request.services.limits.take_visit(request.scope)
    person = await credentials.person_of_link(request.work, request.path_params["signInToken"])
    return bare(
        request, "link.html", person=person, path=request.url.path, days=credentials.LIFETIME.days
    )


@router.post(LINK, access=_OPEN)
async def use_sign_in_link(request: ApiRequest) -> Response:
    """Use up a link, and begin a session."""
    request.services.limits.take_visit(request.scope)
    session = await credentials.sign_in_by_link(request.work, request.path_params["signInToken"])
    return await begun(request, session, "/")


@router.post("/sign-out", access=Access(credential="browser", page=True))
async def sign_out(request: ApiRequest) -> Response:
    """End the session at once."""
    return await ended(request, "/sign-in")


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


@router.get(
    CALLBACK,
    access=Access(credential="none", page=True, writes=True, transaction=False, raw=True),
)
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
        answer = await begun(request, await credentials.begin_session(work, user_id), attempt.next)
    answer.delete_cookie(
        attempt_cookie(services.settings),
        path="/",
        secure=is_secure(services.settings),
        httponly=True,
        samesite="lax",
    )
    return answer


async def begun(request: ApiRequest, session: credentials.BegunSession, path: str) -> Response:
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
        await credentials.end_session(request.work, earlier.token)


async def is_signed_in(request: ApiRequest) -> bool:
    """True for a request with the cookie of a live session."""
    cookie = read_session(request.scope, request.services.settings)
    if cookie is None:
        return False
    return bool(await credentials.browser_session_user(request.work, cookie.digest))
