"""Properties of a row of a Notion database, each as the text of a cell."""

from collections.abc import Mapping
from typing import Any

from models.core.base import JsonObject
from models.data.fields.rules.text_formats import digits
from models.sources.external_resources.rules.notion_markdown import plain_text


def notion_row(properties: object) -> dict[str, str]:
    """The cells of a page, by the names of its properties; empty ones are left out."""
    if not isinstance(properties, dict):
        return {}
    cells = {
        name: _text(one.get(str(one.get("type"))))
        for name, one in properties.items()
        if isinstance(one, dict)
    }
    return {name: text for name, text in cells.items() if text}


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return digits(value)
        case list():
            return _listed(value)
        case dict():
            return _object(value)
        case _:
            return ""


def _listed(values: list[Any]) -> str:
    """Rich text is one text; all else are several."""
    if values and all(isinstance(one, dict) and "plain_text" in one for one in values):
        return plain_text(values)
    return ", ".join(text for text in map(_text, values) if text)


def _object(value: Mapping[str, Any]) -> str:
    if "start" in value:
        end = value.get("end")
        return f"{value['start']}/{end}" if end else _text(value["start"])
    if isinstance(value.get("number"), int) and "prefix" in value:
        prefix = value["prefix"]
        return f"{prefix}-{value['number']}" if prefix else str(value["number"])
    for name in ("name", "title", "plain_text", "email", "url", str(value.get("type")), "id"):
        if value.get(name) not in (None, ""):
            return _text(value[name])
    return ""


def title_of(payload: JsonObject) -> str:
    """The title of a page or of a database."""
    if isinstance(payload.get("title"), list):
        return plain_text(payload["title"])
    properties = payload.get("properties")
    for one in properties.values() if isinstance(properties, dict) else ():
        if isinstance(one, dict) and one.get("type") == "title":
            return plain_text(one.get("title"))
    return ""
