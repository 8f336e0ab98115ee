"""Assigning variants to callers, and counting what happens to them (ADR 0049)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal, Role
from models.core.base import Id, JsonObject
from models.people.audience_segments import EVERYBODY, segments_of
from models.people.experiments import rules, shapes
from models.people.experiments.queries import experiment, experiment_unit
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.postgresql.statements import PreparedStatement

_experiment = experiment.c
_NOW = sa.bindparam("now", type_=_experiment.created_at.type)


class LiveRow(Protocol):
    """The columns of an experiment that decide on an assignment."""

    id: Id
    flag_key: str | None
    target_type: str
    target_key: str | None
    assignment_unit: str
    audience: str
    allocation: float
    status: str
    winner: str | None
    primary_metric: str | None
    guardrail_metric: str | None
    variants: Sequence[JsonObject]


_RUNS = sa.and_(
    sa.or_(
        _experiment.status == rules.ExperimentStatus.RUNNING,
        sa.and_(
            _experiment.status == rules.ExperimentStatus.SCHEDULED,
            _experiment.started_at <= _NOW,
        ),
    ),
    sa.or_(_experiment.ends_at.is_(None), _experiment.ends_at > _NOW),
)
_WON = sa.and_(
    _experiment.winner.is_not(None),
    sa.or_(
        _experiment.status == rules.ExperimentStatus.COMPLETED,
        sa.and_(_experiment.status == rules.ExperimentStatus.RUNNING, _experiment.ends_at <= _NOW),
    ),
)
_COLUMNS = [_experiment[name] for name in LiveRow.__annotations__]
_LIVE = PreparedStatement(
    sa.select(*_COLUMNS, _RUNS.label("runs"))
    .where(
        sa.or_(_RUNS, _WON),
        # The automation that is shared out shares out its own runs.
        _experiment.target_type != rules.TargetType.AUTOMATION_VERSION,
        sa.or_(
            sa.bindparam("every", type_=sa.Boolean),
            _experiment.flag_key == sa.any_(sa.bindparam("flags", type_=sa.ARRAY(sa.Text))),
            _experiment.id == sa.any_(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))),
        ),
    )
    .order_by(_experiment.created_at, _experiment.id)
)


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf an application asks."""

    user_id: Id
    workspace_id: Id | None
    device_id: str | None
    attributes: JsonObject

    def unit(self, kind: rules.AssignmentUnit) -> str | None:
        """The name of the caller as a unit of this kind; None when that was not said."""
        match kind:
            case rules.AssignmentUnit.USER:
                return f"user:{self.user_id}"
            case rules.AssignmentUnit.WORKSPACE:
                return None if self.workspace_id is None else f"workspace:{self.workspace_id}"
            case rules.AssignmentUnit.DEVICE:
                return None if self.device_id is None else f"device:{self.device_id}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The variant that a unit got in an experiment; `runs` says that it is still being found out
    which one is best."""

    row: LiveRow
    unit: str
    variant: rules.Variant
    runs: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An experiment that the caller takes no part in, and why."""

    row: LiveRow
    reason: rules.IgnoredBecause


async def assign(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], body: shapes.AssignExperiments
) -> shapes.Assignments:
    """The variants of the caller. Raises NotFoundError for a workspace they are not in."""
    caller = caller_of(principal, roles, body)
    drawn = await draw_all(work, caller, body.flag_keys, [])
    return shapes.Assignments(
        assignments=[_assignment(one) for one in drawn if isinstance(one, Drawn)]
    )


def caller_of(
    principal: Principal,
    roles: Mapping[Id, Role],
    body: shapes.AssignExperiments | shapes.RecordEvents,
) -> Caller:
    workspace_id = body.workspace_id or principal.key_workspace_id
    if workspace_id is not None and workspace_id not in roles:
        raise NotFoundError("workspace")
    return Caller(principal.user_id, workspace_id, body.device_id, body.attributes)


async def draw_all(
    work: UnitOfWork, caller: Caller, flags: Sequence[str] | None, ids: Sequence[Id]
) -> list[Drawn | LeftOut]:
    """Draw the caller's variants of these experiments, as far as they run or have a winner."""
    asked = {"every": flags is None, "flags": list(flags or ()), "ids": list(ids)}
    rows = await _LIVE.rows(work, {"now": work.now, **asked})
    outcomes = [_draw(row, caller, runs=row.runs) for row in rows]
    audiences = {outcome.row.audience for outcome in outcomes if isinstance(outcome, Drawn)} - {
        EVERYBODY
    }
    belongs = {EVERYBODY}
    if audiences:
        belongs |= await segments_of(
            work,
            audiences,
            user_id=caller.user_id,
            workspace_id=caller.workspace_id,
            attributes=caller.attributes,
        )
    return [
        LeftOut(outcome.row, rules.IgnoredBecause.NOT_IN_AUDIENCE)
        if isinstance(outcome, Drawn) and outcome.row.audience not in belongs
        else outcome
        for outcome in outcomes
    ]


