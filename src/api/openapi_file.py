"""The committed `openapi.json`: the document as text that is the same on every machine."""

import json

from api.reference.document import openapi_document
from api.routers import ROUTERS


def openapi_text() -> str:
    """The OpenAPI document, ready to be written to `openapi.json`."""
    document = openapi_document([route for router in ROUTERS for route in router.routes])
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
