"""Filters of run lists, and the newest runs that fit one, however many have ended.

Status, source, attributes and the time of acceptance are found by indexes. All else is searched for
among the newest runs that these leave, and then among those before them: a look through all would
take long.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Subquery,
    Text,
    cast,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
)

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import (
    IS_ENDED,
    IS_OPEN,
    NODE_FAILED,
    automation_run,
    node_run,
)
from models.core.base import Id

_run = automation_run.c
_node = node_run.c
Columns = Any
"""The columns of runs, of the table or of a subquery."""
NEWEST_FIRST = (_run.created_at.desc(), _run.id.desc())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """The runs that a list holds; `since` and `until` bound `created_at`."""

    status: RunStatus | None = None
    source: RunSource | None = None
    since: datetime | None = None
    until: datetime | None = None
    automation_version_id: Id | None = None
    started_since: datetime | None = None
    started_until: datetime | None = None
    ended_since: datetime | None = None
    ended_until: datetime | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    error_code: str | None = None
    failed_node_id: str | None = None
    text: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def conditions(self) -> list[ColumnElement[bool]]:
        """The conditions that a row satisfies."""
        conditions: list[ColumnElement[bool]] = []
        if self.status is not None:
            conditions.append(_run.status == self.status)
        if self.source is not None:
            conditions.append(_run.source == self.source)
        if self.since is not None:
            conditions.append(_run.created_at >= self.since)
        if self.attributes:
            conditions.append(_run.attributes.contains(dict(self.attributes)))
        # Nothing starts or ends before it is accepted.
        ends = (self.until, self.started_until, self.ended_until)
        conditions.extend(_run.created_at < until for until in ends if until is not None)
        return conditions

    @property
    def is_searched(self) -> bool:
        """Some of it is answered by no index."""
        return bool(self.searches(_run))

    def searches(self, run: Columns) -> list[ColumnElement[bool]]:
        """The conditions that no index answers, on the columns of runs."""
        seconds = func.extract(
            "epoch", func.coalesce(run.completed_at, func.now()) - run.started_at
        )
        bounds = [
            (self.automation_version_id, run.automation_version_id.__eq__),
            (self.started_since, run.started_at.__ge__),
            (self.started_until, run.started_at.__lt__),
            (self.ended_since, run.completed_at.__ge__),
            (self.ended_until, run.completed_at.__lt__),
            (self.min_seconds, seconds.__ge__),
            (self.max_seconds, seconds.__le__),
        ]
        conditions = [compare(bound) for bound, compare in bounds if bound is not None]
        if self.error_code is not None or self.failed_node_id is not None:
            conditions.append(self._has_failed_node(run))
        if self.text is not None:
            conditions.append(_contains(run, self.text))
        return conditions

    def _has_failed_node(self, run: Columns) -> ColumnElement[bool]:
        """True of runs in which a node of this id failed with this code."""
        parts = {_node.error_code: self.error_code, _node.node_id: self.failed_node_id}
        return exists().where(
            _node.workspace_id == run.workspace_id,
            _node.run_id == run.id,
            NODE_FAILED,
            *(column == value for column, value in parts.items() if value is not None),
        )


def _contains(run: Columns, text: str) -> ColumnElement[bool]:
    """True of runs with a text in their payload or error, in any case; it has no special signs.

    In the payload it is looked for as JSON writes it, too.
    """
    payload = func.lower(cast(run.trigger_payload, Text))
    spellings = {text, json.dumps(text, ensure_ascii=False)[1:-1]}
    places = [(func.lower(run.error), text), *((payload, one) for one in sorted(spellings))]
    return or_(*(func.strpos(place, func.lower(literal(one))) > 0 for place, one in places))


def newest(runs: Select[Any], filters: RunFilter, limit: int) -> Select[Any]:
    """Narrow `runs` to the ones a filter lets through that may be among the newest.

    A rare state or source is not looked for along all runs of a workspace: the newest of each state
    and source are read from where an index has them. Of runs with an attribute, PostgreSQL knows
    how rare they are: it goes through all of them, or through the newest runs.
    """
    fitting = runs.where(*filters.conditions())
    if filters.attributes or (filters.status is None and filters.source is None):
        return fitting
    return fitting.where(_run.id.in_(union_all(*_newest_ids(fitting, filters, limit))))


def _newest_ids(fitting: Select[Any], wanted: RunFilter, limit: int) -> Iterator[Select[Any]]:
    ids = fitting.with_only_columns(_run.id).order_by(*NEWEST_FIRST).limit(limit)
    if wanted.status is None or wanted.status in OPEN_RUN:
        yield select(ids.where(IS_OPEN).subquery().c.id)
    if wanted.status is None or wanted.status in ENDED_RUN:
        status = _each(ENDED_RUN if wanted.status is None else (wanted.status,), "of_status")
        source = _each(tuple(RunSource) if wanted.source is None else (wanted.source,), "of_source")
        both = (_run.status == status.c.value, _run.source == source.c.value)
        line = ids.where(IS_ENDED, *both).correlate(status, source).lateral("line")
        yield select(line.c.id).select_from(status.join(source, true()).join(line, true()))


def _each(values: Sequence[StrEnum], name: str) -> Subquery:
    array = literal([value.value for value in values], ARRAY(Text))
    return select(func.unnest(array).label("value")).subquery(name)
