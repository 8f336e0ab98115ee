"""The document keeps what the released one promised (docs/compatibility.md)."""

import copy
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from tests.support.compatibility import RELEASED, breaks, released, trimmed
from tests.support.document import DOCUMENT

TODAY = date(2026, 6, 1)
LAST = max(RELEASED.iterdir(), key=lambda path: path.name)


def test_the_present_document_breaks_no_client_of_the_last_release() -> None:
    assert breaks(released(LAST), DOCUMENT, datetime.now(UTC).date()) == []


@pytest.mark.long
def test_the_words_of_a_document_do_not_count() -> None:
    assert breaks(trimmed(DOCUMENT), DOCUMENT, TODAY) == []
    assert breaks(DOCUMENT, trimmed(DOCUMENT), TODAY) == []


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _kind(value: str, **properties: Any) -> dict[str, Any]:
    return _object("kind", kind={"type": "string", "const": value}, **properties)


TEXT: dict[str, Any] = {"type": "string"}


def _post() -> dict[str, Any]:
    return {
        "parameters": [
            {"name": "sort", "in": "query", "required": False, "schema": {"type": "string"}}
        ],
        "requestBody": {
            "required": False,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Sent"}}},
        },
        "responses": {
            "200": {
                "headers": {"Link": {}},
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Answered"}}
                },
            },
            "404": {"content": {"application/json": {"schema": _kind("not_found")}}},
        },
    }


def _call(payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "parameters": [{"$ref": "#/components/parameters/Id"}],
        "requestBody": {"content": {"application/json": {"schema": payload}}},
        "responses": {},
    }


def small() -> dict[str, Any]:
    """A document with a part of every kind."""
    sent = _object(
        "name",
        name={"type": "string", "maxLength": 10},
        color={"type": "string", "enum": ["red", "blue"]},
        count={"type": "integer"},
        tree={"$ref": "#/components/schemas/Tree"},
        shape={"oneOf": [_kind("circle", radius=TEXT), _kind("square", side=TEXT)]},
    )
    answered = _object(
        "id state",
        id=TEXT,
        state={"type": "string", "enum": ["open", "closed"]},
        note=TEXT,
        shape={"oneOf": [_kind("circle", radius=TEXT), _kind("square", side=TEXT)]},
    )
    tree = _object(children={"type": "array", "items": {"$ref": "#/components/schemas/Tree"}})
    return {
        "paths": {"/things": {"post": _post()}},
        "webhooks": {"thing.made": {"post": _call(answered)}},
        "components": {"schemas": {"Sent": sent, "Answered": answered, "Tree": tree}},
    }


def _operation(document: Any) -> Any:
    return document["paths"]["/things"]["post"]


def _sent(document: Any) -> Any:
    return document["components"]["schemas"]["Sent"]


def _answered(document: Any) -> Any:
    return document["components"]["schemas"]["Answered"]


BREAKING: dict[str, Callable[[Any], object]] = {
    "an operation goes": lambda new: new["paths"].pop("/things"),
    "a webhook goes": lambda new: new["webhooks"].pop("thing.made"),
    "a parameter goes": lambda new: _operation(new)["parameters"].clear(),
    "a parameter becomes required": lambda new: _operation(new)["parameters"][0].update(
        required=True
    ),
    "a new parameter is required": lambda new: _operation(new)["parameters"].append(
        {"name": "x", "in": "query", "required": True, "schema": TEXT}
    ),
    "a parameter gets values": lambda new: _operation(new)["parameters"][0].update(
        schema={"type": "string", "enum": ["up"]}
    ),
    "a body becomes required": lambda new: _operation(new)["requestBody"].update(required=True),
    "a body goes": lambda new: _operation(new).pop("requestBody"),
    "a media type goes": lambda new: _operation(new)["requestBody"].update(content={}),
    "a status goes": lambda new: _operation(new)["responses"].pop("404"),
    "a header goes": lambda new: _operation(new)["responses"]["200"].update(headers={}),
    "a key that is sent goes": lambda new: _sent(new)["properties"].pop("color"),
    "a key becomes required": lambda new: _sent(new)["required"].append("color"),
    "a new key is required": lambda new: (
        _sent(new)["properties"].update(more=TEXT),
        _sent(new)["required"].append("more"),
    ),
    "a value is refused": lambda new: _sent(new)["properties"]["color"]["enum"].remove("red"),
    "a bound is narrower": lambda new: _sent(new)["properties"]["name"].update(maxLength=9),
    "a bound is new": lambda new: _sent(new)["properties"]["count"].update(minimum=1),
    "a pattern is new": lambda new: _sent(new)["properties"]["name"].update(pattern="^a"),
    "a type changes": lambda new: _sent(new)["properties"]["count"].update(type="string"),
    "a kind is refused": lambda new: _sent(new)["properties"]["shape"]["oneOf"].pop(),
    "a key of a kind goes": lambda new: _sent(new)["properties"]["shape"]["oneOf"][0][
        "properties"
    ].pop("radius"),
    "a tree loses its children": lambda new: new["components"]["schemas"]["Tree"][
        "properties"
    ].clear(),
    "an answered key goes": lambda new: _answered(new)["properties"].pop("note"),
    "an answered key may lack": lambda new: _answered(new)["required"].remove("id"),
    "an answered key may be null": lambda new: _answered(new)["properties"].update(
        note={"type": ["string", "null"]}
    ),
    "an answered type changes": lambda new: _answered(new)["properties"].update(
        note={"type": "integer"}
    ),
    "all answered values change": lambda new: _answered(new)["properties"].update(
        state={"type": "string", "enum": ["new"]}
    ),
    "a tag of an error changes": lambda new: _operation(new)["responses"].update(
        {"404": {"content": {"application/json": {"schema": _kind("gone")}}}}
    ),
    "a key of an answered kind goes": lambda new: _answered(new)["properties"]["shape"]["oneOf"][1][
        "properties"
    ].pop("side"),
}

