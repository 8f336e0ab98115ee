"""A query through a view: the view's filter holds too, the rest of it where the query is silent."""

from collections.abc import Mapping
from typing import Any

from models.data.records.shapes import RecordQuery

_REST = ("sorts", "search", "groupBy", "aggregates")


def through_view(body: RecordQuery, manifest: Mapping[str, Any]) -> RecordQuery:
    """The query a client described, narrowed and completed by the manifest of a view.

    Raises pydantic's `ValidationError` for a manifest that is none.
    """
    asked = body.model_dump(by_alias=True, exclude_unset=True)
    merged = {name: manifest[name] for name in _REST if manifest.get(name)} | asked
    filters = [one for one in (manifest.get("filter"), asked.get("filter")) if one]
    if filters:
        merged["filter"] = filters[0] if len(filters) == 1 else {"and": filters}
    shown = [one["key"] for one in manifest.get("fields") or () if one.get("visible", True)]
    if shown:
        merged.setdefault("fields", shown)
    return RecordQuery.model_validate(merged)
