"""Counting what happens to the units of experiments (decisions C16, ADR 0049)."""

import hashlib
from collections.abc import Mapping, Sequence

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal, Role
from models.core.base import Id
from models.people.experiments.assignments import Drawn, LeftOut, LiveRow, caller_of, draw_all
from models.people.experiments.rules import WHY_IGNORED, IgnoredBecause
from models.people.experiments.shapes import (
    EventResult,
    EventsRecorded,
    ExperimentEvent,
    RecordEvents,
)
from models.people.experiments.tables import experiment, experiment_unit
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, ValidationError

EXPOSURE, CONVERSION, ERROR = "exposure", "conversion", "error"

_unit = experiment_unit.c


async def record_events(
    work: UnitOfWork, principal: Principal, roles: Mapping[Id, Role], body: RecordEvents
) -> EventsRecorded:
    """Count what happened to the caller; each kind of event once per unit and experiment.

    Raises NotFoundError for an unknown experiment or workspace, ValidationError for an event that
    names no experiment or two.
    """
    caller = caller_of(principal, roles, body)
    for place, event in enumerate(body.events):
        if (event.experiment_id is None) == (event.flag_key is None):
            raise ValidationError.at(f"events.{place}", "Give either experimentId or flagKey.")
    ids = sorted({event.experiment_id for event in body.events if event.experiment_id is not None})
    await _check_known(work, ids)
    flags = [event.flag_key for event in body.events if event.flag_key is not None]
    draws = await draw_all(work, caller, flags, ids)
    reasons = [_ignored(event, draws) for event in body.events]
    # An exposure counts before what follows it, whatever the order of the events.
    for kind in (EXPOSURE, CONVERSION, ERROR):
        for draw in draws:
            places = [
                place
                for place, event in enumerate(body.events)
                if reasons[place] is None
                and _names(event, draw.row)
                and _means(event, draw) == kind
            ]
            if places and isinstance(draw, Drawn) and not await _count(work, draw, kind):
                for place in places:
                    reasons[place] = IgnoredBecause.NOT_EXPOSED
    results = [_result(reason) for reason in reasons]
    recorded = reasons.count(None)
    return EventsRecorded(recorded=recorded, ignored=len(results) - recorded, results=results)


def _result(reason: IgnoredBecause | None) -> EventResult:
    if reason is None:
        return EventResult(recorded=True)
    return EventResult(recorded=False, reason=reason, message=WHY_IGNORED[reason])


def _ignored(event: ExperimentEvent, draws: Sequence[Drawn | LeftOut]) -> IgnoredBecause | None:
    """The reason for which an event counts for no experiment, as far as the draws tell it."""
    one = next((draw for draw in draws if _names(event, draw.row)), None)
    if one is None or (isinstance(one, Drawn) and not one.runs):
        return IgnoredBecause.NOT_RUNNING
    if isinstance(one, LeftOut):
        return one.reason
    return None if _means(event, one) else IgnoredBecause.UNKNOWN_EVENT


def _names(event: ExperimentEvent, row: LiveRow) -> bool:
    if event.experiment_id is not None:
        return event.experiment_id == row.id
    return event.flag_key == row.flag_key


def _means(event: ExperimentEvent, draw: Drawn | LeftOut) -> str | None:
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
    first = {column.name: func.coalesce(column, work.now)}
    counted = await work.execute(
        update(experiment_unit)
        .where(_unit.experiment_id == key["experiment_id"], _unit.unit == key["unit"])
        .values(first)
    )
    return counted.rowcount > 0


async def _check_known(work: UnitOfWork, ids: Sequence[Id]) -> None:
    if not ids:
        return
    known = await work.rows(select(experiment.c.id).where(experiment.c.id.in_(ids)))
    if len(known) < len(ids):
        raise NotFoundError("experiment")
