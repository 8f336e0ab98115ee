"""Filters of run lists: on the wire, as conditions, and searches that read a bounded part.

Status, source, attributes and the time of acceptance are found by indexes. Everything else that a
filter names is searched for among the newest runs that these leave, and then among those before
them: a look through all would take long.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import psycopg
import sqlalchemy as sa
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_jsonable_python
from sqlalchemy.exc import OperationalError

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import (
    IS_ENDED,
    IS_OPEN,
    NODE_FAILED,
    automation_run,
    node_run,
)
from models.automation.automations.queries import AUTOMATION, VERSION, open_automations
from models.automation.automations.rules.attributes import KEY_PATTERN, MAX_ATTRIBUTES
from models.core.access.rules import Actor, Level
from models.core.base import Id, Input, InputId, JsonObject
from models.core.pagination import within_budget
from models.core.values import InputMoment
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError

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

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """The conditions that a row satisfies."""
        conditions: list[sa.ColumnElement[bool]] = []
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

    def searches(self, run: Columns) -> list[sa.ColumnElement[bool]]:
        """The conditions that no index answers, on the columns of runs."""
        seconds = sa.func.extract(
            "epoch", sa.func.coalesce(run.completed_at, sa.func.now()) - run.started_at
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

    def _has_failed_node(self, run: Columns) -> sa.ColumnElement[bool]:
        """True of runs in which a node of this id failed with this code."""
        parts = {_node.error_code: self.error_code, _node.node_id: self.failed_node_id}
        return sa.exists().where(
            _node.workspace_id == run.workspace_id,
            _node.run_id == run.id,
            NODE_FAILED,
            *(column == value for column, value in parts.items() if value is not None),
        )


def _contains(run: Columns, text: str) -> sa.ColumnElement[bool]:
    """True of runs with a text in their payload or error, in any case; it has no special signs.

    In the payload it is looked for as JSON writes it, too.
    """
    payload = sa.func.lower(sa.cast(run.trigger_payload, sa.Text))
    spellings = {text, json.dumps(text, ensure_ascii=False)[1:-1]}
    places = [(sa.func.lower(run.error), text), *((payload, one) for one in sorted(spellings))]
    return sa.or_(
        *(sa.func.strpos(place, sa.func.lower(sa.literal(one))) > 0 for place, one in places)
    )


def newest(runs: sa.Select[Any], filters: RunFilter, limit: int) -> sa.Select[Any]:
    """Narrow `runs` to the ones a filter lets through that may be among the newest.

    A rare state or source is not looked for along all runs of a workspace: the newest of each state
    and source are read from where an index has them. Of runs with an attribute, PostgreSQL knows
    how rare they are: it goes through all of them, or through the newest runs.
    """
    fitting = runs.where(*filters.conditions())
    if filters.attributes or (filters.status is None and filters.source is None):
        return fitting
    return fitting.where(_run.id.in_(sa.union_all(*_newest_ids(fitting, filters, limit))))


def _newest_ids(fitting: sa.Select[Any], wanted: RunFilter, limit: int) -> Iterator[sa.Select[Any]]:
    ids = fitting.with_only_columns(_run.id).order_by(*NEWEST_FIRST).limit(limit)
    if wanted.status is None or wanted.status in OPEN_RUN:
        yield sa.select(ids.where(IS_OPEN).subquery().c.id)
    if wanted.status is None or wanted.status in ENDED_RUN:
        status = _each(ENDED_RUN if wanted.status is None else (wanted.status,), "of_status")
        source = _each(tuple(RunSource) if wanted.source is None else (wanted.source,), "of_source")
        both = (_run.status == status.c.value, _run.source == source.c.value)
        line = ids.where(IS_ENDED, *both).correlate(status, source).lateral("line")
        yield sa.select(line.c.id).select_from(status.join(source, sa.true()).join(line, sa.true()))


def _each(values: Sequence[StrEnum], name: str) -> sa.Subquery:
    array = sa.literal([value.value for value in values], sa.ARRAY(sa.Text))
    return sa.select(sa.func.unnest(array).label("value")).subquery(name)


Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False, strict=False)]
Word = Annotated[str, Field(min_length=1, max_length=64)]

_PAIR = re.compile(f"({KEY_PATTERN}):((?:[^\\\\,]|\\\\.)+)(?:,|$)", re.DOTALL)


def read_pairs(text: str) -> dict[str, str]:
    """The attributes of a filter. Raises ValueError for a text that is not pairs."""
    pairs, at = {}, 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError("must be key:value, or several separated by commas")
        if pair[1] in pairs:
            raise ValueError("must name each attribute once")
        pairs[pair[1]] = re.sub(r"\\(.)", r"\1", pair[2], flags=re.DOTALL)
        at = pair.end()
    return pairs


def pair_of(key: str, value: str) -> str:
    """An attribute as a filter has it."""
    escaped = re.sub(r"([\\,])", r"\\\1", value)
    return f"{key}:{escaped}"


def _pairs(text: str) -> str:
    if len(read_pairs(text)) > MAX_ATTRIBUTES:
        raise ValueError(f"must be at most {MAX_ATTRIBUTES} attributes")
    return text


_LONGEST_PAIRS = 9_000
_WIRE_PAIR = KEY_PATTERN + r":(?:[^\\,\x00]|\\[^\x00])+"
AttributePairs = Annotated[
    str,
    Field(min_length=1, max_length=_LONGEST_PAIRS, pattern=r"^[^\x00]+$"),
    AfterValidator(_pairs),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": _LONGEST_PAIRS,
            "pattern": f"^{_WIRE_PAIR}(?:,{_WIRE_PAIR})*,?$",
        }
    ),
]


class RunPeriod(StrEnum):
    """A time until now."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


