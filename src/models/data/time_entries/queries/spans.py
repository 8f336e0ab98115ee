"""The spans of time that entries count, in SQL."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, ScalarSelect, cast, func, literal, select
from sqlalchemy.dialects.postgresql import TSTZMULTIRANGE, Range

from models.data.time_entries.rules.times import Times
from models.data.time_entries.tables import time_entry
from runtime.schema import Timestamp

_entry = time_entry.c
_SPANS = TSTZMULTIRANGE()


def worked(now: datetime) -> ColumnElement[Any]:
    """The time that an entry counts, until it ended or until now: a multirange."""
    moment = literal(now, Timestamp)
    running = func.least(moment, _entry.due_at)
    stop = func.coalesce(_entry.ended_at, _entry.paused_at, running)
    whole = span(_entry.started_at, func.greatest(stop, _entry.started_at))
    return whole.op("-", return_type=_SPANS)(_entry.pauses)


def span(start: ColumnElement[Any], end: ColumnElement[Any]) -> ColumnElement[Any]:
    """One span as a multirange."""
    return func.tstzmultirange(func.tstzrange(start, end), type_=_SPANS)


def spans_of(times: Times, now: datetime) -> ColumnElement[Any]:
    """The time that times at hand count: the same as `worked` says of a row."""
    whole = literal([Range(times.started_at, times.stop(now))], _SPANS)
    pauses = literal([Range(start, end) for start, end in times.pauses], _SPANS)
    return whole.op("-", return_type=_SPANS)(pauses)


def in_common(first: ColumnElement[Any], second: ColumnElement[Any]) -> ColumnElement[Any]:
    """The time that two multiranges share."""
    return first.op("*", return_type=_SPANS)(second)


def milliseconds_of(spans: ColumnElement[Any]) -> ScalarSelect[int]:
    """The length of a multirange, as a scalar."""
    each = func.unnest(spans).column_valued("span")
    length = func.extract("epoch", func.upper(each) - func.lower(each))
    return select(cast(func.coalesce(func.sum(length) * 1_000, 0), BigInteger)).scalar_subquery()
