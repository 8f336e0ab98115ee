"""What is wrong with an input, in words that say what is known."""

from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import Field

from models.core.base import Input
from models.core.problems import an, refusal, sentence
from runtime.errors import Detail


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
def test_an_unknown_key_is_reported_with_the_known_ones(given: Any, known: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refusal:
        Drawing.model_validate(given)
    (problem,) = refusal.value.errors()
    assert sentence(problem, Drawing) == f"Unknown key; known: {known}."


@pytest.mark.parametrize(
    ("shape", "given", "said"),
    [
        (dict[str, int], 1, "This must be a JSON object."),
        (list[int], "a", "This must be a JSON array."),
        (tuple[int, int], "a", "This must be a JSON array."),
        (set[int], "a", "This must be a JSON array."),
        (None, 1, "This must be null."),
        (
            Annotated[list[int], Field(max_length=1)],
            [1, 2],
            "Array should have at most 1 item, not 2",
        ),
        (
            Annotated[dict[str, int], Field(min_length=1)],
            {},
            "Object should have at least 1 item, not 0",
        ),
        (str, 1, "Input should be a valid string"),
    ],
)
def test_a_refusal_speaks_of_json(shape: Any, given: Any, said: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refusal:
        pydantic.TypeAdapter(shape).validate_python(given)
    assert sentence(refusal.value.errors()[0]) == said


@pytest.mark.parametrize(
    "words",
    [
        *("an approval", "an action", "an email", "an iterate", "an auto_number", "an html page"),
        *("an http_request", "an HTTP call", "an xlsx file", "an hour", "an unknown field"),
        *("a url", "a user", "a unique key", "a uuid", "a text", "a number", "a one_to_many field"),
        *(
            "a switch",
            "a hook",
            "a ssl thing",
            "an sftp connection",
            "a European zone",
        ),
    ],
)
def test_an_article_follows_the_sound(words: str) -> None:
    assert an(words.partition(" ")[2]) == words


@pytest.mark.parametrize(
    ("count", "words", "listed"),
    [
        (1, "title: is wrong", 1),
        (2, "title: is wrong (and 1 more)", 2),
        (30, "title: is wrong (and 29 more)", 20),
    ],
)
def test_a_refusal_names_the_first_problem_and_counts_the_others(
    count: int, words: str, listed: int
) -> None:
    error = refusal([Detail("title", "is wrong")] * count)
    assert error.message == words
    assert len(error.details) == listed
