"""Which errors end work for good: every class of ours says it, and an unknown one is a defect."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pydantic
import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from typing_extensions import override

import runtime
from activities.database_errors import (
    UNEXPECTED_ATTEMPTS,
    DefectError,
    FinalErrorInterceptor,
    is_final,
    refusals,
)
from runtime.errors import PlatformError, ValidationError

SOURCES = Path(next(iter(runtime.__path__))).parent
ROOMS = ("runtime", "models", "activities", "workflows", "api", "cli")
MOST = 20


def _descendants(of: type[Exception]) -> Iterator[type[Exception]]:
    for kind in of.__subclasses__():
        yield kind
        yield from _descendants(kind)


def _own_errors() -> Sequence[Any]:
    for room in ROOMS:
        for found in pkgutil.walk_packages([str(SOURCES / room)], f"{room}."):
            if not found.name.startswith("models.migrations.") and "__main__" not in found.name:
                importlib.import_module(found.name)
    kinds = {kind for kind in _descendants(Exception) if kind.__module__.split(".")[0] in ROOMS}
    return sorted(kinds, key=lambda kind: (kind.__module__, kind.__qualname__))


FOREIGN: dict[str, tuple[Exception, int]] = {
    "ValueError": (ValueError("x"), UNEXPECTED_ATTEMPTS),
    "KeyError": (KeyError("x"), UNEXPECTED_ATTEMPTS),
    "TypeError": (TypeError("x"), UNEXPECTED_ATTEMPTS),
    "RuntimeError": (RuntimeError("x"), UNEXPECTED_ATTEMPTS),
    "AssertionError": (AssertionError("x"), UNEXPECTED_ATTEMPTS),
    "RecursionError": (RecursionError("x"), UNEXPECTED_ATTEMPTS),
    "IndexError": (IndexError("x"), UNEXPECTED_ATTEMPTS),
    "UnicodeEncodeError": ("\ud800".encode, 1),  # type: ignore[dict-item]
    "TimeoutError": (TimeoutError(), MOST),
    "ConnectionError": (ConnectionResetError(), MOST),
    "full disk": (OSError(28, "No space left on device"), MOST),
    "database away": (psycopg.OperationalError("gone"), MOST),
    "Temporal": (ApplicationError("again"), MOST),
}


class _Raising(ActivityInboundInterceptor):
    def __init__(self, error: BaseException) -> None:
        self._error = error

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        raise self._error


async def _attempts(error: BaseException) -> int:
    """The times Temporal would do work that ends in this error, of at most MOST."""
    passing = FinalErrorInterceptor().intercept_activity(_Raising(error))
    call = ExecuteActivityInput(fn=print, args=[], executor=None, headers={})
    for attempt in range(1, MOST + 1):
        environment = ActivityEnvironment()
        environment.info = _info(environment, attempt)
        with pytest.raises(BaseException) as raised:  # noqa: PT011  # any that comes
            await environment.run(passing.execute_activity, call)
        if isinstance(raised.value, ApplicationError) and raised.value.non_retryable:
            return attempt
    return MOST


def _info(environment: ActivityEnvironment, attempt: int) -> Any:
    return dataclasses.replace(environment.info, attempt=attempt)


def test_every_error_of_ours_says_whether_it_can_end_otherwise() -> None:
    kinds = _own_errors()
    declares = {kind: getattr(kind, "retryable", None) for kind in kinds}
    assert [kind for kind in kinds if not isinstance(declares[kind], bool | property)] == []


@pytest.mark.long
async def test_errors_of_ours_are_repeated_as_they_say() -> None:
    tried = 0
    for kind in _own_errors():
        declared = kind.retryable
        if isinstance(declared, property) or issubclass(kind, ApplicationError):
            continue
        error = kind.__new__(kind)
        error.__dict__.update(message="No.", code="no")
        assert await _attempts(error) == (MOST if declared else 1), kind
        tried += 1
    assert tried > 100


@pytest.mark.parametrize("name", FOREIGN)
async def test_other_errors_are_repeated_where_that_may_help(name: str) -> None:
    error, expected = FOREIGN[name]
    if callable(error):
        with pytest.raises(UnicodeEncodeError) as raised:
            error()
        error = raised.value
    assert await _attempts(error) == expected


def test_the_reason_that_a_row_keeps_is_a_sentence() -> None:
    class Config(pydantic.BaseModel):
        host: int

    with pytest.raises(ValidationError, match="host"), refusals():
        Config.model_validate({"host": "a"})
    with pytest.raises(KeyError), refusals():
        raise KeyError
    assert is_final(KeyError(), UNEXPECTED_ATTEMPTS)
    assert issubclass(DefectError, PlatformError)
