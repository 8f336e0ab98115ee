"""Absent, not null: what a model writes, and what its schema says of that."""

from typing import Any

from models.core.base import Id, Input, Nullable, Shape


class Branch(Shape):
    free_text: str | None
    parent_id: Nullable[Id]
    leaves: "list[Branch] | None" = None
    values: dict[str, Any]


class Twig(Branch):
    length: int | None


TWIG = Twig(
    free_text=None,
    parent_id=None,
    leaves=[Branch(free_text="x", parent_id=None, values={})],
    values={"kept": None},
    length=None,
)


def test_a_key_without_a_value_is_absent_unless_it_is_nullable() -> None:
    assert TWIG.model_dump(mode="json", by_alias=True) == {
        "parentId": None,
        "leaves": [{"freeText": "x", "parentId": None, "values": {}}],
        "values": {"kept": None},
    }


def test_the_schema_of_answers_says_so() -> None:
    schema = Twig.model_json_schema(mode="serialization")
    assert sorted(schema["required"]) == ["parentId", "values"]
    assert schema["properties"]["freeText"]["type"] == "string"
    assert schema["properties"]["leaves"]["items"] == {"$ref": "#/$defs/Branch"}
    assert {"type": "null"} in schema["properties"]["parentId"]["anyOf"]


def test_a_body_may_be_given_null() -> None:
    class Given(Input):
        icon: str | None = None

    assert Given.model_validate({"icon": None}).model_dump() == {"icon": None}
    assert {"type": "null"} in Given.model_json_schema()["properties"]["icon"]["anyOf"]
