"""The way into the console and out of it (ADR 0082)."""

from starlette.responses import Response

from api.console.rendering import bare, page, see_other
from api.console.routing import page_router
from api.console.shell import home_of, local_path, shell_of
from api.console.sign_in.cookies import begun, ended, is_signed_in
from api.console.sign_in.provider import START
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest
from models.people.browser_sessions import commands, queries
from models.people.browser_sessions.rules import LIFETIME, LINK_LIFETIME

router = page_router()

LINK = "/sign-in/{signInToken}"
_OPEN = Access(credential="none", page=True)


@router.get("/", access=Access(credential="browser", page=True))
async def get_start(request: ApiRequest) -> Response:
    """Lead to the first workspace of the caller."""
    shell = await shell_of(request)
    if not shell.workspaces:
        return page(request, "no_workspace.html", shell)
    return see_other(home_of(shell.workspaces[0].workspace.id))


@router.get("/sign-in", access=_OPEN)
async def get_sign_in(request: ApiRequest, next: str | None = None) -> Response:  # noqa: A002
    """Say how to sign in; who is signed in already is led on."""
    if await is_signed_in(request):
        return see_other(local_path(next))
    minutes = round(LINK_LIFETIME.total_seconds() / 60)
    provider = request.services.provider
    return bare(
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
    person = await queries.person_of_link(request.work, request.path_params["signInToken"])
    return bare("link.html", person=person, path=request.url.path, days=LIFETIME.days)


@router.post(LINK, access=_OPEN)
async def use_sign_in_link(request: ApiRequest) -> Response:
    """Use up a link, and begin a session."""
    request.services.limits.take_visit(request.scope)
    session = await commands.sign_in_by_link(request.work, request.path_params["signInToken"])
    return await begun(request, session, "/")


@router.post("/sign-out", access=Access(credential="browser", page=True))
async def sign_out(request: ApiRequest) -> Response:
    """End the session at once."""
    return await ended(request, "/sign-in")
