"""Filters of run lists, and the newest runs that fit one, however many have ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Subquery,
    Text,
    func,
    literal,
    select,
    true,
    union_all,
)

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import IS_ENDED, IS_OPEN, automation_run

_run = automation_run.c
NEWEST_FIRST = (_run.created_at.desc(), _run.id.desc())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """The runs that a list holds; `since` and `until` bound `created_at`."""

    status: RunStatus | None = None
    source: RunSource | None = None
    since: datetime | None = None
    until: datetime | None = None
    with_tests: bool = True

    @property
    def sources(self) -> Sequence[RunSource]:
        """The sources that a run may have."""
        if self.source is not None:
            return (self.source,)
        return [one for one in RunSource if self.with_tests or one is not RunSource.TEST]

    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions that a row satisfies."""
        conditions: list[ColumnElement[bool]] = []
        if self.status is not None:
            conditions.append(_run.status == self.status)
        if self.source is not None:
            conditions.append(_run.source == self.source)
        if not self.with_tests:
            conditions.append(_run.source != RunSource.TEST)
        if self.since is not None:
            conditions.append(_run.created_at >= self.since)
        if self.until is not None:
            conditions.append(_run.created_at < self.until)
        return conditions


def newest(runs: Select[Any], filters: RunFilter, limit: int) -> Select[Any]:
    """Narrow `runs` to the ones a filter lets through that may be among the newest.

    A rare state or source is not looked for along all runs of a workspace: the newest of each state
    and source are read from where an index has them.
    """
    fitting = runs.where(*filters.conditions())
    if filters.status is None and filters.source is None:
        return fitting
    return fitting.where(_run.id.in_(union_all(*_newest_ids(fitting, filters, limit))))


def _newest_ids(fitting: Select[Any], wanted: RunFilter, limit: int) -> Iterator[Select[Any]]:
    ids = fitting.with_only_columns(_run.id).order_by(*NEWEST_FIRST).limit(limit)
    if wanted.status is None or wanted.status in OPEN_RUN:
        yield select(ids.where(IS_OPEN).subquery().c.id)
    if wanted.status is None or wanted.status in ENDED_RUN:
        status = _each(ENDED_RUN if wanted.status is None else (wanted.status,), "of_status")
        source = _each(wanted.sources, "of_source")
        both = (_run.status == status.c.value, _run.source == source.c.value)
        line = ids.where(IS_ENDED, *both).correlate(status, source).lateral("line")
        yield select(line.c.id).select_from(status.join(source, true()).join(line, true()))


def _each(values: Sequence[StrEnum], name: str) -> Subquery:
    array = literal([value.value for value in values], ARRAY(Text))
    return select(func.unnest(array).label("value")).subquery(name)
