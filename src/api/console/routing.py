"""The router of pages, and refusals as people read them."""

import json
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from starlette.responses import Response

from api.console.rendering import bare, is_htmx, local_path, see_other, toast
from api.kernel.browsers import is_safe, session_token
from api.kernel.request import ApiRequest
from api.kernel.routing import Router
from models.workspace.impact.deletions import InUseError
from runtime.errors import PlatformError, UnauthorizedError, UnsupportedError, ValidationError


def page_router() -> Router:
    """A router whose routes are no part of the API, and are refused as people read it."""
    return Router(tags=["console"], refuse=refuse, documented=False)


_TITLES: Mapping[int, str] = {
    400: "Invalid request",
    403: "Permission denied",
    404: "Page not found",
    409: "Can't do this now",
    422: "Duplicate submission",
    429: "Too many requests",
    503: "Temporarily unavailable",
}
_MOST_SHOWN = 64 * 1024
_SECRET = "secret"  # noqa: S105  # how the names of fields begin whose text is not shown again


def refuse(request: ApiRequest, refusal: PlatformError) -> Response:
    """The answer of a page that cannot be shown, or of a form that was not taken."""
    if type(refusal) is UnauthorizedError:
        return _to_sign_in(request)
    if is_htmx(request) and not is_safe(request.scope):
        return toast(_sentence(refusal), "error", refusal.status)
    answer = bare(
        request,
        "refusal.html",
        refusal.status,
        title=_title(refusal),
        message=refusal.message,
        advice=refusal.advice,
        details=refusal.details if isinstance(refusal, ValidationError) else [],
        in_use=refusal if isinstance(refusal, InUseError) else None,
        path=request.url.path,
        fields=_sent_fields(request),
        token="" if request.cookie is None else _token(request),
        back=_back(request),
    )
    for name in ("Retry-After",):
        if name in refusal.headers:
            answer.headers[name] = refusal.headers[name]
    return answer


def _title(refusal: PlatformError) -> str:
    if isinstance(refusal, UnsupportedError):
        return "Not supported"
    return _TITLES.get(refusal.status, "Something went wrong")


def _to_sign_in(request: ApiRequest) -> Response:
    if is_htmx(request):
        target = _page_shown(request.headers.get("hx-current-url", "/"))
        return Response(status_code=401, headers={"HX-Redirect": sign_in_path(target)})
    query = request.url.query
    path = request.url.path if is_safe(request.scope) else "/"
    return see_other(sign_in_path(f"{path}?{query}" if query else path))


def _page_shown(address: str) -> str:
    """The path of the page that htmx sends a request from; any client may send any text."""
    try:
        current = urlsplit(address)
    except ValueError:
        return "/"
    return f"{current.path}?{current.query}" if current.query else current.path


def sign_in_path(target: str) -> str:
    """The page to sign in on, which leads on to the one that was wanted."""
    path = local_path(target)
    return "/sign-in" if path == "/" else f"/sign-in?next={quote(path, safe='/')}"


def _sentence(refusal: PlatformError) -> str:
    if isinstance(refusal, ValidationError) and refusal.details:
        return " ".join(
            f"{one.path.removeprefix('data.')}: {one.message}" for one in refusal.details
        )
    return refusal.message


def _token(request: ApiRequest) -> str:
    assert request.cookie is not None
    return session_token(request.services.keys, request.cookie)


def _sent_fields(request: ApiRequest) -> Mapping[str, str]:
    """The fields of a form that was not taken, to be sent once more; a file is chosen anew."""
    form = request.sent_form
    if (
        form is None
        or request.uploaded is not None
        or not form.body.raw
        or len(form.body.raw) > _MOST_SHOWN
    ):
        return {}
    fields: Mapping[str, str] = json.loads(form.body.raw)
    return {name: "" if name.startswith(_SECRET) else text for name, text in fields.items()}


def _back(request: ApiRequest) -> str:
    """The page that the form was on."""
    page: str | None = request.scope.get("page_of_form")
    return page or "/"
