"""Checks of the conditions of alert rules: one statement for each kind, on indexes alone."""

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
from models.automation.alert_rules.rules import CheckResult, counted, minutes_since, spoken
from models.automation.automation_runs import watched_runs
from models.automation.automation_runs.rules import ENDED_RUN, RunStatus
from models.core.access.rules import Actor
from models.core.lifecycle.workers import last_sign
from models.sources.connections.health import failing
from runtime.database import UnitOfWork

LONGEST = "1s"
"""The time that the check of one rule may take."""

Condition = Any
"""One of the conditions, of the kind that its function takes."""


class CheckContext(NamedTuple):
    """The actor whose rights count, and since when the rule is watched and would hold."""

    actor: Actor
    since: datetime
    pending_since: datetime | None = None


async def check(work: UnitOfWork, context: CheckContext, condition: Condition) -> CheckResult:
    """Check whether a condition holds now, for what the actor sees. Raises TooSlowError."""
    before = await work.scalar(select(func.current_setting("statement_timeout")))
    await work.execute(select(func.set_config("statement_timeout", LONGEST, True)))
    try:
        result = await _CHECKS[type(condition)](work, context, condition)
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        raise TooSlowError from error
    await work.execute(select(func.set_config("statement_timeout", before, True)))
    return result


async def _failures(
    work: UnitOfWork, context: CheckContext, condition: FailuresCondition
) -> CheckResult:
    query = condition.query
    since = work.now_after(-60 * condition.minutes)
    failed = await watched_runs.failed_since(
        work, context.actor, query.automation_id, query.filter(work.now), since, condition.runs
    )
    holds = len(failed) >= condition.runs
    number = counted(len(failed), "run")
    message = f"{number}{' or more' if holds else ''} failed within {spoken(condition.minutes)}."
    newest = max(failed, key=lambda run: run.moment, default=None)
    return CheckResult(holds, message, len(failed), None if newest is None else newest.id)


async def _silence(
    work: UnitOfWork, context: CheckContext, condition: SilenceCondition
) -> CheckResult:
    query, since = condition.query, work.now_after(-60 * condition.minutes)
    assert query.automation_id is not None, "the shape demands it"
    statuses = (RunStatus.SUCCEEDED,) if condition.outcome == "succeeded" else ENDED_RUN
    found = await watched_runs.ended_since(
        work, context.actor, query.automation_id, query.filter(work.now), since, statuses
    )
    if found is not None:
        length = spoken(minutes_since(found.moment, work.now))
        return CheckResult(False, f"A run {condition.outcome} {length} ago.", run_id=found.id)
    message = f"No run has {condition.outcome} for {spoken(condition.minutes)}."
    if context.since > since:
        return CheckResult(False, f"{message} The rule has not watched for so long.")
    return CheckResult(True, message)


async def _duration(
    work: UnitOfWork, context: CheckContext, condition: DurationCondition
) -> CheckResult:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await watched_runs.longest_active(
        work, context.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return CheckResult(False, f"No run takes longer than {spoken(condition.minutes)}.")
    minutes = minutes_since(run.moment, work.now)
    return CheckResult(True, f"A run takes {spoken(minutes)}.", minutes, run.id)


async def _queue_age(
    work: UnitOfWork, context: CheckContext, condition: QueueAgeCondition
) -> CheckResult:
    query, before = condition.query, work.now_after(-60 * condition.minutes)
    run = await watched_runs.oldest_queued(
        work, context.actor, query.automation_id, query.filter(work.now), before
    )
    if run is None:
        return CheckResult(False, f"No run has been queued for {spoken(condition.minutes)}.")
    minutes = minutes_since(run.moment, work.now)
    return CheckResult(True, f"A run has been queued for {spoken(minutes)}.", minutes, run.id)


async def _worker_gone(
    work: UnitOfWork, context: CheckContext, condition: WorkerGoneCondition
) -> CheckResult:
    # A worker that ended in order is forgotten at once: then the first check counts.
    last = await last_sign(work) or context.pending_since or work.now
    minutes = minutes_since(last, work.now)
    if minutes < condition.minutes:
        message = f"A worker was there {spoken(minutes)} ago."
        return CheckResult(False, message, minutes, pending_since=last)
    message = f"No worker has been there for {spoken(minutes)}."
    return CheckResult(True, message, minutes, pending_since=last)


async def _connection_failing(
    work: UnitOfWork, context: CheckContext, condition: ConnectionFailingCondition
) -> CheckResult:
    row = await failing(work, context.actor, condition.connection_id)
    if row is None:
        return CheckResult(False, "The last call through the connection succeeded.", 0)
    minutes = minutes_since(row.failing_since, work.now)
    holds = row.failures >= condition.failures and minutes >= condition.minutes
    calls = counted(row.failures, "call")
    message = f"{calls} in a row failed within {spoken(minutes)}: {row.message}"
    return CheckResult(holds, message, row.failures)


_CHECKS: Mapping[type, Callable[[UnitOfWork, CheckContext, Condition], Awaitable[CheckResult]]] = {
    FailuresCondition: _failures,
    SilenceCondition: _silence,
    DurationCondition: _duration,
    QueueAgeCondition: _queue_age,
    WorkerGoneCondition: _worker_gone,
    ConnectionFailingCondition: _connection_failing,
}
