"""Rules that no worker evaluates are evaluated by the API; calls through connections are noted."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from activities.connections import noted_call
from api.kernel.services import evaluate_all_overdue
from models.automation.alert_rules.queries import alert_rule
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection, failing_connection
from runtime.clock import utc_now
from tests.support.ageing import make_automation
from tests.support.alerts import alerts, make_rule
from tests.support.incidents import failed_run
from tests.support.spaces import Space


async def test_the_api_evaluates_what_is_overdue(space: Space) -> None:
    await failed_run(space, await make_automation(space))
    rule = await make_rule(space, {"kind": "failures", "runs": 1, "minutes": 10})
    async with space.database.transaction() as work:
        this = alert_rule.c.id == rule.id
        overdue = utc_now() - timedelta(seconds=91)
        await work.execute(update(alert_rule).where(this).values(due_at=overdue))
    await evaluate_all_overdue(space.database)
    assert await alerts(space) == ["Watch it"]


async def test_calls_are_counted_until_one_succeeds(space: Space) -> None:
    body = CreateConnection.model_validate({"provider": "demo", "label": "Prices", "shared": True})
    async with space.database.transaction() as work:
        made = await create_connection(work, space.actor, space.keys, body)

    async def failures() -> Any:
        this = failing_connection.c.connection_id == made.id
        async with space.database.transaction() as work:
            return await work.scalar(select(failing_connection.c.failures).where(this))

    async def call(error: Exception | None) -> None:
        def reason(failure: Exception) -> str | None:
            return "It fell." if isinstance(failure, OSError) else None

        async with noted_call(space.database, space.id, made.id, reason):
            if error is not None:
                raise error

    for error in (OSError(), OSError(), ValueError()):
        with pytest.raises(type(error)):
            await call(error)
    assert await failures() == 2
    await call(None)
    assert await failures() is None
