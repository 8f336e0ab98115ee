"""Experiments on the wire (interface.md#experiment, interface.md#experiments)."""

from typing import Annotated

from pydantic import Field

from models.core import base as core_base
from models.core.pagination import Listed
from models.core.values import InputMoment
from models.people.experiments import rules

MAX_EVENTS = 100
MAX_FLAGS = 100

Name = Annotated[str, Field(min_length=1, max_length=200)]
"""A key or a name that the application knows."""
Hypothesis = Annotated[str, Field(max_length=4_000)]
Percent = Annotated[float, Field(ge=0, le=rules.WHOLE, allow_inf_nan=False)]
DeviceId = Annotated[str, Field(min_length=1, max_length=200)]
Attributes = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")],
        Annotated[str, Field(max_length=500)] | bool | float,
    ],
    Field(max_length=20),
]
"""Facts that an application tells of itself and of its user, for the rules of segments."""
_Figure = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Interval(core_base.Shape):
    """The bounds of a rate with 95 % confidence (Wilson score interval)."""

    low: float
    high: float


class VariantBody(core_base.Shape):
    """A variant and its statistics.

    `exposures` are exposed units; rates are shares of them. There are no intervals before the first
    exposure.
    """

    id: str
    label: str
    split: float
    exposures: int
    conversion_rate: float
    error_rate: float
    conversion_interval: Interval | None
    error_interval: Interval | None


class Guardrail(core_base.Shape):
    """The variants with a significantly higher error rate than the baseline (p < 1 %).

    The first variant is the baseline.
    """

    breached: bool
    variant_ids: list[str]


class SampleRatio(core_base.Shape):
    """A chi-square test of the shares of units against the splits.

    With a `mismatch` (p < 0.1 %) the figures cannot be relied on.
    """

    mismatch: bool
    p_value: float


class ExperimentBody(core_base.Shape):
    """An experiment with its figures."""

    id: core_base.Id
    name: str
    hypothesis: str | None
    target_type: rules.TargetType
    target_key: str | None
    flag_key: str | None
    audience: str
    assignment_unit: rules.AssignmentUnit
    primary_metric: str | None
    guardrail_metric: str | None
    status: rules.ExperimentStatus
    allocation: float
    started_at: core_base.Moment | None
    ends_at: core_base.Moment | None
    winner: str | None
    variants: list[VariantBody]
    guardrail: Guardrail
    sample_ratio: SampleRatio | None
    created_at: core_base.Moment
    updated_at: core_base.Moment


class ExperimentList(Listed):
    experiments: list[ExperimentBody]


class VariantInput(core_base.Input):
    """A variant.

    A missing `id` is derived from the label. Statistics are read-only: they can be sent back
    unchanged.
    """

    id: Name | None = None
    label: core_base.Label
    split: Percent
    exposures: _Figure | None = None
    conversion_rate: _Figure | None = None
    error_rate: _Figure | None = None
    conversion_interval: dict[str, float] | None = None
    error_interval: dict[str, float] | None = None


_VARIANTS: list[core_base.JsonObject] = [
    {"id": "control", "label": "Current form", "split": 50},
    {"id": "short", "label": "Short form", "split": 50},
]
Variants = Annotated[list[VariantInput], Field(max_length=10 * rules.MAX_VARIANTS)]


class CreateExperiment(core_base.Input):
    """A new experiment, `draft` unless `status` is `scheduled`.

    Needs a `targetKey` or a `flagKey`. The variants of an `automation_version` experiment have ids
    of versions of the automation `targetKey`.
    """

    model_config = core_base.example(
        {
            "name": "Short sign-up",
            "hypothesis": "Fewer questions increase completion.",
            "targetType": "flag",
            "flagKey": "short_sign_up",
            "audience": "all",
            "assignmentUnit": "user",
            "primaryMetric": "signed_up",
            "guardrailMetric": "form_failed",
            "allocation": 100,
            "variants": _VARIANTS,
        }
    )

    name: core_base.Label
    hypothesis: Hypothesis | None = None
    target_type: Annotated[rules.TargetType, Field(strict=False)]
    target_key: Name | None = None
    flag_key: Name | None = None
    audience: Name = "all"
    assignment_unit: Annotated[rules.AssignmentUnit, Field(strict=False)] = (
        rules.AssignmentUnit.USER
    )
    primary_metric: Name | None = None
    guardrail_metric: Name | None = None
    status: Annotated[rules.ExperimentStatus, Field(strict=False)] = rules.ExperimentStatus.DRAFT
    allocation: Percent = rules.WHOLE
    started_at: InputMoment | None = None
    ends_at: InputMoment | None = None
    winner: Name | None = None
    variants: Variants


