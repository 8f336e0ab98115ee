"""A manifest without a field that is removed from its database."""

from typing import Any

from models.core.base import JsonObject
from models.data.views.rules.kinds import NEEDED, ViewKind


def without_field(kind: ViewKind, manifest: JsonObject, key: str) -> tuple[ViewKind, JsonObject]:
    """The kind and manifest without the field `key`; a kind that needs it becomes a table."""
    kept = {name: _without(name, value, key) for name, value in manifest.items()}
    left = {name: value for name, value in kept.items() if value is not None}
    needed = all(left.get(name) is not None for name in NEEDED.get(kind, ()))
    return (kind if needed else ViewKind.TABLE), left


def _without(name: str, value: Any, key: str) -> Any:
    """One part of a manifest without a field; None when nothing is left."""
    match name:
        case "filter":
            return _pruned(value, key)
        case "sorts" | "aggregates":
            return [entry for entry in value or () if entry.get("field") != key]
        case "fields":
            return [entry for entry in value or () if entry["key"] != key]
        case "cardFields":
            return [entry for entry in value or () if entry != key]
        case "groupBy":
            return _levels_without(value, key)
        case "stackFieldKey" | "dateFieldKey" | "endDateFieldKey" | "coverFieldKey":
            return None if value == key else value
        case "chart":
            aggregate = (value or {}).get("aggregate") or {}
            gone = (value or {}).get("xFieldKey") == key or aggregate.get("field") == key
            return None if gone else value
        case "form":
            return _form_without(value, key)
        case _:
            return value


def _pruned(tree: object, key: str) -> JsonObject | None:
    """A filter without the conditions on a field; None when no condition is left."""
    if not isinstance(tree, dict):
        return None
    if "field" in tree:
        return None if tree["field"] == key else tree
    if "not" in tree:
        inner = _pruned(tree["not"], key)
        return None if inner is None else {"not": inner}
    connective, parts = next(iter(tree.items()))
    kept = [left for part in parts if (left := _pruned(part, key)) is not None]
    return {connective: kept} if kept else None


def _form_without(form: JsonObject | None, key: str) -> JsonObject | None:
    if form is None:
        return None
    questions = [
        {**question, "visibleIf": _pruned(question.get("visibleIf"), key)}
        if question.get("visibleIf")
        else question
        for question in form.get("fields", ())
        if question["key"] != key
    ]
    return {**form, "fields": questions} if questions else None


def _levels_without(
    levels: list[JsonObject] | JsonObject | None, key: str
) -> list[JsonObject] | JsonObject | None:
    """One level of groups, or a list of them, without a field."""
    if isinstance(levels, list):
        return [level for level in levels if level["field"] != key] or None
    return None if (levels or {}).get("field") == key else levels
