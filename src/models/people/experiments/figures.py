"""The meaning of figures of variants: rates, intervals, tests. Pure; the mathematics is SciPy's."""

from collections.abc import Mapping, Sequence

from models.people.experiments.rules import Counts, Variant
from models.people.experiments.shapes import Guardrail, Interval, SampleRatio, VariantBody

CONFIDENCE = 0.95
BREACH = 0.01
"""A guardrail is breached when its difference is less likely than this by chance."""
MISMATCH = 0.001
"""Units are shared out otherwise than the splits say when that is less likely than this."""
_DIGITS = 6


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
    """The test of the exposures against the splits; None before the first one."""
    active_variants = [variant for variant in variants if variant.split > 0]
    exposures = [counts.get(variant.id, Counts()).exposures for variant in active_variants]
    total = sum(exposures)
    if not total or len(active_variants) < 2:
        return None
    from scipy.stats import chisquare  # noqa: PLC0415  # half a second and 60 MB, for few

    whole = sum(variant.split for variant in active_variants)
    expected = [total * variant.split / whole for variant in active_variants]
    p_value = float(chisquare(exposures, expected).pvalue)
    return SampleRatio(mismatch=p_value < MISMATCH, p_value=round(p_value, _DIGITS))


def _rate(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _interval(part: int, whole: int) -> Interval | None:
    if not whole:
        return None
    from scipy.stats import binomtest  # noqa: PLC0415  # as above

    found = binomtest(part, whole).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(low=round(float(found.low), _DIGITS), high=round(float(found.high), _DIGITS))


def _is_worse(one: Counts, first: Counts) -> bool:
    """True when errors are more frequent, by a chi-square test of the two shares."""
    if not one.exposures or not first.exposures or not one.errors:
        return False
    if one.errors / one.exposures <= first.errors / first.exposures:
        return False
    from scipy.stats import chi2_contingency  # noqa: PLC0415  # as above

    table = [[each.errors, each.exposures - each.errors] for each in (one, first)]
    if not any(row[1] for row in table):
        return False
    return float(chi2_contingency(table).pvalue) < BREACH
