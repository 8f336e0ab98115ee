"""The documentation page, whole from this package: no script comes from elsewhere."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from api.kernel.prepared import Prepared

_STATIC = Path(__file__).parent.parent / "static"

_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Workspace Platform API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/initialize.js"></script>
</body>
</html>
"""

_INITIALIZE = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  filter: true,
  persistAuthorization: true,
  validatorUrl: null,
});
"""

_ASSETS: Mapping[str, str] = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "initialize.js": "text/javascript; charset=utf-8",
}


@cache
def page() -> Prepared:
    """The page itself."""
    headers = {"Content-Security-Policy": _POLICY}
    return Prepared.of(_PAGE.encode(), "text/html; charset=utf-8", headers)


@cache
def asset(name: str) -> Prepared | None:
    """One of the page's files, or None."""
    media_type = _ASSETS.get(name)
    if media_type is None:
        return None
    own = name == "initialize.js"
    content = _INITIALIZE.encode() if own else (_STATIC / name).read_bytes()
    return Prepared.of(content, media_type, {"Cache-Control": "max-age=3600"})
