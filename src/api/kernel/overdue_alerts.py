"""Alert rules that no worker evaluates, as when none is there: the processes of the API do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from api.kernel.services import Services, beside
from models.automation.alert_rules.evaluation import evaluate_overdue
from runtime.database import Database

log = structlog.get_logger()

SECONDS = 30.0
"""Seconds between two looks for rules that are overdue."""


@asynccontextmanager
async def overdue_alerts(services: Services) -> AsyncIterator[None]:
    """Evaluate overdue rules beside the requests."""
    async with beside(_evaluate_forever(services.database), "overdue-alerts"):
        yield


async def _evaluate_forever(database: Database) -> None:
    while True:
        try:
            await evaluate_all_overdue(database)
        except (psycopg.Error, DBAPIError, PoolTimeoutError):
            log.warning("overdue alert rules could not be evaluated", exc_info=True)
        except Exception:
            log.exception("the evaluation of overdue alert rules failed")
        await asyncio.sleep(SECONDS)


async def evaluate_all_overdue(database: Database) -> None:
    """Evaluate the rules that are overdue, some in each transaction."""
    evaluated = 1
    while evaluated:
        async with database.transaction() as work:
            evaluated = await evaluate_overdue(work)
