"""Canaries of automations on the wire."""

from typing import Annotated

from pydantic import Field

from models.automation.automation_runs.rules import RunStatus
from models.core.base import Id, Input, InputId, Moment, Shape, example


class StartCanary(Input):
    """Body of start canary: the share of runs that try a version, by default the open draft.

    The version is published; the one that was published before keeps the other runs.
    """

    model_config = example({"percent": 10})

    percent: Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)]
    version_id: InputId | None = None
    expected_draft_version_id: InputId | None = None
    note: Annotated[str, Field(max_length=2_000)] | None = None


class CanaryVersion(Shape):
    """One of the two versions, its share of runs, and how its runs of the canary ended."""

    version_id: Id
    version: int
    percent: float
    runs: dict[RunStatus, int]


class CanaryBody(Shape):
    """A canary: `candidate` is tried by a share of runs, `control` has the others."""

    experiment_id: Id
    started_at: Moment
    control: CanaryVersion
    candidate: CanaryVersion


class CanaryAnswer(Shape):
    """The canary of an automation; absent while there is none."""

    canary: CanaryBody | None = None
