"""Searches among runs by what no index answers: some thousand runs for each page, and no more."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import Select, func, select
from sqlalchemy.exc import OperationalError

from models.automation.automation_runs.run_filters import NEWEST_FIRST, RunFilter, newest
from models.automation.automation_runs.tables import automation_run
from models.core.answer_budget import within_budget
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import ValidationError

LOOKED_THROUGH = 10_000
"""Runs that one page looks through."""
TIME = "4s"

_run = automation_run.c

Position = tuple[datetime, Id]
"""The place of a run in a list: the moment of its acceptance, and its id."""


async def search(
    work: UnitOfWork, runs: Select[Any], most: int, filters: RunFilter, heavy: Sequence[str]
) -> tuple[Sequence[Any], Position | None]:
    """The newest of these runs that fit, and the last that was looked at if there are more.

    Raises ValidationError when that takes too long.
    """
    candidates = newest(runs, filters, LOOKED_THROUGH).order_by(*NEWEST_FIRST)
    among = candidates.limit(LOOKED_THROUGH).subquery("candidate")
    fitting = select(among).where(*filters.searches(among.c))
    order = (among.c.created_at.desc(), among.c.id.desc())
    async with _in_time(work):
        found = await work.rows(within_budget(fitting, order, most, heavy))
    if len(found) >= most:
        return found, None
    places = candidates.with_only_columns(_run.created_at, _run.id)
    last = await work.first(places.offset(LOOKED_THROUGH - 1).limit(1))
    return found, None if last is None else (last.created_at, last.id)


@asynccontextmanager
async def _in_time(work: UnitOfWork) -> AsyncIterator[None]:
    """Give a search up that takes too long: large payloads, or many runs at once."""
    before = await work.scalar(select(func.current_setting("statement_timeout")))
    await work.execute(select(func.set_config("statement_timeout", TIME, True)))
    try:
        yield
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        message = (
            "This takes too long among so many or so large runs. Name a status, an automation or a"
            " range of time too."
        )
        raise ValidationError.at("text", message) from error
    await work.execute(select(func.set_config("statement_timeout", before, True)))
