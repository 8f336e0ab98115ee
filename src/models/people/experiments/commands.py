"""Making and changing experiments, and deleting what units did in old ones.

See interface.md#experiments.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from models.core.access.rules import Principal
from models.core.base import Id
from models.core.keys import first_free, slug
from models.core.purging import MAX_ROWS
from models.people.audience_segments import is_segment
from models.people.experiments import queries, rules, shapes
from runtime.database import UnitOfWork, columns_of
from runtime.errors import ConflictError, ValidationError

LOCKED = frozenset(
    {
        "variants",
        "target_type",
        "target_key",
        "flag_key",
        "audience",
        "assignment_unit",
        "allocation",
        "primary_metric",
        "guardrail_metric",
    }
)
"""Columns that cannot change while an experiment runs; after its end nothing of it can."""
_CLEARABLE = frozenset(
    {
        "hypothesis",
        "target_key",
        "flag_key",
        "primary_metric",
        "guardrail_metric",
        "started_at",
        "ends_at",
        "winner",
    }
)
_UNIQUE = {
    "uq_experiment_flag_key": ("flagKey", "Another experiment uses this flag key."),
    "uq_experiment_target": ("targetKey", "Another experiment uses this target."),
}
_FIGURES = ("exposures", "conversion_rate", "error_rate")


async def create_experiment(
    work: UnitOfWork, principal: Principal, experiment_id: Id, body: shapes.CreateExperiment
) -> shapes.ExperimentBody:
    """A draft, or a scheduled experiment.

    Raises ValidationError for inconsistent variants, a key that is in use, an unknown audience
    or target, and ConflictError when there are too many experiments.
    """
    if body.status not in rules.FIRST_STATES:
        raise ValidationError.at("status", "A new experiment must be draft or scheduled.")
    given = body.model_dump(exclude={"variants"})
    values = {
        **given,
        "id": experiment_id,
        "variants": _read_variants(body.variants, {}),
        "created_by_user_id": principal.user_id,
        "created_at": work.now,
        "updated_at": work.now,
    }
    await _check(work, values)
    is_release = body.target_type is rules.TargetType.AUTOMATION_VERSION
    async with nullcontext() if is_release else queries.EXPERIMENTS.place(work):
        row = await _write(work, sa.insert(queries.experiment).values(values))
    return await queries.experiment_body(work, row)


async def update_experiment(
    work: UnitOfWork, experiment_id: Id, body: shapes.UpdateExperiment
) -> shapes.ExperimentBody:
    """Change an experiment, along the table of its states.

    Raises NotFoundError, ValidationError as for a new one, and ConflictError for a state that
    cannot follow and for what is locked in the state it is in.
    """
    row = await queries.find_experiment(work, experiment_id, locked=True)
    before = dict(columns_of(row))
    now = queries.status_of(row, work)
    given = body.model_dump(exclude_unset=True, exclude={"variants"})
    changes = {
        name: value for name, value in given.items() if value is not None or name in _CLEARABLE
    }
    if body.variants is not None:
        shown = await queries.experiment_body(work, row)
        figures = {one.id: one.model_dump(include=set(_FIGURES)) for one in shown.variants}
        changes["variants"] = _read_variants(body.variants, figures)
    changes = {name: value for name, value in changes.items() if value != before[name]}
    _check_locks(now, changes)
    after = {**before, "status": now, **changes}
    _move(now, rules.ExperimentStatus(after["status"]), after, work)
    if after == before:
        return await queries.experiment_body(work, row)
    await _check(work, after)
    after["updated_at"] = work.now
    this = (
        sa.update(queries.experiment).where(queries.experiment.c.id == experiment_id).values(after)
    )
    return await queries.experiment_body(work, await _write(work, this))


def _check_locks(now: rules.ExperimentStatus, changes: Mapping[str, Any]) -> None:
    """Raises ConflictError for a change that the state does not allow."""
    fixed = {
        rules.ExperimentStatus.RUNNING: LOCKED | {"started_at"},
        rules.ExperimentStatus.COMPLETED: LOCKED | {"started_at", "ends_at"},
        rules.ExperimentStatus.ARCHIVED: frozenset(queries.experiment.c.keys()) - {"status"},
    }.get(now, frozenset())
    locked = sorted(fixed & changes.keys())
    if locked:
        names = ", ".join(locked).replace("_", " ")
        raise ConflictError(f"You can't change these while the experiment is {now}: {names}.")


def _move(
    now: rules.ExperimentStatus,
    target: rules.ExperimentStatus,
    after: dict[str, Any],
    work: UnitOfWork,
) -> None:
    """Follow the table of states, in `after`. Raises ConflictError and ValidationError."""
    if target is not now and target not in rules.TRANSITIONS[now]:
        following = ", ".join(sorted(rules.TRANSITIONS[now])) or "nothing"
        raise ConflictError(f"The experiment is {now}. It can only change to: {following}.")
    if target is rules.ExperimentStatus.RUNNING and now is not target:
        started = after["started_at"]
        after["started_at"] = work.now if started is None or started > work.now else started
    if target is rules.ExperimentStatus.COMPLETED and now is not target:
        if after["winner"] is None and after["ends_at"] is None:
            raise ValidationError.at(
                "winner",
                "To complete an experiment, set `winner` or `endsAt`.",
            )
        if after["ends_at"] is None or after["ends_at"] > work.now:
            after["ends_at"] = work.now


def _read_variants(
    inputs: list[shapes.VariantInput], figures: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The variants as they are stored. Raises ValidationError."""
    ids: list[str] = []
    for place, variant in enumerate(inputs):
        ids.append(variant.id or first_free(slug(variant.label, "variant"), ids))
        known = figures.get(ids[-1], {})
        for name in _FIGURES:
            figure = getattr(variant, name)
            if figure is not None and figure != known.get(name, 0):
                raise ValidationError.at(
                    f"variants.{place}", "The statistics of a variant are read-only."
                )
    variants = shapes.as_variants(inputs, ids)
    rules.check_variants(variants)
    return [
        {"id": variant.id, "label": variant.label, "split": variant.split} for variant in variants
    ]


