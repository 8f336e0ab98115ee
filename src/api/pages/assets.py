"""The files of the pages, and what a browser may do with them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.responses import Response

from api.kernel.representations import Prepared

_DIRECTORY = Path(__file__).parent

_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

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
        *((f"{path.parent.name}/{path.name}", path) for path in _DIRECTORY.glob("*/*")),
    )
    if path.suffix in _TYPES
}
_SHELLS = {path.stem: path.read_bytes() for path in _DIRECTORY.glob("*.html")}


def shell(name: str) -> Response:
    """A page, the same for every reader: what it shows, it asks the API for."""
    return Response(_SHELLS[name], headers=_HEADERS, media_type="text/html")


def asset(name: str) -> Prepared | None:
    """One of the pages' files, or None."""
    return _prepared(name) if name in _ASSETS else None


@cache
def _prepared(name: str) -> Prepared:
    """A file, compressed when it is first asked for."""
    return Prepared.of(_ASSETS[name], _TYPES[Path(name).suffix], _HEADERS)
