"""Files of the console: their address holds a digest of all of them, so a browser keeps them."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.responses import Response

from api.kernel.representations import Prepared
from api.kernel.routing import Access, ApiRequest, Router
from runtime.errors import NotFoundError

_HERE = Path(__file__).parent
_STATIC = _HERE.parent / "static"
_LIBRARIES = (_STATIC / "htmx.js", *_STATIC.glob("ace*"), *_STATIC.glob("vue*"))
"""The last ones are for the editor of automations and for databases; no other page loads them."""
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}


def _contents() -> Mapping[str, bytes]:
    paths = sorted((*(_HERE / "assets").iterdir(), *_LIBRARIES))
    return {path.name: path.read_bytes() for path in paths if path.suffix in _TYPES}


_CONTENTS = _contents()
DIGEST = hashlib.sha256(b"".join(_CONTENTS.values())).hexdigest()[:12]

router = Router(tags=["console"])


def address(name: str) -> str:
    """The path of a file of this build."""
    if name not in _CONTENTS:
        raise KeyError(name)
    return f"/console/{DIGEST}/{name}"


@router.get(
    "/console/{digest}/{consoleFile}",
    access=Access(credential="none", transaction=False),
    documented=False,
)
async def get_console_file(request: ApiRequest) -> Response:
    """Read a file of the console's pages."""
    name = request.path_params["consoleFile"]
    if name not in _CONTENTS or request.path_params["digest"] != DIGEST:
        raise NotFoundError("path")
    return _prepared(name).answer(request)


@cache
def _prepared(name: str) -> Prepared:
    """A file, compressed when it is first asked for."""
    return Prepared.of(_CONTENTS[name], _TYPES[Path(name).suffix], _KEPT)
