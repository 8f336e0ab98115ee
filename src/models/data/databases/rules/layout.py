"""The layout of a record page (interface, recordLayout; defaults of decisions C5)."""

from collections.abc import Iterator
from typing import Any

from models.core.base import JsonObject
from models.data.databases.rules.layout_options import (
    ContentPosition,
    PageWidth,
    PropertyDensity,
)
from models.data.databases.shapes import ChangeRecordLayout
from models.data.fields.rules.field_keys import FieldHints
from models.data.fields.rules.fields import FieldSpecs
from runtime.errors import Detail


def default_layout() -> JsonObject:
    """The layout of a database nobody has arranged yet."""
    return {
        "version": 1,
        "pageWidth": PageWidth.STANDARD.value,
        "propertyColumns": 1,
        "propertyDensity": PropertyDensity.COMFORTABLE.value,
        "propertyOrder": [],
        "hiddenFieldKeys": [],
        "sections": [],
        "contentPosition": ContentPosition.BELOW.value,
        "showComments": True,
        "showActivity": True,
        "pinnedFieldKeys": [],
        "autoAddNewFields": True,
        "collapsedSectionIds": [],
        "relationViews": {},
        "showReferences": True,
    }


_KEY_LISTS = ("propertyOrder", "hiddenFieldKeys", "pinnedFieldKeys")


def changed_layout(layout: JsonObject, body: ChangeRecordLayout) -> JsonObject:
    """The layout with what a body names, one version on."""
    named = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"version"})
    return {**layout, **named, "version": layout["version"] + 1}


def layout_problems(layout: JsonObject, fields: FieldSpecs, path: str) -> list[Detail]:
    """Problems of a layout: keys that name no field, and sections that overlap or repeat."""
    hints = FieldHints(fields)
    problems = [
        Detail(f"{path}.{place}", hints.no_field(key))
        for place, key in _named_fields(layout)
        if key not in fields
    ]
    sections = [section["id"] for section in layout["sections"]]
    problems += [
        Detail(f"{path}.sections.{place}.id", "is the id of an earlier section")
        for place, id_ in enumerate(sections)
        if id_ in sections[:place]
    ]
    problems += [
        Detail(f"{path}.collapsedSectionIds.{place}", "is not the id of a section")
        for place, id_ in enumerate(layout["collapsedSectionIds"])
        if id_ not in sections
    ]
    problems += [
        Detail(f"{path}.relationViews.{key}", hints.no_relation(key))
        for key in layout["relationViews"]
        if key not in fields or not fields[key].relation
    ]
    return problems


def _named_fields(layout: JsonObject) -> Iterator[tuple[str, str]]:
    for name in _KEY_LISTS:
        for place, key in enumerate(layout[name]):
            yield f"{name}.{place}", key
    for number, section in enumerate(layout["sections"]):
        for place, key in enumerate(section["fieldKeys"]):
            yield f"sections.{number}.fieldKeys.{place}", key


def layout_with(layout: JsonObject, fields: FieldSpecs, new_keys: list[str]) -> JsonObject:
    """The layout after fields were added, which come last in the order."""
    if not layout["autoAddNewFields"]:
        return layout
    order = layout["propertyOrder"] or [
        key for key, spec in fields.items() if not spec.title and key not in new_keys
    ]
    return {
        **layout,
        "propertyOrder": [*order, *(key for key in new_keys if key not in order)],
        "version": layout["version"] + 1,
    }


def layout_without(layout: JsonObject, key: str) -> JsonObject:
    """The layout after a field was removed."""
    changes: dict[str, Any] = {name: _without(layout[name], key) for name in _KEY_LISTS}
    changes["sections"] = [
        {**section, "fieldKeys": _without(section["fieldKeys"], key)}
        for section in layout["sections"]
    ]
    changes["relationViews"] = {
        name: view for name, view in layout["relationViews"].items() if name != key
    }
    new_layout = {**layout, **changes}
    return layout if new_layout == layout else {**new_layout, "version": layout["version"] + 1}


def _without(keys: list[str], key: str) -> list[str]:
    return [each for each in keys if each != key]