async def _check(work: UnitOfWork, values: Mapping[str, Any]) -> None:
    """Check what holds for an experiment whatever its state. Raises ValidationError."""
    if values["flag_key"] is None and values["target_key"] is None:
        raise ValidationError.at("flagKey", "Set flagKey or targetKey.")
    starts, ends = values["started_at"], values["ends_at"]
    if starts is not None and ends is not None and ends <= starts:
        raise ValidationError.at("endsAt", "Must be after startedAt.")
    variants = [rules.Variant(one["id"], one["label"], one["split"]) for one in values["variants"]]
    if values["winner"] is not None and values["winner"] not in {one.id for one in variants}:
        raise ValidationError.at("winner", "Must be the id of a variant.")
    if not await is_segment(work, values["audience"]):
        raise ValidationError.at("audience", "Segment not found.")
    handler = queries.handler_of(rules.TargetType(values["target_type"]))
    if handler is not None:
        await handler.check(work, values["target_key"], variants)


async def _write(work: UnitOfWork, statement: sa.Insert | sa.Update) -> queries.Experiment:
    """Write an experiment and tell its target. Raises ValidationError for a key that is in use."""
    try:
        async with work.savepoint():
            row = await work.first(statement.returning(queries.experiment), of=queries.Experiment)
    except IntegrityError as error:
        constraint = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
        if constraint not in _UNIQUE:
            raise
        raise ValidationError.at(*_UNIQUE[constraint]) from error
    assert row is not None
    handler = queries.handler_of(rules.TargetType(row.target_type))
    if handler is not None:
        await handler.changed(work, row)
    return row


async def purge_units(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove units of experiments that were archived before a moment; the experiments stay.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    over = sa.select(queries.experiment.c.id).where(
        queries.experiment.c.status == rules.ExperimentStatus.ARCHIVED,
        queries.experiment.c.updated_at < before,
    )
    row: sa.ColumnElement[Any] = sa.literal_column("experiment_unit.ctid")
    theirs = queries.experiment_unit.c.experiment_id.in_(over)
    some = (
        sa.select(row)
        .select_from(queries.experiment_unit)
        .where(theirs)
        .limit(limit)
        .correlate(None)
    )
    return (await work.execute(sa.delete(queries.experiment_unit).where(row.in_(some)))).rowcount
