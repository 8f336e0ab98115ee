"""Who gets which variant, and what a set of variants is (interface.md#experiments). Pure."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from models.people.experiments.queries import guardrail, sample_ratio, variant_body
from models.people.experiments.rules import (
    Counts,
    ExperimentStatus,
    Variant,
    check_variants,
    chi_square_tail,
    draw,
    equal_shares_probability,
    share_out_probability,
    status_at,
    wilson_interval,
)
from runtime.errors import ValidationError

EXPERIMENT = uuid.UUID("0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f")
HALVES = [Variant("a", "A", 50), Variant("b", "B", 50)]
UNITS = [f"user:{number}" for number in range(100_000)]


@pytest.mark.long
@pytest.mark.parametrize("splits", [(50, 50), (80, 15, 5), (33.34, 33.33, 33.33), (99, 1)])
def test_100_000_units_are_shared_out_as_the_splits_say(splits: tuple[float, ...]) -> None:
    variants = [Variant(str(place), "", split) for place, split in enumerate(splits)]
    drawn = [draw(EXPERIMENT, unit, 100, variants) for unit in UNITS]
    seen = [drawn.count(variant.id) for variant in variants]
    assert sum(seen) == len(UNITS)
    assert share_out_probability(seen, splits) > 0.001


def test_the_allocation_sets_the_share_of_units_and_keeps_the_assigned_ones() -> None:
    before = {unit: draw(EXPERIMENT, unit, 10, HALVES) for unit in UNITS}
    taking_part = {unit: variant for unit, variant in before.items() if variant is not None}
    assert len(taking_part) == pytest.approx(10_000, rel=0.05)
    grown = {unit: draw(EXPERIMENT, unit, 60, HALVES) for unit in UNITS}
    assert all(grown[unit] == variant for unit, variant in taking_part.items())
    assert not any(draw(EXPERIMENT, unit, 0, HALVES) for unit in UNITS[:1000])


def test_a_unit_is_drawn_the_same_in_every_process_and_release() -> None:
    drawn = "".join(str(draw(EXPERIMENT, unit, 60, HALVES) or "-") for unit in UNITS[:24])
    assert drawn == "bb-babab-ab-a-bba-aab-b-"


def test_experiments_share_units_out_independently() -> None:
    other = uuid.uuid4()
    same = sum(
        draw(EXPERIMENT, unit, 100, HALVES) == draw(other, unit, 100, HALVES) for unit in UNITS
    )
    assert same == pytest.approx(len(UNITS) / 2, rel=0.02)


def test_a_variant_with_a_split_of_nothing_is_never_drawn() -> None:
    variants = [Variant("none", "", 0), Variant("all", "", 100)]
    assert {draw(EXPERIMENT, unit, 100, variants) for unit in UNITS[:1000]} == {"all"}


@pytest.mark.parametrize(
    "variants",
    [
        [],
        [Variant("a", "A", 100)],
        [Variant("a", "A", 50), Variant("a", "B", 50)],
        [Variant("a", "A", 50), Variant("b", "B", 49)],
        [Variant("a", "A", 33.3), Variant("b", "B", 33.3), Variant("c", "C", 33.3)],
        [Variant(str(place), "", 100 / 11) for place in range(11)],
    ],
)
def test_an_invalid_set_of_variants_is_refused(variants: list[Variant]) -> None:
    with pytest.raises(ValidationError):
        check_variants(variants)


@pytest.mark.parametrize("count", [2, 3, 7, 10])
def test_equal_splits_add_up(count: int) -> None:
    check_variants([Variant(str(place), "", 100 / count) for place in range(count)])


def test_a_scheduled_experiment_runs_by_the_clock() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    end, second = start + timedelta(days=1), timedelta(seconds=1)
    scheduled, running = ExperimentStatus.SCHEDULED, ExperimentStatus.RUNNING
    assert status_at(scheduled, start, end, start - second) is scheduled
    assert status_at(scheduled, start, end, start) is running
    assert status_at(scheduled, start, end, end) is ExperimentStatus.COMPLETED
    assert status_at(ExperimentStatus.PAUSED, start, end, end) is ExperimentStatus.PAUSED
    assert status_at(scheduled, None, None, start) is scheduled


def test_figures_have_wilson_intervals() -> None:
    shown = variant_body(HALVES[0], Counts(exposures=100, conversions=10, errors=0))
    assert (shown.conversion_rate, shown.error_rate) == (0.1, 0.0)
    # Brown, Cai and DasGupta (2001) give this interval for 10 of 100.
    assert shown.conversion_interval is not None
    assert shown.conversion_interval.low == pytest.approx(0.0552, abs=1e-4)
    assert shown.conversion_interval.high == pytest.approx(0.1744, abs=1e-4)
    assert shown.error_interval is not None
    assert shown.error_interval.low == 0
    assert variant_body(HALVES[0], Counts()).conversion_interval is None


@pytest.mark.parametrize(
    ("first", "other", "breached"),
    [
        (Counts(1000, 0, 10), Counts(1000, 0, 60), True),
        (Counts(1000, 0, 60), Counts(1000, 0, 10), False),
        (Counts(1000, 0, 10), Counts(1000, 0, 12), False),
        (Counts(0, 0, 0), Counts(10, 0, 10), False),
        (Counts(10, 0, 10), Counts(10, 0, 10), False),
    ],
)
def test_a_guardrail_is_breached_beyond_chance(
    first: Counts, other: Counts, breached: bool
) -> None:
    found = guardrail(HALVES, {"a": first, "b": other})
    assert found.breached is breached
    assert found.variant_ids == (["b"] if breached else [])


def test_units_that_are_not_shared_out_as_said_are_reported() -> None:
    assert sample_ratio(HALVES, {}) is None
    fair = sample_ratio(HALVES, {"a": Counts(5_050), "b": Counts(4_950)})
    assert fair is not None
    assert not fair.mismatch
    skewed = sample_ratio(HALVES, {"a": Counts(6_000), "b": Counts(4_000)})
    assert skewed is not None
    assert skewed.mismatch


@pytest.mark.parametrize(
    ("statistic", "degrees", "tail"),
    [
        # Critical values of the tables of the chi-square distribution.
        (3.841459, 1, 0.05),
        (6.634897, 1, 0.01),
        (5.991465, 2, 0.05),
        (11.344867, 3, 0.01),
        (9.487729, 4, 0.05),
        (16.918978, 9, 0.05),
        (27.877165, 9, 0.001),
        (0, 5, 1),
        (5_000, 1, 0),
        (5_000, 8, 0),
    ],
)
def test_a_chi_square_tail_has_the_values_of_the_tables(
    statistic: float, degrees: int, tail: float
) -> None:
    assert chi_square_tail(statistic, degrees) == pytest.approx(tail, rel=1e-5, abs=1e-300)


def test_probabilities_and_intervals_have_the_values_of_scipy() -> None:
    """As `chisquare`, `chi2_contingency` and `binomtest` of SciPy 1.17 give them."""
    assert share_out_probability([5_050, 4_950], [50, 50]) == pytest.approx(0.317310507863)
    assert share_out_probability([10, 20, 30, 40], [1, 2, 3, 2]) == pytest.approx(0.00738316050536)
    assert equal_shares_probability((30, 200), (12, 190)) == pytest.approx(0.00927133483708)
    assert equal_shares_probability((1, 3), (1, 2)) == pytest.approx(1)
    assert wilson_interval(7, 31) == pytest.approx((0.113951355613, 0.398124183833))


def test_shares_without_a_difference_are_certain() -> None:
    assert equal_shares_probability((0, 10), (0, 20)) == 1
    assert equal_shares_probability((10, 10), (20, 20)) == 1
    assert wilson_interval(0, 10)[0] == 0
    assert wilson_interval(10, 10)[1] == 1
