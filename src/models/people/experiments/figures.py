"""What figures of variants mean: rates, intervals, tests. Pure (ADR 0049)."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from models.people.experiments.rules import Counts, Variant
from models.people.experiments.shapes import Guardrail, Interval, SampleRatio, VariantBody

CONFIDENCE = 0.95
BREACH = 0.01
"""A guardrail is breached when its difference is less likely than this by chance."""
MISMATCH = 0.001
"""Units are shared out otherwise than the splits say when that is less likely than this."""
_DIGITS = 6
_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def variant_body(variant: Variant, counts: Counts) -> VariantBody:
    """A variant with its rates."""
    return VariantBody(
        id=variant.id,
        label=variant.label,
        split=variant.split,
        exposures=counts.exposures,
        conversion_rate=_rate(counts.conversions, counts.exposures),
        error_rate=_rate(counts.errors, counts.exposures),
        conversion_interval=_interval(counts.conversions, counts.exposures),
        error_interval=_interval(counts.errors, counts.exposures),
    )


def guardrail(variants: Sequence[Variant], counts: Mapping[str, Counts]) -> Guardrail:
    """The variants that fail more often than the first one."""
    first, *others = (counts.get(variant.id, Counts()) for variant in variants)
    names = [variant.id for variant in variants[1:]]
    worse = [name for name, other in zip(names, others, strict=True) if _is_worse(other, first)]
    return Guardrail(breached=bool(worse), variant_ids=worse)


def sample_ratio(variants: Sequence[Variant], counts: Mapping[str, Counts]) -> SampleRatio | None:
    """Whether the exposures are what the splits say; None before the first one."""
    drawn = [variant for variant in variants if variant.split > 0]
    seen = [counts.get(variant.id, Counts()).exposures for variant in drawn]
    total = sum(seen)
    if not total or len(drawn) < 2:
        return None
    whole = sum(variant.split for variant in drawn)
    expected = [total * variant.split / whole for variant in drawn]
    differences = zip(seen, expected, strict=True)
    statistic = sum((count - mean) ** 2 / mean for count, mean in differences)
    p_value = chi_square_tail(statistic, len(drawn) - 1)
    return SampleRatio(mismatch=p_value < MISMATCH, p_value=round(p_value, _DIGITS))


def _rate(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _interval(part: int, whole: int) -> Interval | None:
    """The interval of a share (Wilson 1927, without a correction for continuity)."""
    if not whole:
        return None
    rate, squared = part / whole, _QUANTILE**2 / whole
    middle = rate + squared / 2
    reach = math.sqrt(squared * (rate * (1 - rate) + squared / 4))
    low = (middle - reach) / (1 + squared) if part else 0.0
    high = (middle + reach) / (1 + squared) if part < whole else 1.0
    return Interval(low=round(low, _DIGITS), high=round(high, _DIGITS))


def _is_worse(one: Counts, first: Counts) -> bool:
    """Whether errors are more frequent, by a chi-square test of the two shares (Yates 1934)."""
    if not one.exposures or not first.exposures or not one.errors:
        return False
    if one.errors / one.exposures <= first.errors / first.exposures:
        return False
    total, errors = one.exposures + first.exposures, one.errors + first.errors
    if errors == total:
        return False
    means = [
        each.exposures * outcome / total
        for each in (one, first)
        for outcome in (errors, total - errors)
    ]
    # In a table of two by two, all four counts are as far from their means.
    difference = max(abs(one.errors - means[0]) - 0.5, 0.0)
    return chi_square_tail(sum(difference**2 / mean for mean in means), 1) < BREACH


def chi_square_tail(statistic: float, degrees: int) -> float:
    """How likely a chi-square variable of so many degrees of freedom is larger by chance.

    Exact: for whole degrees the incomplete gamma function is a finite sum (DLMF 8.4.6, 8.4.8 and
    8.8.2).
    """
    half = statistic / 2
    if not half:
        return 1.0
    order = 0.5 if degrees % 2 else 1.0
    tail = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    while order < degrees / 2:
        tail += math.exp(order * math.log(half) - half - math.lgamma(order + 1))
        order += 1
    return tail