class UpdateExperiment(core_base.Input):
    """Changes of an experiment: an absent key stays, null clears one it can be without.

    While an experiment runs, its variants and its targeting are locked.
    """

    model_config = core_base.example({"status": "running"})

    name: core_base.Label | None = None
    hypothesis: Hypothesis | None = None
    target_type: Annotated[rules.TargetType | None, Field(strict=False)] = None
    target_key: Name | None = None
    flag_key: Name | None = None
    audience: Name | None = None
    assignment_unit: Annotated[rules.AssignmentUnit | None, Field(strict=False)] = None
    primary_metric: Name | None = None
    guardrail_metric: Name | None = None
    status: Annotated[rules.ExperimentStatus | None, Field(strict=False)] = None
    allocation: Percent | None = None
    started_at: InputMoment | None = None
    ends_at: InputMoment | None = None
    winner: Name | None = None
    variants: Variants | None = None


class _Unit(core_base.Input):
    """On whose behalf an application asks, and what it tells for the rules of segments.

    The user is the caller. The workspace is that of the key unless `workspaceId` says another.
    """

    workspace_id: core_base.InputId | None = None
    device_id: DeviceId | None = None
    attributes: Attributes = Field(default_factory=dict)


class AssignExperiments(_Unit):
    """The requested flags; all of them without `flagKeys`."""

    model_config = core_base.example(
        {"flagKeys": ["short_sign_up"], "attributes": {"platform": "ios"}}
    )

    flag_keys: Annotated[list[Name], Field(max_length=MAX_FLAGS)] | None = None


class Assignment(core_base.Shape):
    """The variant of one experiment."""

    experiment_id: core_base.Id
    flag_key: str | None
    target_type: rules.TargetType
    target_key: str | None
    assignment_unit: rules.AssignmentUnit
    variant_id: str
    label: str


class Assignments(core_base.Shape):
    """Experiments that do not include the unit are left out: it gets the default."""

    assignments: list[Assignment]


class ExperimentEvent(core_base.Input):
    """An event of a unit.

    `exposure`: it saw its variant. `conversion`, or the name of the primary metric: it reached the
    goal. `error`, or the name of the guardrail metric: something failed.
    """

    experiment_id: core_base.InputId | None = None
    flag_key: Name | None = None
    event: Name


class RecordEvents(_Unit):
    """Events of one unit."""

    model_config = core_base.example(
        {
            "events": [
                {"flagKey": "short_sign_up", "event": "exposure"},
                {"flagKey": "short_sign_up", "event": "signed_up"},
            ]
        }
    )

    events: Annotated[list[ExperimentEvent], Field(min_length=1, max_length=MAX_EVENTS)]


class EventResult(core_base.Shape):
    """The outcome of one event."""

    recorded: bool
    reason: rules.IgnoredBecause | None = None
    """The reason for which it is not counted."""
    message: str | None = None


class EventsRecorded(core_base.Shape):
    """The numbers of events counted and not counted, and `results` in the order of the events.

    An event is not counted without a running experiment, or if its unit is not included or was not
    exposed.
    """

    recorded: int
    ignored: int
    results: list[EventResult]


def as_variants(inputs: list[VariantInput], ids: list[str]) -> list[rules.Variant]:
    """The variants a body gives, under these ids."""
    return [
        rules.Variant(one_id, one.label, one.split) for one, one_id in zip(inputs, ids, strict=True)
    ]
