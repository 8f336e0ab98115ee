"""Assigning variants and counting what happens to units (decisions C16, ADR 0049)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import ARRAY, Boolean, Text, Uuid, and_, any_, bindparam, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal, Role
from models.core.base import Id, JsonObject
from models.people.audience_segments.queries import segments_of
from models.people.audience_segments.rules import EVERYBODY
from models.people.experiments.rules import (
    AssignmentUnit,
    ExperimentStatus,
    TargetType,
    Variant,
    draw,
)
from models.people.experiments.shapes import (
    AssignExperiments,
    Assignment,
    Assignments,
    EventsRecorded,
    ExperimentEvent,
    RecordEvents,
)
from models.people.experiments.tables import experiment, experiment_unit
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError
from runtime.prepared_statement import PreparedStatement

EXPOSURE, CONVERSION, ERROR = "exposure", "conversion", "error"

_experiment = experiment.c
_unit = experiment_unit.c
_NOW = bindparam("now", type_=_experiment.created_at.type)


class LiveRow(Protocol):
    """What an assignment asks of an experiment."""

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


_RUNS = and_(
    or_(
        _experiment.status == ExperimentStatus.RUNNING,
        and_(
            _experiment.status == ExperimentStatus.SCHEDULED,
            _experiment.started_at <= _NOW,
        ),
    ),
    or_(_experiment.ends_at.is_(None), _experiment.ends_at > _NOW),
)
_WON = and_(
    _experiment.winner.is_not(None),
    or_(
        _experiment.status == ExperimentStatus.COMPLETED,
        and_(_experiment.status == ExperimentStatus.RUNNING, _experiment.ends_at <= _NOW),
    ),
)
_COLUMNS = [_experiment[name] for name in LiveRow.__annotations__]
_LIVE = PreparedStatement(
    select(*_COLUMNS, _RUNS.label("runs"))
    .where(
        or_(_RUNS, _WON),
        # The automation that is shared out shares out its own runs.
        _experiment.target_type != TargetType.AUTOMATION_VERSION,
        or_(
            bindparam("every", type_=Boolean),
            _experiment.flag_key == any_(bindparam("flags", type_=ARRAY(Text))),
            _experiment.id == any_(bindparam("ids", type_=ARRAY(Uuid))),
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

    def unit(self, kind: AssignmentUnit) -> str | None:
        """What the caller is called as a unit of this kind; None when that was not said."""
        match kind:
            case AssignmentUnit.USER:
                return f"user:{self.user_id}"
            case AssignmentUnit.WORKSPACE:
                return None if self.workspace_id is None else f"workspace:{self.workspace_id}"
            case AssignmentUnit.DEVICE:
                return None if self.device_id is None else f"device:{self.device_id}"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The variant that a unit got in an experiment; `runs` says that it is still being found out
    which one is best."""

    row: LiveRow
    unit: str
    variant: Variant
    runs: bool


async def assign(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], body: AssignExperiments
) -> Assignments:
    """The variants of the caller. Raises NotFoundError for a workspace they are not in."""
    caller = _caller(principal, roles, body)
    drawn = await _draw_all(work, caller, body.flag_keys, [])
    return Assignments(assignments=[_assignment(one) for one in drawn])


async def record_events(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], body: RecordEvents
) -> EventsRecorded:
    """Count what happened to the caller; each kind of event once per unit and experiment.

    Raises NotFoundError for an unknown experiment or workspace, ValidationError for an event that
    names no experiment or two.
    """
    caller = _caller(principal, roles, body)
    for place, event in enumerate(body.events):
        if (event.experiment_id is None) == (event.flag_key is None):
            raise ValidationError.at(f"events.{place}", "Give either experimentId or flagKey.")
    ids = sorted({one.experiment_id for one in body.events if one.experiment_id is not None})
    await _check_known(work, ids)
    flags = [one.flag_key for one in body.events if one.flag_key is not None]
    drawn = [one for one in await _draw_all(work, caller, flags, ids) if one.runs]
    recorded = 0
    for kind in (EXPOSURE, CONVERSION, ERROR):
        for one in drawn:
            times = sum(_means(event, one.row) == kind for event in body.events)
            if times and await _count(work, one, kind):
                recorded += times
    return EventsRecorded(recorded=recorded, ignored=len(body.events) - recorded)


