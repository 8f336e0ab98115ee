"""The API's account of itself: its OpenAPI document, and the pages that are made of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.kernel.prepared import Prepared
from api.pages.docs import documentation


@dataclass(frozen=True, slots=True)
class Documentation:
    """The document, and every page by its path below `/docs/`, as they are served."""

    document: Prepared
    pages: Mapping[str, Prepared]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Documentation":
        """Render an OpenAPI document and the pages. This takes seconds."""
        content = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        prepared = Prepared.of(content.encode(), "application/json", {})
        return cls(prepared, documentation(document))
