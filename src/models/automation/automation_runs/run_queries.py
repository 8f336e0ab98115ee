"""The filter of a list of runs on the wire: in the query of a GET, and saved under a name."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field
from pydantic_core import to_jsonable_python

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_filters import RunFilter
from models.core.base import Input, InputId, JsonObject
from models.core.moments import InputMoment
from runtime.timestamps import wire_timestamp

Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False, strict=False)]
Word = Annotated[str, Field(min_length=1, max_length=64)]


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

    status: RunStatus | None = None
    source: RunSource | None = None
    automation_version_id: InputId | None = None
    period: RunPeriod | None = None
    """Runs asked for within it, until now."""
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
        fields = self.model_dump(include={*RunQuery.model_fields} - {"period"})
        start = None if self.period is None else now - _LENGTHS[self.period]
        since = max((one for one in (start, self.since) if one is not None), default=None)
        return RunFilter(**{**fields, "since": since})


class WorkspaceRunQuery(RunQuery):
    """The runs that a list of a whole workspace holds."""

    automation_id: InputId | None = None
