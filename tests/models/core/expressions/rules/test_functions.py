"""What the reference says of functions is what they do."""

import pytest

from models.core.expressions.rules.expressions import compile_expression
from models.core.expressions.rules.functions import EXAMPLE_TRIGGER, FUNCTIONS, Function


@pytest.mark.parametrize("function", [pytest.param(one, id=one.name) for one in FUNCTIONS])
def test_an_example_gives_what_the_reference_says(function: Function) -> None:
    assert function.name.split(".")[-1] in function.example
    found = compile_expression(function.example).evaluate({"trigger": EXAMPLE_TRIGGER})
    assert (found, type(found)) == (function.result, type(function.result))
