"""The look at what a rule watches: one statement for each kind of condition, on indexes alone."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from models.automation.alert_rules.conditions import (
    ConnectionFailingCondition,
    DurationCondition,
    FailuresCondition,
    QueueAgeCondition,
    SilenceCondition,
    WorkerGoneCondition,
)
from models.automation.alert_rules.errors import TooSlowError
from models.automation.alert_rules.rules import Sight, counted, minutes_since, spoken
from models.automation.automation_runs import watched_runs
from models.automation.automation_runs.rules import ENDED_RUN, RunStatus
from models.core.access.rules import Actor
from models.core.lifecycle.workers import last_sign
from models.sources.connections.health import failing
from runtime.database import UnitOfWork

LONGEST = "1s"
"""The time that the look at one rule may take."""

Condition = Any
"""One of the conditions, of the kind that its function takes."""


class Watch(NamedTuple):
    """The sight of an actor, and since when the rule is watched and would hold."""

    actor: Actor
    since: datetime
    pending_since: datetime | None = None


async def look(work: UnitOfWork, watch: Watch, condition: Condition) -> Sight:
    """Look whether a condition holds now, for what the actor sees. Raises TooSlowError."""
    before = await work.scalar(select(func.current_setting("statement_timeout")))
    await work.execute(select(func.set_config("statement_timeout", LONGEST, True)))
    try:
        sight = await _LOOKS[type(condition)](work, watch, condition)
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        raise TooSlowError from error
    await work.execute(select(func.set_config("statement_timeout", before, True)))
    return sight


async def _failures(work: UnitOfWork, watch: Watch, condition: FailuresCondition) -> Sight:
    query = condition.query
    since = work.now_after(-60 * condition.minutes)
    failed = await watched_runs.failed_since(
        work, watch.actor, query.automation_id, query.filter(work.now), since, condition.runs
    )
    holds = len(failed) >= condition.runs
    number = counted(len(failed), "run")
    message = f"{number}{' or more' if holds else ''} failed within {spoken(condition.minutes)}."
    newest = max(failed, key=lambda run: run.moment, default=None)
    return Sight(holds, message, len(failed), None if newest is None else newest.id)


async def _silence(work: UnitOfWork, watch: Watch, condition: SilenceCondition) -> Sight:
    query, since = condition.query, work.now_after(-60 * condition.minutes)
    assert query.automation_id is not None, "the shape demands it"
    statuses = (RunStatus.SUCCEEDED,) if condition.outcome == "succeeded" else ENDED_RUN
    found = await watched_runs.ended_since(
        work, watch.actor, query.automation_id, query.filter(work.now), since, statuses
    )
    if found is not None:
        length = spoken(minutes_since(found.moment, work.now))
        return Sight(False, f"A run {condition.outcome} {length} ago.", run_id=found.id)
    message = f"No run has {condition.outcome} for {spoken(condition.minutes)}."
    if watch.since > since:
        return Sight(False, f"{message} The rule has not watched for so long.")
    return Sight(True, message)


async def _duration(work: UnitOfWork, watch: Watch, condition: DurationCondition) -> Sight:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await watched_runs.longest_active(
        work, watch.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return Sight(False, f"No run takes longer than {spoken(condition.minutes)}.")
    minutes = minutes_since(run.moment, work.now)
    return Sight(True, f"A run takes {spoken(minutes)}.", minutes, run.id)


async def _queue_age(work: UnitOfWork, watch: Watch, condition: QueueAgeCondition) -> Sight:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await watched_runs.oldest_queued(
        work, watch.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return Sight(False, f"No run has been queued for {spoken(condition.minutes)}.")
    minutes = minutes_since(run.moment, work.now)
    return Sight(True, f"A run has been queued for {spoken(minutes)}.", minutes, run.id)


async def _worker_gone(work: UnitOfWork, watch: Watch, condition: WorkerGoneCondition) -> Sight:
    # A worker that ended in order is forgotten at once: then the first look counts.
    last = await last_sign(work) or watch.pending_since or work.now
    minutes = minutes_since(last, work.now)
    if minutes < condition.minutes:
        message = f"A worker was there {spoken(minutes)} ago."
        return Sight(False, message, minutes, pending_since=last)
    message = f"No worker has been there for {spoken(minutes)}."
    return Sight(True, message, minutes, pending_since=last)


async def _connection_failing(
    work: UnitOfWork, watch: Watch, condition: ConnectionFailingCondition
) -> Sight:
    row = await failing(work, watch.actor, condition.connection_id)
    if row is None:
        return Sight(False, "The last call through the connection succeeded.", 0)
    minutes = minutes_since(row.failing_since, work.now)
    holds = row.failures >= condition.failures and minutes >= condition.minutes
    calls = counted(row.failures, "call")
    message = f"{calls} in a row failed within {spoken(minutes)}: {row.message}"
    return Sight(holds, message, row.failures)


_LOOKS: Mapping[type, Callable[[UnitOfWork, Watch, Condition], Awaitable[Sight]]] = {
    FailuresCondition: _failures,
    SilenceCondition: _silence,
    DurationCondition: _duration,
    QueueAgeCondition: _queue_age,
    WorkerGoneCondition: _worker_gone,
    ConnectionFailingCondition: _connection_failing,
}