def _caller(
    principal: Principal, roles: Mapping[Id, Role], body: AssignExperiments | RecordEvents
) -> Caller:
    workspace_id = body.workspace_id or principal.key_workspace_id
    if workspace_id is not None and workspace_id not in roles:
        raise NotFoundError("workspace")
    return Caller(principal.user_id, workspace_id, body.device_id, body.attributes)


async def _draw_all(
    work: UnitOfWork, caller: Caller, flags: Sequence[str] | None, ids: Sequence[Id]
) -> list[_Drawn]:
    asked = {"every": flags is None, "flags": list(flags or ()), "ids": list(ids)}
    rows = await _LIVE.rows(work, {"now": work.now, **asked})
    drawn = [one for row in rows if (one := _draw(row, caller, runs=row.runs)) is not None]
    audiences = {one.row.audience for one in drawn} - {EVERYBODY}
    belongs = {EVERYBODY}
    if audiences:
        belongs |= await segments_of(
            work,
            audiences,
            user_id=caller.user_id,
            workspace_id=caller.workspace_id,
            attributes=caller.attributes,
        )
    return [one for one in drawn if one.row.audience in belongs]


def _draw(row: LiveRow, caller: Caller, *, runs: bool) -> _Drawn | None:
    unit = caller.unit(AssignmentUnit(row.assignment_unit))
    if unit is None:
        return None
    variants = {one["id"]: Variant(one["id"], one["label"], one["split"]) for one in row.variants}
    chosen = draw(row.id, unit, row.allocation, list(variants.values())) if runs else row.winner
    return None if chosen is None else _Drawn(row, unit, variants[chosen], runs)


def _assignment(drawn: _Drawn) -> Assignment:
    row = drawn.row
    return Assignment(
        experiment_id=row.id,
        flag_key=row.flag_key,
        target_type=TargetType(row.target_type),
        target_key=row.target_key,
        assignment_unit=AssignmentUnit(row.assignment_unit),
        variant_id=drawn.variant.id,
        label=drawn.variant.label,
    )


def _means(event: ExperimentEvent, row: LiveRow) -> str | None:
    """What an event is to an experiment; None when it is nothing to it."""
    if event.experiment_id != row.id and (event.flag_key is None or event.flag_key != row.flag_key):
        return None
    if event.event == EXPOSURE:
        return EXPOSURE
    if event.event in {CONVERSION, row.primary_metric}:
        return CONVERSION
    return ERROR if event.event in {ERROR, row.guardrail_metric} else None


async def _count(work: UnitOfWork, drawn: _Drawn, kind: str) -> bool:
    """Count an event of a unit; False when the unit has not met its variant."""
    this = {
        "experiment_id": drawn.row.id,
        "unit": hashlib.sha256(drawn.unit.encode()).digest(),
    }
    if kind == EXPOSURE:
        values = {**this, "variant": drawn.variant.id, "exposed_at": work.now}
        await work.execute(upsert(experiment_unit).values(values).on_conflict_do_nothing())
        return True
    column = _unit.converted_at if kind == CONVERSION else _unit.failed_at
    first = {column.name: func.coalesce(column, work.now)}
    counted = await work.execute(
        update(experiment_unit)
        .where(_unit.experiment_id == this["experiment_id"], _unit.unit == this["unit"])
        .values(first)
    )
    return counted.rowcount > 0


async def _check_known(work: UnitOfWork, ids: Sequence[Id]) -> None:
    if not ids:
        return
    known = await work.rows(select(_experiment.id).where(_experiment.id.in_(ids)))
    if len(known) < len(ids):
        raise NotFoundError("experiment")
