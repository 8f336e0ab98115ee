"""Expressions that grow: bounded wherever they are evaluated, and when they are compiled."""

import resource
import time

import pytest

import runtime.processes.bounded_processes
from models.core.expressions.rules.errors import ExpressionError, ExpressionLimitError
from models.core.expressions.rules.expressions import compile_expression
from models.core.expressions.rules.json_values import ResultReader
from runtime.processes.bounded_processes import WouldBlockError, evaluate_bounded
from tests.support.attacks import DOUBLED, GROWING


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.processes.bounded_processes, "SECONDS", 0.5)


@pytest.mark.long
@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_an_endlessly_growing_expression_fails_by_its_limit_outside_this_process(text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF)
    with pytest.raises(ExpressionLimitError):
        compile_expression(text).evaluate({})
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 64 * 1024
    assert after.ru_utime - before.ru_utime < 1


@pytest.mark.parametrize(
    "text",
    [
        "optional.of(1)" + ".optMap(x, x)" * 18,
        "[1]" + ".map(x,{x:x})" * 22,
        "[1]" + ".map(x,[x])" * 60,
    ],
    ids=["repeated", "types", "deep"],
)
def test_an_expression_that_takes_long_to_compile_is_refused_at_once(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(ExpressionError):
        compile_expression(text)
    assert time.thread_time() - began < 0.5


def test_a_large_expression_has_the_same_result() -> None:
    numbers = list(range(800))
    evaluated = compile_expression("trigger.map(x, {'n': x, 'at': timestamp(x)})").evaluate(
        {"trigger": numbers}
    )
    assert isinstance(evaluated, list)
    assert evaluated[1] == {"n": 1, "at": "1970-01-01T00:00:01.000Z"}
    assert len(evaluated) == 800


def test_a_result_has_8_mib_at_most_with_32_bytes_more_for_each_value() -> None:
    whole = 8 * 1024 * 1024
    assert ResultReader().read("x" * (whole - 32))
    assert ResultReader().read([None] * (whole // 32 - 1))
    for large in ("x" * (whole - 31), [None] * (whole // 32)):
        with pytest.raises(ExpressionLimitError):
            ResultReader().read(large)


@pytest.mark.long
async def test_a_loop_is_not_stopped() -> None:
    with pytest.raises(WouldBlockError):
        compile_expression(DOUBLED).evaluate({})
    with pytest.raises(ExpressionLimitError):
        await evaluate_bounded(lambda: compile_expression(DOUBLED).evaluate({}))
    assert await evaluate_bounded(lambda: compile_expression("1 + 1").evaluate({})) == 2