HARMLESS: dict[str, Callable[[Any], object]] = {
    "nothing": lambda new: new,
    "a new operation": lambda new: new["paths"].update({"/more": {"get": {}}}),
    "a new webhook": lambda new: new["webhooks"].update({"thing.lost": {"post": {}}}),
    "a new parameter": lambda new: _operation(new)["parameters"].append(
        {"name": "x", "in": "query", "required": False, "schema": TEXT}
    ),
    "a new status": lambda new: _operation(new)["responses"].update({"409": {}}),
    "a new header": lambda new: _operation(new)["responses"]["200"]["headers"].update(ETag={}),
    "a new key to send": lambda new: _sent(new)["properties"].update(more=TEXT),
    "a key is no longer required": lambda new: _sent(new)["required"].clear(),
    "a new value to send": lambda new: _sent(new)["properties"]["color"]["enum"].append("green"),
    "a wider bound": lambda new: _sent(new)["properties"]["name"].update(maxLength=99),
    "a wider type": lambda new: _sent(new)["properties"]["count"].update(type="number"),
    "a new kind to send": lambda new: _sent(new)["properties"]["shape"]["oneOf"].append(
        _kind("line")
    ),
    "a new answered key": lambda new: _answered(new)["properties"].update(more=TEXT),
    "an answered key is always there": lambda new: _answered(new)["required"].append("note"),
    "a new answered value": lambda new: _answered(new)["properties"]["state"]["enum"].append("on"),
    "a new answered kind": lambda new: _answered(new)["properties"]["shape"]["oneOf"].append(
        _kind("line")
    ),
    "another component": lambda new: (
        new["components"]["schemas"].update(Other=_sent(new)),
        _operation(new)["requestBody"]["content"]["application/json"].update(
            schema={"$ref": "#/components/schemas/Other"}
        ),
    ),
}


@pytest.mark.parametrize("change", BREAKING)
def test_a_change_that_breaks_a_client_is_found(change: str) -> None:
    new = copy.deepcopy(small())
    BREAKING[change](new)
    assert breaks(small(), new, TODAY)


@pytest.mark.parametrize("change", HARMLESS)
def test_a_change_that_breaks_no_client_passes(change: str) -> None:
    new = copy.deepcopy(small())
    HARMLESS[change](new)
    assert breaks(small(), new, TODAY) == []


@pytest.mark.parametrize(("sunset", "allowed"), [("2026-06-01", True), ("2026-06-02", False)])
def test_a_deprecated_operation_may_be_removed_on_its_sunset(sunset: str, allowed: bool) -> None:
    mark = {"deprecated": True, "x-sunset": sunset}
    for place, change in [
        (_operation, "an operation goes"),
        (lambda old: _operation(old)["parameters"][0], "a parameter goes"),
        (lambda old: _sent(old)["properties"]["color"], "a key that is sent goes"),
        (lambda old: _answered(old)["properties"]["note"], "an answered key goes"),
    ]:
        old, new = small(), small()
        place(old).update(mark)
        BREAKING[change](new)
        assert (breaks(old, new, TODAY) == []) is allowed, change
