"""The filter of a list of runs on the wire: in the query of a GET, and saved under a name."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_jsonable_python

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_filters import RunFilter
from models.automation.automations.rules.attributes import KEY_PATTERN, MAX_ATTRIBUTES
from models.core.base import Input, InputId, JsonObject
from models.core.moments import InputMoment
from runtime.timestamps import wire_timestamp

Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False, strict=False)]
Word = Annotated[str, Field(min_length=1, max_length=64)]


_PAIR = re.compile(f"({KEY_PATTERN}):((?:[^\\\\,]|\\\\.)+)(?:,|$)", re.DOTALL)


def read_pairs(text: str) -> dict[str, str]:
    """The attributes of a filter. Raises ValueError for a text that is not pairs."""
    pairs, at = {}, 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError("must be key:value, or several with commas between")
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
