"""The configs of actions: where their problems are, and which ids they name."""

from typing import Any
from uuid import UUID

import pytest

from models.automation.actions.rules import ActionKind, Named, checked_config, named_ids
from runtime.errors import ValidationError

ONE, TWO = (UUID(int=number) for number in (1, 2))


def step(id_: str = "a", kind: str = "delete_record", **more: Any) -> dict[str, Any]:
    return {"id": id_, "kind": kind, "config": {"recordId": str(ONE)}, **more}


def problems(kind: ActionKind, config: dict[str, Any]) -> set[str]:
    try:
        checked_config(kind, config)
    except ValidationError as refusal:
        return {detail.path for detail in refusal.details}
    return set()


@pytest.mark.parametrize(
    ("kind", "config", "places"),
    [
        (ActionKind.DELETE_RECORD, {"recordId": str(ONE)}, set()),
        (ActionKind.DELETE_RECORD, {"recordId": str(ONE), "kind": "transform"}, {"config.kind"}),
        (ActionKind.DELETE_RECORD, {}, {"config.recordId"}),
        (ActionKind.SEQUENCE, {"steps": [step("a"), step("b")]}, set()),
        (ActionKind.SEQUENCE, {"steps": [step("a"), step("a")]}, {"config.steps"}),
        (ActionKind.SEQUENCE, {"steps": []}, {"config.steps"}),
        (
            ActionKind.SEQUENCE,
            {"steps": [step("a"), step("b", config={})]},
            {"config.steps.1.config.recordId"},
        ),
        (ActionKind.SEQUENCE, {"steps": [step(config={}, input={"recordId": str(ONE)})]}, set()),
        (ActionKind.SEQUENCE, {"steps": [step(when="1 + 1")]}, {"config.steps.0.when"}),
        (ActionKind.SEQUENCE, {"steps": [step(when="1 +")]}, {"config.steps.0.when"}),
        (ActionKind.SEQUENCE, {"steps": [step(when="1 > 0")]}, set()),
        (
            ActionKind.TRANSFORM,
            {"output": {"a": {"type": "secret", "value": "token"}}},
            {"config.output.a"},
        ),
    ],
)
def test_a_problem_of_a_config_is_at_its_place(
    kind: ActionKind, config: dict[str, Any], places: set[str]
) -> None:
    assert problems(kind, config) == places


def test_the_ids_of_a_config_are_those_outside_of_bindings() -> None:
    bound = {"type": "trigger", "value": "record.id"}
    literal = {"type": "literal", "value": str(TWO)}
    found = named_ids(ActionKind.SEND_NOTIFICATION, {"userIds": [str(ONE), bound, literal, 7]})
    assert found == [Named("user", ONE), Named("user", TWO)]
    assert named_ids(ActionKind.SEND_NOTIFICATION, {"userIds": bound}) == []
    steps = [step("a"), step("b", input={"recordId": str(TWO)}), step("c"), "nonsense"]
    assert named_ids(ActionKind.SEQUENCE, {"steps": steps}) == [
        Named("record", ONE),
        Named("record", TWO),
    ]
