"""Compiling in a thread that runs an event loop: long texts, and many of them, leave it."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from models.core.expressions.rules import programs
from models.core.expressions.rules.expressions import compile_expression, saved_expression
from runtime.processes import bounded_processes
from runtime.processes.bounded_processes import LOOP_STEPS, evaluate_bounded


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The thread and the length of each text that is compiled."""
    seen: list[tuple[int, int]] = []
    check: Callable[..., None] = programs._check_size  # as the first step of compiling

    def noted(library: Any, text: str) -> None:
        seen.append((threading.get_ident(), len(text)))
        check(library, text)

    monkeypatch.setattr(programs, "_check_size", noted)
    return seen


def _long(number: int) -> str:
    return " && ".join([f"trigger.turn == {number}"] * (LOOP_STEPS // 10))


async def test_a_long_text_is_compiled_beside_the_loop(compilations: list[tuple[int, int]]) -> None:
    texts = [_long(number) for number in range(20)]
    for text in texts:
        work = partial(compile_expression, text)
        assert await evaluate_bounded(work)
    assert len(compilations) == len(texts)
    assert threading.get_ident() not in {thread for thread, _ in compilations}


async def test_many_short_texts_leave_the_loop_between_two_of_them(
    compilations: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_processes, "LOOP_SECONDS", -1)
    await evaluate_bounded(
        lambda: [saved_expression(f"trigger.short == {number}") for number in range(50)]
    )
    assert len(compilations) == 50
    assert threading.get_ident() not in {thread for thread, _ in compilations}


def test_a_text_is_compiled_once_when_it_is_saved(compilations: list[tuple[int, int]]) -> None:
    """Outside a loop a text of any length is compiled where it is."""
    compile_expression(f"{_long(99)} && true")
    compile_expression("trigger.saved == 'once'")
    assert len(compilations) == 2
