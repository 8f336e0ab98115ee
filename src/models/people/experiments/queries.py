"""Experiments: their tables, and reads with the figures of their variants."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA, JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.pagination import PageRequest
from models.core.repository import Bound
from models.people.experiments import rules, shapes
from runtime.database import UnitOfWork, columns_of
from runtime.postgresql.schema import Timestamp, one_of, partial_index, table_of

_NOT_ARCHIVED = sa.text("status <> 'archived'")


class Experiment(SQLModel, table=True):
    """An experiment of the whole platform; `variants` are objects with id, label and split."""

    __tablename__ = "experiment"
    __table_args__ = (
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        one_of("target_type", rules.TargetType),
        one_of("assignment_unit", rules.AssignmentUnit),
        one_of("status", rules.ExperimentStatus),
        sa.Index("uq_experiment_flag_key", "flag_key", unique=True, postgresql_where=_NOT_ARCHIVED),
        sa.Index(
            "uq_experiment_target",
            "target_type",
            "target_key",
            unique=True,
            postgresql_where=_NOT_ARCHIVED,
        ),
        sa.Index("ix_experiment_created_at_id", "created_at", "id"),
        partial_index("ix_experiment_assigning", "id", where="status IN ('scheduled', 'running')"),
    )

    id: Id = Field(primary_key=True)
    name: str
    hypothesis: str | None = None
    target_type: str
    target_key: str | None = None
    flag_key: str | None = None
    audience: str
    assignment_unit: str
    primary_metric: str | None = None
    guardrail_metric: str | None = None
    status: str
    allocation: float
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    ends_at: datetime | None = Field(default=None, sa_type=Timestamp)
    winner: str | None = None
    variants: list[Any] = Field(sa_type=JSONB)
    created_by_user_id: Id
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class ExperimentUnit(SQLModel, table=True):
    """A unit that has met its variant, and when it first did, converted and had an error.

    `unit` is a digest: what a unit is called is not kept.
    """

    __tablename__ = "experiment_unit"
    __table_args__ = (
        sa.ForeignKeyConstraint(["experiment_id"], ["experiment.id"], ondelete="CASCADE"),
        sa.Index("ix_experiment_unit_experiment_id_variant", "experiment_id", "variant"),
    )

    experiment_id: Id = Field(primary_key=True)
    unit: bytes = Field(sa_type=BYTEA, primary_key=True)
    variant: str
    exposed_at: datetime = Field(sa_type=Timestamp)
    converted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    failed_at: datetime | None = Field(default=None, sa_type=Timestamp)


experiment = table_of(Experiment)
experiment_unit = table_of(ExperimentUnit)

EXPERIMENTS = Bound(
    experiment,
    1_000,
    "experiments",
    by=(),
    conditions=(
        experiment.c.status != rules.ExperimentStatus.ARCHIVED,
        experiment.c.target_type != rules.TargetType.AUTOMATION_VERSION,
    ),
    remedy="Archive some first.",
)
"""Experiments of releases of versions do not count: each automation has one at most."""


class ExperimentRow(Protocol):
    """An experiment about `target_key`."""

    id: Id
    target_key: str | None
    assignment_unit: str
    status: str
    allocation: float
    started_at: datetime | None
    ends_at: datetime | None
    variants: list[Any]
    created_at: datetime


class TargetHandler(Protocol):
    """The resource that owns the variants of a type, as it is asked and told.

    A resource of a higher domain registers one for its type of target. Units of a type without
    one are counted here.
    """

    async def check(
        self, work: UnitOfWork, target_key: str | None, variants: Sequence[rules.Variant]
    ) -> None:
        """Raises ValidationError for a target or a variant that there is none of."""

    async def changed(self, work: UnitOfWork, row: ExperimentRow) -> None:
        """An experiment was made or changed."""

    async def counts(
        self, work: UnitOfWork, rows: Sequence[ExperimentRow]
    ) -> Mapping[tuple[str, str], rules.Counts]:
        """Figures by the id of the experiment, as text, and that of the variant."""


_handlers: dict[rules.TargetType, TargetHandler] = {}


def on_target(kind: rules.TargetType, handler: TargetHandler) -> None:
    """Register the handler of a type of target."""
    _handlers[kind] = handler


def handler_of(kind: rules.TargetType) -> TargetHandler | None:
    """The handler of a type of target, if it has one."""
    return _handlers.get(kind)


_unit = experiment_unit.c


async def find_experiment(
    work: UnitOfWork, experiment_id: Id, *, locked: bool = False
) -> Experiment:
    """One experiment, locked until the transaction ends if asked for. Raises NotFoundError."""
    statement = sa.select(experiment).where(experiment.c.id == experiment_id)
    if locked:
        statement = statement.with_for_update()
    return await work.one(statement, "experiment", of=Experiment)


async def get_experiment(work: UnitOfWork, experiment_id: Id) -> shapes.ExperimentBody:
    """One experiment with its figures. Raises NotFoundError."""
    return await experiment_body(work, await find_experiment(work, experiment_id))


async def list_experiments(work: UnitOfWork, page: PageRequest) -> shapes.ExperimentList:
    """Experiments with their figures, newest first, archived ones too."""
    newest = (experiment.c.created_at, experiment.c.id)
    shown = await page.descending(work, sa.select(experiment), *newest, of=Experiment)
    counts = await _counts(work, shown.items)
    bodies = [_body(row, counts[row.id], work) for row in shown.items]
    return shapes.ExperimentList(experiments=bodies, cursor=shown.cursor)


async def experiment_body(work: UnitOfWork, row: Experiment) -> shapes.ExperimentBody:
    """An experiment as the wire shows it."""
    counts = await _counts(work, [row])
    return _body(row, counts[row.id], work)


def variants_of(row: Experiment) -> list[rules.Variant]:
    """The variants of an experiment, in order."""
    return [rules.Variant(one["id"], one["label"], one["split"]) for one in row.variants]


def status_of(row: Experiment, work: UnitOfWork) -> rules.ExperimentStatus:
    """The status of an experiment now."""
    return rules.status_at(
        rules.ExperimentStatus(row.status), row.started_at, row.ends_at, work.now
    )


def _body(row: Experiment, counts: rules.FiguresOf, work: UnitOfWork) -> shapes.ExperimentBody:
    variants = variants_of(row)
    shown = [variant_body(one, counts.get(one.id, rules.Counts())) for one in variants]
    return shapes.ExperimentBody.model_validate(
        {
            **columns_of(row),
            "status": status_of(row, work),
            "variants": shown,
            "guardrail": guardrail(variants, counts),
            "sample_ratio": sample_ratio(variants, counts),
        }
    )


async def _counts(work: UnitOfWork, rows: Sequence[Experiment]) -> Mapping[Id, rules.FiguresOf]:
    """The figures of experiments, from the units that are kept here or from their own resources."""
    by_experiment: dict[Id, dict[str, rules.Counts]] = defaultdict(dict)
    by_type = sorted(rows, key=lambda row: row.target_type)
    for kind, group in groupby(by_type, key=lambda row: row.target_type):
        handler, some = handler_of(rules.TargetType(kind)), list(group)
        if handler is None:
            await _add_counted_units(work, some, by_experiment)
            continue
        for (experiment_id, variant), counts in (await handler.counts(work, some)).items():
            by_experiment[Id(experiment_id)][variant] = counts
    return by_experiment


async def _add_counted_units(
    work: UnitOfWork, rows: Sequence[Experiment], by_experiment: dict[Id, dict[str, rules.Counts]]
) -> None:
    unit_counts = await work.rows(
        sa.select(
            _unit.experiment_id,
            _unit.variant,
            sa.func.count().label("exposures"),
            sa.func.count(_unit.converted_at).label("conversions"),
            sa.func.count(_unit.failed_at).label("errors"),
        )
        .where(_unit.experiment_id.in_([row.id for row in rows]))
        .group_by(_unit.experiment_id, _unit.variant)
    )
    for row in unit_counts:
        by_experiment[row.experiment_id][row.variant] = rules.Counts(
            row.exposures, row.conversions, row.errors
        )


BREACH = 0.01
"""A guardrail is breached when its difference is less likely than this by chance."""
MISMATCH = 0.001
"""Units are shared out otherwise than the splits say when that is less likely than this."""
_DIGITS = 6


def variant_body(variant: rules.Variant, counts: rules.Counts) -> shapes.VariantBody:
    """A variant with its rates."""
    return shapes.VariantBody(
        id=variant.id,
        label=variant.label,
        split=variant.split,
        exposures=counts.exposures,
        conversion_rate=_rate(counts.conversions, counts.exposures),
        error_rate=_rate(counts.errors, counts.exposures),
        conversion_interval=_interval(counts.conversions, counts.exposures),
        error_interval=_interval(counts.errors, counts.exposures),
    )


def guardrail(
    variants: Sequence[rules.Variant], counts: Mapping[str, rules.Counts]
) -> shapes.Guardrail:
    """The variants that fail more often than the first one."""
    first, *others = (counts.get(variant.id, rules.Counts()) for variant in variants)
    names = [variant.id for variant in variants[1:]]
    worse = [name for name, other in zip(names, others, strict=True) if _is_worse(other, first)]
    return shapes.Guardrail(breached=bool(worse), variant_ids=worse)


def sample_ratio(
    variants: Sequence[rules.Variant], counts: Mapping[str, rules.Counts]
) -> shapes.SampleRatio | None:
    """The test of the exposures against the splits; None before the first one."""
    active_variants = [variant for variant in variants if variant.split > 0]
    exposures = [counts.get(variant.id, rules.Counts()).exposures for variant in active_variants]
    if not any(exposures) or len(active_variants) < 2:
        return None
    p_value = rules.share_out_probability(exposures, [variant.split for variant in active_variants])
    return shapes.SampleRatio(mismatch=p_value < MISMATCH, p_value=round(p_value, _DIGITS))


def _rate(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0


def _interval(part: int, whole: int) -> shapes.Interval | None:
    if not whole:
        return None
    low, high = rules.wilson_interval(part, whole)
    return shapes.Interval(low=round(low, _DIGITS), high=round(high, _DIGITS))


def _is_worse(one: rules.Counts, first: rules.Counts) -> bool:
    """True when errors are more frequent, by a chi-square test of the two shares."""
    if not one.exposures or not first.exposures or not one.errors:
        return False
    if one.errors / one.exposures <= first.errors / first.exposures:
        return False
    shares = (one.errors, one.exposures), (first.errors, first.exposures)
    return rules.equal_shares_probability(*shares) < BREACH
