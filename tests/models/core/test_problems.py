"""What is wrong with an input, in words that say what is known."""

from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import Field

from models.core.base import Input
from models.core.problems import sentence


class Circle(Input):
    kind: Literal["circle"]
    line_width: int = 1


class Square(Input):
    kind: Literal["square"]
    side: int = 1


class Drawing(Input):
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]]
    frame: Circle | None = None


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"shapes": [], "color": 1}, "shapes, frame"),
        ({"shapes": [{"kind": "circle", "radius": 1}]}, "kind, lineWidth"),
        ({"shapes": [{"kind": "square", "radius": 1}]}, "kind, side"),
        ({"shapes": [{"kind": "circle", "LineWidth": 1}]}, "lineWidth, kind"),
        ({"shapes": [], "frame": {"kind": "circle", "x": 1}}, "kind, lineWidth"),
    ],
)
def test_an_unknown_key_is_told_with_those_that_are_known(given: Any, known: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refusal:
        Drawing.model_validate(given)
    (problem,) = refusal.value.errors()
    assert sentence(problem, Drawing) == f"This key is not known here; known: {known}."
