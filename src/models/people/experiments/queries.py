"""Reading experiments with their figures."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from sqlalchemy import func, select

from models.core.base import Id
from models.core.pagination import PageRequest
from models.people.experiments import figures
from models.people.experiments.handlers import handler_of
from models.people.experiments.rules import (
    Counts,
    ExperimentStatus,
    FiguresOf,
    TargetType,
    Variant,
    status_at,
)
from models.people.experiments.shapes import ExperimentBody, ExperimentList
from models.people.experiments.tables import Experiment, experiment, experiment_unit
from runtime.database import UnitOfWork, columns_of
from runtime.errors import NotFoundError

_unit = experiment_unit.c


async def find_experiment(
    work: UnitOfWork, experiment_id: Id, *, locked: bool = False
) -> Experiment:
    """One experiment, locked until the transaction ends if asked for. Raises NotFoundError."""
    statement = select(experiment).where(experiment.c.id == experiment_id)
    if locked:
        statement = statement.with_for_update()
    row = await work.first(statement, of=Experiment)
    if row is None:
        raise NotFoundError("experiment")
    return row


async def get_experiment(work: UnitOfWork, experiment_id: Id) -> ExperimentBody:
    """One experiment with its figures. Raises NotFoundError."""
    return await experiment_body(work, await find_experiment(work, experiment_id))


async def list_experiments(work: UnitOfWork, page: PageRequest) -> ExperimentList:
    """Experiments with their figures, newest first, archived ones too."""
    newest = (experiment.c.created_at, experiment.c.id)
    shown = await page.descending(work, select(experiment), *newest, of=Experiment)
    counts = await _counts(work, shown.items)
    bodies = await _bodies(work, shown.items, counts)
    return ExperimentList(experiments=bodies, cursor=shown.cursor)


async def experiment_body(work: UnitOfWork, row: Experiment) -> ExperimentBody:
    """An experiment as the wire shows it."""
    [body] = await _bodies(work, [row], await _counts(work, [row]))
    return body


def variants_of(row: Experiment) -> list[Variant]:
    """The variants of an experiment, in order."""
    return [Variant(one["id"], one["label"], one["split"]) for one in row.variants]


def status_of(row: Experiment, work: UnitOfWork) -> ExperimentStatus:
    """The status of an experiment now."""
    return status_at(ExperimentStatus(row.status), row.started_at, row.ends_at, work.now)


async def _bodies(
    work: UnitOfWork, rows: Sequence[Experiment], counts: Mapping[Id, FiguresOf]
) -> list[ExperimentBody]:
    def read() -> list[ExperimentBody]:
        return [_body(row, counts[row.id], work) for row in rows]

    # In a thread: the first figures import SciPy, which takes half a second.
    return await asyncio.to_thread(read)


def _body(row: Experiment, counts: FiguresOf, work: UnitOfWork) -> ExperimentBody:
    variants = variants_of(row)
    shown = [figures.variant_body(one, counts.get(one.id, Counts())) for one in variants]
    return ExperimentBody.model_validate(
        {
            **columns_of(row),
            "status": status_of(row, work),
            "variants": shown,
            "guardrail": figures.guardrail(variants, counts),
            "sample_ratio": figures.sample_ratio(variants, counts),
        }
    )


async def _counts(work: UnitOfWork, rows: Sequence[Experiment]) -> Mapping[Id, FiguresOf]:
    """The figures of experiments, from the units that are kept here or from their own nouns."""
    by_experiment: dict[Id, dict[str, Counts]] = defaultdict(dict)
    by_type = sorted(rows, key=lambda row: row.target_type)
    for kind, group in groupby(by_type, key=lambda row: row.target_type):
        handler, some = handler_of(TargetType(kind)), list(group)
        if handler is None:
            await _add_counted_units(work, some, by_experiment)
            continue
        for (experiment_id, variant), counts in (await handler.counts(work, some)).items():
            by_experiment[Id(experiment_id)][variant] = counts
    return by_experiment


async def _add_counted_units(
    work: UnitOfWork, rows: Sequence[Experiment], by_experiment: dict[Id, dict[str, Counts]]
) -> None:
    unit_counts = await work.rows(
        select(
            _unit.experiment_id,
            _unit.variant,
            func.count().label("exposures"),
            func.count(_unit.converted_at).label("conversions"),
            func.count(_unit.failed_at).label("errors"),
        )
        .where(_unit.experiment_id.in_([row.id for row in rows]))
        .group_by(_unit.experiment_id, _unit.variant)
    )
    for row in unit_counts:
        by_experiment[row.experiment_id][row.variant] = Counts(
            row.exposures, row.conversions, row.errors
        )
