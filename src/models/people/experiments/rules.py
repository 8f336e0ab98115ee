"""Experiments: their states, their variants, and who gets which. Pure.

See interface.md#experiments.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import NormalDist

from models.core.base import Id
from runtime.errors import Detail, ValidationError

WHOLE = 100.0
"""The sum of the splits of the variants, and the highest allocation."""
MIN_VARIANTS, MAX_VARIANTS = 2, 10

_TOLERANCE = 1e-6
_DRAW = 2.0**53


class TargetType(StrEnum):
    """The kind of thing that the variants are of."""

    FLAG = "flag"
    STARTER_TEMPLATE = "starter_template"
    ONBOARDING = "onboarding"
    RELEASE_NOTICE = "release_notice"
    AUTOMATION_VERSION = "automation_version"


class AssignmentUnit(StrEnum):
    """The unit that keeps the variant it was assigned once."""

    WORKSPACE = "workspace"
    USER = "user"
    DEVICE = "device"


class ExperimentStatus(StrEnum):
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    ARCHIVED = "archived"


class IgnoredBecause(StrEnum):
    """The reason for which an event of a unit is not counted."""

    NOT_RUNNING = "not_running"
    NO_UNIT = "no_unit"
    NOT_IN_AUDIENCE = "not_in_audience"
    NOT_ALLOCATED = "not_allocated"
    UNKNOWN_EVENT = "unknown_event"
    NOT_EXPOSED = "not_exposed"


WHY_IGNORED: Mapping[IgnoredBecause, str] = {
    IgnoredBecause.NOT_RUNNING: (
        "No running experiment has this name: it is unknown, a draft, paused or completed, or its"
        " target is an automation, which counts its own runs."
    ),
    IgnoredBecause.NO_UNIT: (
        "The experiment needs a unit to assign a variant: set workspaceId or deviceId."
    ),
    IgnoredBecause.NOT_IN_AUDIENCE: "The caller is not in the audience of the experiment.",
    IgnoredBecause.NOT_ALLOCATED: "The unit is outside the allocation of the experiment.",
    IgnoredBecause.UNKNOWN_EVENT: (
        "The event must be exposure, conversion, error or a metric of the experiment."
    ),
    IgnoredBecause.NOT_EXPOSED: "The unit has no exposure yet. Record its exposure first.",
}

_S = ExperimentStatus

TRANSITIONS: dict[ExperimentStatus, frozenset[ExperimentStatus]] = {
    _S.DRAFT: frozenset({_S.SCHEDULED, _S.ARCHIVED}),
    _S.SCHEDULED: frozenset({_S.RUNNING, _S.ARCHIVED}),
    _S.RUNNING: frozenset({_S.PAUSED, _S.COMPLETED}),
    _S.PAUSED: frozenset({_S.RUNNING, _S.COMPLETED, _S.ARCHIVED}),
    _S.COMPLETED: frozenset({_S.ARCHIVED}),
    _S.ARCHIVED: frozenset(),
}

FIRST_STATES = (_S.DRAFT, _S.SCHEDULED)
"""The states of a new experiment."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the things that are compared; `split` is its share in percent."""

    id: str
    label: str
    split: float


def status_at(
    status: ExperimentStatus, started_at: datetime | None, ends_at: datetime | None, now: datetime
) -> ExperimentStatus:
    """The state now: a scheduled experiment runs from its start, a running one to its end."""
    if status is _S.SCHEDULED and started_at is not None and started_at <= now:
        status = _S.RUNNING
    if status is _S.RUNNING and ends_at is not None and ends_at <= now:
        return _S.COMPLETED
    return status


