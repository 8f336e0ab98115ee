"""The documentation, whole from this package: no script comes from elsewhere.

The reference is plain HTML made from the OpenAPI document; the operations are shown by Swagger UI.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api.kernel.prepared import Prepared
from api.reference.entries import Reference
from api.reference.html import frame, pages

_STATIC = Path(__file__).parent.parent / "static"

_HTML = "text/html; charset=utf-8"
_PLAIN = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )
}
_WITH_SCRIPTS = {
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
        " frame-ancestors 'none'"
    )
}
_KEPT = {"Cache-Control": "max-age=3600"}

_HEAD = '<link rel="stylesheet" href="/docs/swagger-ui.css">\n'
_OPERATIONS = """<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/initialize.js"></script>"""

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


def documentation(document: Mapping[str, Any]) -> dict[str, Prepared]:
    """Every page and file of the documentation, by its path below `/docs/`."""
    schemas = document["components"]["schemas"]
    sections = Reference(schemas).sections()
    files = {
        path: Prepared.of(page.encode(), _HTML, _PLAIN)
        for path, page in pages(schemas, sections).items()
    }
    operations = frame("Operations", _HEAD, _OPERATIONS, sections, "operations")
    script, style = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
    return files | {
        "operations": Prepared.of(operations.encode(), _HTML, _WITH_SCRIPTS),
        "initialize.js": Prepared.of(_INITIALIZE.encode(), script, _KEPT),
        "swagger-ui-bundle.js": Prepared.of(_file("swagger-ui-bundle.js"), script, _KEPT),
        "swagger-ui.css": Prepared.of(_file("swagger-ui.css"), style, _KEPT),
    }


def _file(name: str) -> bytes:
    return (_STATIC / name).read_bytes()
