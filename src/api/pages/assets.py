"""The files of the pages, and what a browser may do with them."""

from collections.abc import Mapping
from pathlib import Path

from starlette.responses import Response

_DIRECTORY = Path(__file__).parent

_TYPES = {".js": "text/javascript", ".css": "text/css"}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    # A page and its parts are always of the same build.
    "Cache-Control": "no-cache",
}

_LIBRARY = _DIRECTORY.parent / "static" / "d3-dag.js"

_ASSETS = {
    name: path.read_bytes()
    for name, path in (
        *((path.name, path) for path in (*_DIRECTORY.iterdir(), _LIBRARY)),
        *((f"canvas/{path.name}", path) for path in (_DIRECTORY / "canvas").iterdir()),
    )
    if path.suffix in _TYPES
}
_SHELLS = {path.stem: path.read_bytes() for path in _DIRECTORY.glob("*.html")}


def shell(name: str) -> Response:
    """A page, the same for every reader: what it shows, it asks the API for."""
    return Response(_SHELLS[name], headers=_HEADERS, media_type="text/html")


def asset(name: str) -> Response | None:
    """One of the pages' files, or None."""
    content = _ASSETS.get(name)
    if content is None:
        return None
    return Response(content, headers=_HEADERS, media_type=_TYPES[Path(name).suffix])