_LENGTHS: Mapping[RunPeriod, timedelta] = {
    RunPeriod.HOUR: timedelta(hours=1),
    RunPeriod.DAY: timedelta(days=1),
    RunPeriod.WEEK: timedelta(days=7),
    RunPeriod.MONTH: timedelta(days=30),
}


class RunQuery(Input):
    """The runs that a list holds; an end of a time is not included."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    status: RunStatus | None = None
    source: RunSource | None = None
    automation_version_id: InputId | None = None
    period: RunPeriod | None = None
    """Runs created within it, until now."""
    since: InputMoment | None = None
    until: InputMoment | None = None
    started_since: InputMoment | None = None
    started_until: InputMoment | None = None
    ended_since: InputMoment | None = None
    ended_until: InputMoment | None = None
    min_seconds: Seconds | None = None
    """Seconds from its start to its end, or until now."""
    max_seconds: Seconds | None = None
    error_code: Word | None = None
    failed_node_id: Word | None = None
    text: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """A part of the payload or the error, as it is written, in any case."""
    attribute: AttributePairs | None = None
    """`key:value`, or several of them with commas between, all of which a run has.

    A comma or a backslash of a value has a backslash before it.
    """

    @property
    def wire(self) -> JsonObject:
        """The filters that are set, as JSON."""
        names = {*WorkspaceRunQuery.model_fields}
        values = self.model_dump(by_alias=True, exclude_none=True, include=names)
        return {
            name: wire_timestamp(one) if isinstance(one, datetime) else to_jsonable_python(one)
            for name, one in values.items()
        }

    def filter(self, now: datetime) -> RunFilter:
        """The filter at a moment."""
        fields = self.model_dump(include={*RunQuery.model_fields} - {"period", "attribute"})
        start = None if self.period is None else now - _LENGTHS[self.period]
        since = max((one for one in (start, self.since) if one is not None), default=None)
        attributes = {} if self.attribute is None else read_pairs(self.attribute)
        return RunFilter(**{**fields, "since": since, "attributes": attributes})


class WorkspaceRunQuery(RunQuery):
    """The runs that a list of a whole workspace holds."""

    automation_id: InputId | None = None


LOOKED_THROUGH = 10_000
"""Runs that one page looks through."""

SEARCH_TIME = "4s"

Position = tuple[datetime, Id]
"""The place of a run in a list: the moment of its acceptance, and its id."""


async def search(
    work: UnitOfWork, runs: sa.Select[Any], most: int, filters: RunFilter, heavy: Sequence[str]
) -> tuple[Sequence[Any], Position | None]:
    """The newest of these runs that fit, and the last that was looked at if there are more.

    Raises ValidationError when that takes too long.
    """
    candidates = newest(runs, filters, LOOKED_THROUGH).order_by(*NEWEST_FIRST)
    among = candidates.limit(LOOKED_THROUGH).subquery("candidate")
    fitting = sa.select(among).where(*filters.searches(among.c))
    order = (among.c.created_at.desc(), among.c.id.desc())
    async with _within_search_time(work):
        found = await work.rows(within_budget(fitting, order, most, heavy))
    if len(found) >= most:
        return found, None
    places = candidates.with_only_columns(_run.created_at, _run.id)
    last = await work.first(places.offset(LOOKED_THROUGH - 1).limit(1))
    return found, None if last is None else (last.created_at, last.id)


@asynccontextmanager
async def _within_search_time(work: UnitOfWork) -> AsyncIterator[None]:
    """Give a search up that takes too long: large payloads, or many runs at once."""
    before = await work.scalar(sa.select(sa.func.current_setting("statement_timeout")))
    await work.execute(sa.select(sa.func.set_config("statement_timeout", SEARCH_TIME, True)))
    try:
        yield
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        message = "The search took too long. Narrow it by status, automation or time range."
        raise ValidationError.at("text", message) from error
    await work.execute(sa.select(sa.func.set_config("statement_timeout", before, True)))


async def check_filter(
    work: UnitOfWork, actor: Actor, query: WorkspaceRunQuery, path: str = "query"
) -> None:
    """Raises NotFoundError for an automation that the actor does not see, or no version of it.

    `path` leads to the filter in the body. Raises ValidationError for a version alone.
    """
    automation_id, version_id = query.automation_id, query.automation_version_id
    if automation_id is not None:
        if not await sees_automation(work, actor, automation_id):
            raise NotFoundError("automation")
    elif version_id is not None:
        raise ValidationError.at(f"{path}.automationId", "Required with automationVersionId.")
    if version_id is not None:
        own = sa.select(VERSION.id).where(
            VERSION.automation_id == automation_id, VERSION.id == version_id
        )
        if await work.scalar(own) is None:
            raise NotFoundError("version")


async def sees_automation(work: UnitOfWork, actor: Actor, automation_id: Id) -> bool:
    """True when there is an automation that the actor sees."""
    seen = open_automations(actor, Level.VIEW).where(AUTOMATION.id == automation_id)
    return await work.scalar(seen) is not None