def _draw(row: LiveRow, caller: Caller, *, runs: bool) -> Drawn | LeftOut:
    unit = caller.unit(rules.AssignmentUnit(row.assignment_unit))
    if unit is None:
        return LeftOut(row, rules.IgnoredBecause.NO_UNIT)
    variants = {
        one["id"]: rules.Variant(one["id"], one["label"], one["split"]) for one in row.variants
    }
    chosen = (
        rules.draw(row.id, unit, row.allocation, list(variants.values())) if runs else row.winner
    )
    if chosen is None:
        return LeftOut(row, rules.IgnoredBecause.NOT_ALLOCATED)
    return Drawn(row, unit, variants[chosen], runs)


def _assignment(outcome: Drawn) -> shapes.Assignment:
    row = outcome.row
    return shapes.Assignment(
        experiment_id=row.id,
        flag_key=row.flag_key,
        target_type=rules.TargetType(row.target_type),
        target_key=row.target_key,
        assignment_unit=rules.AssignmentUnit(row.assignment_unit),
        variant_id=outcome.variant.id,
        label=outcome.variant.label,
    )


EXPOSURE, CONVERSION, ERROR = "exposure", "conversion", "error"

_unit = experiment_unit.c


async def record_events(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], body: shapes.RecordEvents
) -> shapes.EventsRecorded:
    """Count what happened to the caller; each kind of event once per unit and experiment.

    Raises NotFoundError for an unknown experiment or workspace, ValidationError for an event that
    names no experiment or two.
    """
    caller = caller_of(principal, roles, body)
    for place, event in enumerate(body.events):
        if (event.experiment_id is None) == (event.flag_key is None):
            raise ValidationError.at(f"events.{place}", "Set either experimentId or flagKey.")
    ids = sorted({event.experiment_id for event in body.events if event.experiment_id is not None})
    await _check_known(work, ids)
    flags = [event.flag_key for event in body.events if event.flag_key is not None]
    draws = await draw_all(work, caller, flags, ids)
    reasons = [_ignored(event, draws) for event in body.events]
    # An exposure counts before the events that follow it, in any order of the list.
    for kind in (EXPOSURE, CONVERSION, ERROR):
        for entry in draws:
            places = [
                place
                for place, event in enumerate(body.events)
                if reasons[place] is None
                and _names(event, entry.row)
                and _means(event, entry) == kind
            ]
            if places and isinstance(entry, Drawn) and not await _count(work, entry, kind):
                for place in places:
                    reasons[place] = rules.IgnoredBecause.NOT_EXPOSED
    results = [_result(reason) for reason in reasons]
    recorded = reasons.count(None)
    return shapes.EventsRecorded(
        recorded=recorded, ignored=len(results) - recorded, results=results
    )


def _result(reason: rules.IgnoredBecause | None) -> shapes.EventResult:
    if reason is None:
        return shapes.EventResult(recorded=True)
    return shapes.EventResult(recorded=False, reason=reason, message=rules.WHY_IGNORED[reason])


def _ignored(
    event: shapes.ExperimentEvent, draws: Sequence[Drawn | LeftOut]
) -> rules.IgnoredBecause | None:
    """The reason for which an event counts for no experiment, as far as the draws tell it."""
    one = next((draw for draw in draws if _names(event, draw.row)), None)
    if one is None or (isinstance(one, Drawn) and not one.runs):
        return rules.IgnoredBecause.NOT_RUNNING
    if isinstance(one, LeftOut):
        return one.reason
    return None if _means(event, one) else rules.IgnoredBecause.UNKNOWN_EVENT


def _names(event: shapes.ExperimentEvent, row: LiveRow) -> bool:
    if event.experiment_id is not None:
        return event.experiment_id == row.id
    return event.flag_key == row.flag_key


def _means(event: shapes.ExperimentEvent, draw: Drawn | LeftOut) -> str | None:
    """The role of an event in the experiment it names; None when it has none."""
    if event.event == EXPOSURE:
        return EXPOSURE
    if event.event in {CONVERSION, draw.row.primary_metric}:
        return CONVERSION
    return ERROR if event.event in {ERROR, draw.row.guardrail_metric} else None


async def _count(work: UnitOfWork, draw: Drawn, kind: str) -> bool:
    """Count an event of a unit; False when the unit has not met its variant."""
    key = {
        "experiment_id": draw.row.id,
        "unit": hashlib.sha256(draw.unit.encode()).digest(),
    }
    if kind == EXPOSURE:
        values = {**key, "variant": draw.variant.id, "exposed_at": work.now}
        await work.execute(upsert(experiment_unit).values(values).on_conflict_do_nothing())
        return True
    column = _unit.converted_at if kind == CONVERSION else _unit.failed_at
    first = {column.name: sa.func.coalesce(column, work.now)}
    counted = await work.execute(
        sa.update(experiment_unit)
        .where(_unit.experiment_id == key["experiment_id"], _unit.unit == key["unit"])
        .values(first)
    )
    return counted.rowcount > 0


async def _check_known(work: UnitOfWork, ids: Sequence[Id]) -> None:
    if not ids:
        return
    known = await work.rows(sa.select(experiment.c.id).where(experiment.c.id.in_(ids)))
    if len(known) < len(ids):
        raise NotFoundError("experiment")
