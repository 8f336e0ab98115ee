"""Failures that Temporal keeps are short, and quote nothing (architecture.md#no-user-data)."""

from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import OperationalError
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError

from runtime.errors import NotFoundError
from runtime.temporal.executions import MESSAGE_LIMIT, STACK_LIMIT, data_converter

CANARY = "canary-4f1d" * 200_000


async def failure_of(raised: Exception, cause: Exception | None = None) -> Failure:
    failure = Failure()
    try:
        raise raised from cause  # noqa: TRY301  # so that it has a stack
    except Exception as error:  # noqa: BLE001  # it is what a worker does
        await data_converter.encode_failure(error, failure)
    return failure


@pytest.mark.parametrize(
    ("error", "type_", "message"),
    [
        (ValueError(CANARY), "ValueError", "ValueError at failure_of, line "),
        (NotFoundError(CANARY), "NotFoundError", "not_found at failure_of, line "),
        (
            OperationalError(CANARY, {"value": CANARY}, psycopg.errors.QueryCanceled(CANARY)),
            "OperationalError",
            "OperationalError (QueryCanceled, 57014) at failure_of, line ",
        ),
    ],
    ids=["unknown", "ours", "database"],
)
async def test_an_exception_is_reported_by_its_kind_and_place(
    error: Exception, type_: str, message: str
) -> None:
    failure = await failure_of(error, ValueError(CANARY))
    assert failure.application_failure_info.type == type_
    assert failure.message.startswith(message)
    assert "in failure_of" in failure.stack_trace
    assert "site-packages" not in failure.stack_trace
    assert failure.ByteSize() < MESSAGE_LIMIT + STACK_LIMIT
    assert "canary" not in str(failure)


async def test_our_message_of_a_failure_is_kept_without_a_stack() -> None:
    said: Any = ApplicationError("http_503", type="http_503", non_retryable=True)
    failure = await failure_of(said, ValueError(CANARY))
    assert (failure.message, failure.stack_trace) == ("http_503", "")
    assert failure.application_failure_info.non_retryable
    assert failure.cause.message == "ValueError"
    long = await failure_of(ApplicationError("x" * 10_000))
    assert len(long.message) == MESSAGE_LIMIT