def check_variants(variants: Sequence[Variant]) -> None:
    """2 to 10 variants with ids of their own, whose splits add up to 100. Raises ValidationError.

    A split of 0 is allowed: it takes a variant out of the draw.
    """
    problems = []
    if not MIN_VARIANTS <= len(variants) <= MAX_VARIANTS:
        problems.append(f"Must have {MIN_VARIANTS} to {MAX_VARIANTS} variants.")
    if len({variant.id for variant in variants}) < len(variants):
        problems.append("Variant ids must be unique.")
    total = math.fsum(variant.split for variant in variants)
    if abs(total - WHOLE) > _TOLERANCE:
        problems.append(f"The splits must add up to 100, not {total:g}.")
    if problems:
        details = [Detail("variants", problem) for problem in problems]
        raise ValidationError(f"variants: {' '.join(problems)}", details)


def draw(
    experiment_id: Id, unit: str, allocation: float, variants: Sequence[Variant]
) -> str | None:
    """The id of the variant that a unit gets, None when it does not take part.

    It is the same for ever, without a row: two numbers of one SHA-256 say whether the unit takes
    part and which variant is its own. So a unit that takes part still does when the allocation
    grows, and experiments share their units out independently of each other.
    """
    digest = hashlib.sha256(b"%b/%b" % (experiment_id.bytes, unit.encode())).digest()
    if _percent(digest[:8]) >= allocation:
        return None
    place = _percent(digest[8:16])
    for variant in variants:
        if place < variant.split:
            return variant.id
        place -= variant.split
    # The splits add up to a little less than 100.
    return max(variants, key=lambda variant: variant.split).id


def _percent(drawn: bytes) -> float:
    """A number from 0 up to, and without, 100."""
    return (int.from_bytes(drawn, "big") >> 11) / _DRAW * WHOLE


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the units that have met a variant: all, converted ones, and ones with an error."""

    exposures: int = 0
    conversions: int = 0
    errors: int = 0


FiguresOf = Mapping[str, Counts]
"""Counts by the id of a variant."""


CONFIDENCE = 0.95
_DEVIATIONS = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def chi_square_tail(statistic: float, degrees: int) -> float:
    """The probability of a chi-square statistic of at least this much.

    For whole degrees of freedom it is a finite sum (NIST, Handbook of Mathematical Functions,
    8.4.7 to 8.4.12 with half the statistic).
    """
    half = statistic / 2
    odd = degrees % 2
    tail = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    term = math.exp(-half) * (math.sqrt(half / math.pi) * 2 if odd else half)
    for step in range(1, (degrees + 1) // 2):
        tail += term
        term *= half / (step + 0.5 if odd else step + 1)
    return tail


def share_out_probability(exposures: Sequence[int], splits: Sequence[float]) -> float:
    """The probability that units are shared out at least as far from the splits by chance.

    Pearson's chi-square test.
    """
    total, whole = sum(exposures), math.fsum(splits)
    expected = [total * split / whole for split in splits]
    pairs = zip(exposures, expected, strict=True)
    statistic = math.fsum((seen - meant) ** 2 / meant for seen, meant in pairs)
    return chi_square_tail(statistic, len(exposures) - 1)


def equal_shares_probability(first: tuple[int, int], second: tuple[int, int]) -> float:
    """The probability that two shares, each (part, whole), differ at least as much by chance.

    The chi-square test of a table of two by two, with Yates' correction.
    """
    parts, wholes = first[0] + second[0], first[1] + second[1]
    if parts in {0, wholes}:
        return 1.0
    statistic = 0.0
    for part, whole in (first, second):
        for seen, marginal in ((part, parts), (whole - part, wholes - parts)):
            expected = whole * marginal / wholes
            apart = abs(seen - expected)
            statistic += (apart - min(0.5, apart)) ** 2 / expected
    return chi_square_tail(statistic, 1)


def wilson_interval(part: int, whole: int) -> tuple[float, float]:
    """The Wilson score interval of a share, at `CONFIDENCE`."""
    share, square = part / whole, _DEVIATIONS**2
    middle = share + square / (2 * whole)
    spread = _DEVIATIONS * math.sqrt(share * (1 - share) / whole + square / (4 * whole**2))
    scale = 1 + square / whole
    low = 0.0 if part == 0 else (middle - spread) / scale
    high = 1.0 if part == whole else (middle + spread) / scale
    return low, high
