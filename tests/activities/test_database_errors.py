"""No activity is repeated for what the database refuses for good (ADR 0066)."""

import dataclasses
import types
import typing
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import MagicMock
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput
from typing_extensions import override

from activities.database_errors import FinalErrorInterceptor, is_away, never_succeeds
from activities.maintenance.sweeps import Expired
from activities.parts import Parts
from activities.schedules import FireCall
from cli.work_handlers.registry import registrations_of
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import KEYS, PERIODS, RUNNING_CAP

FINAL = {
    "22P05": "a NUL in jsonb",
    "22003": "a number out of range",
    "23514": "a check, or a status that cannot change",
    "23502": "a value that is missing",
    "42P01": "a table that is not there",
    "42501": "a privilege that is missing",
    "54000": "a value too large for its index",
}
PASSING = ("08006", "40001", "40P01", "53300", "55P03", "57014", "57P01", "58030", "XX000")


def refused(sqlstate: str) -> DBAPIError:
    cause = psycopg.errors.lookup(sqlstate)("canary")
    return DBAPIError.instance("", {}, cause, psycopg.Error)  # type: ignore[return-value]


@pytest.mark.parametrize("sqlstate", FINAL)
def test_a_final_refusal_of_the_database_is_not_its_absence(sqlstate: str) -> None:
    assert never_succeeds(refused(sqlstate))
    assert not is_away(refused(sqlstate))


@pytest.mark.parametrize("sqlstate", PASSING)
def test_a_transient_error_is_repeated(sqlstate: str) -> None:
    assert not never_succeeds(refused(sqlstate), attempt=7)


def test_a_race_is_lost_once() -> None:
    for sqlstate in ("23505", "23503", "23P01"):
        assert not never_succeeds(refused(sqlstate), attempt=1)
        assert never_succeeds(refused(sqlstate), attempt=2)


async def test_the_database_itself_says_so(database: Database) -> None:
    with pytest.raises(DBAPIError) as stored:
        async with database.transaction() as work:
            await work.execute(text('SELECT \'{"a": "\\u0000"}\'::jsonb'))
    assert never_succeeds(stored.value)


class Refusing(Database):
    """Refuses every statement, as PostgreSQL refuses a NUL in jsonb."""

    @asynccontextmanager
    async def _refused(self) -> AsyncIterator[Any]:
        work = MagicMock(spec=UnitOfWork)
        for name in ("execute", "rows", "first", "scalar", "driver"):
            getattr(work, name).side_effect = refused("22P05")
        raise refused("22P05")
        yield work

    @override
    def transaction(self) -> Any:
        return self._refused()

    statement = reading = snapshot = transaction


class Reached(ActivityInboundInterceptor):
    """What the worker itself does behind all interceptors."""

    def __init__(self) -> None: ...

    @override
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await input.fn(*input.args)


@pytest.mark.parametrize("given", ["a\0", "a\ud800"])
async def test_a_text_that_the_driver_refuses_is_not_repeated(
    database: Database, given: str
) -> None:
    async def select() -> None:
        async with database.transaction() as work:
            await work.execute(text("SELECT :given || 'x'"), {"given": given})

    passing = FinalErrorInterceptor().intercept_activity(Reached())
    call = ExecuteActivityInput(fn=select, args=[], executor=None, headers={})
    with pytest.raises(ApplicationError) as raised:
        await ActivityEnvironment().run(passing.execute_activity, call)
    assert raised.value.non_retryable


SWEEPS = {"remove_orphaned_objects", "reconcile_schedules"}
"""They ask the store, or Temporal, before the database."""
ARGUMENTS: Mapping[str, Any] = {
    "accept_scheduled_run": FireCall(f"{WorkflowKind.MOUNT_SCHEDULE}/{uuid4()}", datetime.now(UTC)),
    "advance_legacy_import": f"{WorkflowKind.LEGACY_IMPORT}/{uuid4()}",
    "read_end": f"{WorkflowKind.EXPORT}/{uuid4()}",
    "purge_expired": Expired.ITEMS,
}
"""Of activities whose argument is more than a word."""


def every_activity() -> list[tuple[str, Callable[..., Any]]]:
    parts = Parts(
        Refusing("postgresql://nowhere/none"),
        MagicMock(),
        MagicMock(),
        KEYS,
        ObjectStore("memory://"),
        PERIODS,
        RUNNING_CAP,
    )
    by_name = {
        cast("Any", one).__temporal_activity_definition.name
        if hasattr(one, "__temporal_activity_definition")
        else one.__name__: one
        for queue in registrations_of(parts).activities.values()
        for one in queue
    }
    return sorted(by_name.items())


def example(kind: Any) -> Any:
    """A value that an activity takes for its argument."""
    if typing.get_origin(kind) in {typing.Union, types.UnionType}:
        return example(typing.get_args(kind)[0])
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        missing = dataclasses.MISSING
        return cast("Any", kind)(
            **{
                each.name: example(hints[each.name])
                for each in dataclasses.fields(kind)
                if each.default is missing and each.default_factory is missing
            }
        )
    origin = typing.get_origin(kind) or kind
    return str(uuid4()) if origin is str else origin()


@pytest.mark.parametrize(
    ("name", "function"), every_activity(), ids=lambda one: one if isinstance(one, str) else ""
)
async def test_no_activity_is_repeated_for_a_refusal(
    name: str, function: Callable[..., Any]
) -> None:
    hints = typing.get_type_hints(function)
    hints.pop("return", None)
    known = [ARGUMENTS[name]] if name in ARGUMENTS else None
    arguments = known or [example(kind) for kind in hints.values()]
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, start_to_close_timeout=timedelta(seconds=5)
    )
    passing = FinalErrorInterceptor().intercept_activity(Reached())
    given = ExecuteActivityInput(fn=function, args=arguments, executor=None, headers={})
    if name in SWEEPS:
        return
    with pytest.raises(ApplicationError) as raised:
        await environment.run(passing.execute_activity, given)
    assert raised.value.non_retryable
    assert "canary" not in str(raised.value)
