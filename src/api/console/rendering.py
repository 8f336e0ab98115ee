"""Templates of the console, and the answers made of them.

For a request by htmx that replaces a part of a page, the block `live` of the template is enough.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from api.console import words
from api.console.entered import BLANK, Entered
from api.console.files import address
from api.console.shell import Called, Shell, appearance_of, shell_of
from api.kernel.browsers import PAGE_HEADERS
from api.kernel.request import ApiRequest
from runtime.errors import PlatformError

_HERE = Path(__file__).parent


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader([_HERE / "templates", *_HERE.glob("*/templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = address
    environment.globals["zip"] = zip
    environment.filters.update(words.FILTERS)
    return environment


_TEMPLATES = _environment()


def is_partial(request: ApiRequest) -> bool:
    """True for a request of htmx that replaces a part of a page."""
    return request.headers.get("hx-request-type") == "partial"


def is_htmx(request: ApiRequest) -> bool:
    return request.headers.get("hx-request") == "true"


def page(
    request: ApiRequest,
    template: str,
    shell: Shell,
    *,
    entered: Entered = BLANK,
    refusal: PlatformError | None = None,
    **context: object,
) -> Response:
    """A page, or the part of it that the request is to replace.

    With a refusal, of its own or of the form in `entered`, it has the status of that.
    """
    source = _TEMPLATES.get_template(template)
    shown = {"shell": shell, "path": request.url.path, "entered": entered, "refusal": refusal}
    values = {**shown, **context}
    refusal = refusal or entered.refusal
    if is_partial(request) and "live" in source.blocks:
        content = "".join(source.blocks["live"](source.new_context(values)))
    else:
        content = source.render(values)
    status = 200 if refusal is None else refusal.status
    return Response(content, status, headers=PAGE_HEADERS, media_type="text/html")


async def console_page(
    request: ApiRequest,
    template: str,
    *operations: Called,
    entered: Entered = BLANK,
    refusal: PlatformError | None = None,
    **context: object,
) -> Response:
    """A page of a signed-in person, for some operations of the API."""
    shell = await shell_of(request)
    context["api"] = shell.calls(*operations)
    return page(request, template, shell, entered=entered, refusal=refusal, **context)


def bare(request: ApiRequest, template: str, status: int = 200, **context: object) -> Response:
    """A page for a person who is not known: without navigation, in the look of their browser."""
    look = appearance_of(request)
    content = _TEMPLATES.get_template(template).render(context, look=look)
    return Response(content, status, headers=PAGE_HEADERS, media_type="text/html")


def toast(message: str, kind: str, status: int = 200) -> Response:
    """A message that htmx adds to the page which asked; what was typed there stays."""
    content = _TEMPLATES.get_template("toast.html").render(message=message, kind=kind)
    answer = Response(content, status, headers=PAGE_HEADERS, media_type="text/html")
    answer.headers["HX-Retarget"] = "#toasts"
    answer.headers["HX-Reswap"] = "beforeend"
    if kind == "success":
        answer.headers["HX-Trigger"] = "changed"
    return answer


def see_other(path: str) -> Response:
    """Lead to another page of ours after a form; its body is kept for a repetition."""
    return Response(path, 303, headers={"Location": path, "Cache-Control": "no-store"})
