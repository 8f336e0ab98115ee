"""Canaries: runs of an automation shared out between published versions (ADR 0049).

The experiment stands on the automation too, so that accepting a run asks nothing more. A run that
takes part says so in its options, and the figures of the experiment are counts of such runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import canaries, runnable_versions
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.values import moment
from models.people.experiments.rows import ExperimentRow
from models.people.experiments.rules import (
    AssignmentUnit,
    Counts,
    ExperimentStatus,
    Variant,
    draw,
)
from runtime.database import UnitOfWork
from runtime.errors import ValidationError
from runtime.ids import parse_id
from runtime.timestamps import wire_timestamp

OPTION = "experimentId"
"""Names the experiment among the options of a run that takes part."""

_CHOSEN = frozenset({RunSource.TEST, RunSource.FROM_NODE, RunSource.REPLAY, RunSource.BACKFILL})
"""Sources of runs whose version somebody chose, or that repeat another run."""

_run = automation_run.c


async def drawn_version(
    work: UnitOfWork, actor: Actor, version: RunnableVersion, source: RunSource, run_id: Id
) -> tuple[RunnableVersion, JsonObject]:
    """The version that a run executes instead of the published one, and its further options."""
    canary = version.canary
    if canary is None or source in _CHOSEN or not _runs(canary, work.now):
        return version, {}
    variants = [Variant(one["id"], one["label"], one["split"]) for one in canary["variants"]]
    if str(version.version_id) not in {variant.id for variant in variants}:
        # Somebody has published another version meanwhile: that is what they want to run.
        return version, {}
    unit = _unit(AssignmentUnit(canary["unit"]), actor, run_id)
    version_id = draw(Id(canary["experimentId"]), unit, canary["allocation"], variants)
    if version_id is None:
        return version, {}
    options = {OPTION: canary["experimentId"]}
    if version_id == str(version.version_id):
        return version, options
    named = await runnable_versions.named(work, actor, version.automation_id, Id(version_id))
    return named, options


def _runs(canary: JsonObject, now: datetime) -> bool:
    starts, ends = canary["startedAt"], canary["endsAt"]
    return (starts is None or moment(starts) <= now) and (ends is None or now < moment(ends))


def _unit(kind: AssignmentUnit, actor: Actor, run_id: Id) -> str:
    """The keeper of a version: a workspace, a person, or, where nobody asked, the run alone."""
    if kind is AssignmentUnit.WORKSPACE:
        return f"workspace:{actor.workspace_id}"
    if kind is AssignmentUnit.USER and actor.person is not None:
        return f"user:{actor.person}"
    return f"run:{run_id}"


@dataclass(frozen=True, slots=True)
class AutomationVersions:
    """Automations as experiments ask for them: `targetKey` is one, variants are versions of it."""

    async def check(
        self, work: UnitOfWork, target_key: str | None, variants: Sequence[Variant]
    ) -> None:
        """Raises ValidationError for an automation or a version that there is none of."""
        automation_id = None if target_key is None else parse_id(target_key)
        if automation_id is None or not await canaries.is_automation(work, automation_id):
            raise ValidationError.at("targetKey", "There is no automation of this id.")
        ids = [parse_id(variant.id) for variant in variants]
        named = [one for one in ids if one is not None]
        found = await canaries.published_among(work, automation_id, named)
        for place, one in enumerate(ids):
            if one not in found:
                raise ValidationError.at(
                    f"variants.{place}.id", "The automation never published such a version."
                )

    async def changed(self, work: UnitOfWork, row: ExperimentRow) -> None:
        """Write the experiment to its automation while it may run, and take it away after."""
        await canaries.remove_canary(work, row.id)
        if row.status not in {ExperimentStatus.SCHEDULED, ExperimentStatus.RUNNING}:
            return
        if row.status == ExperimentStatus.SCHEDULED and row.started_at is None:
            return
        await canaries.set_canary(work, Id(row.target_key), _canary(row))

    async def counts(
        self, work: UnitOfWork, rows: Sequence[ExperimentRow]
    ) -> Mapping[tuple[str, str], Counts]:
        """Counts of the runs of the experiments by version: all, succeeded, failed."""
        experiment = _run.options[OPTION].as_string()
        version = _run.automation_version_id
        failed = _run.status.in_([RunStatus.FAILED, RunStatus.TIMED_OUT])
        totals = await work.rows(
            select(
                experiment.label("experiment"),
                version.label("version"),
                func.count().label("exposures"),
                func.count().filter(_run.status == RunStatus.SUCCEEDED).label("conversions"),
                func.count().filter(failed).label("errors"),
            )
            .where(
                _run.automation_id.in_([Id(row.target_key) for row in rows]),
                _run.created_at >= min(row.created_at for row in rows),
                experiment.in_([str(row.id) for row in rows]),
                _run.source.not_in(sorted(_CHOSEN)),
            )
            .group_by(experiment, version)
        )
        return {
            (row.experiment, str(row.version)): Counts(row.exposures, row.conversions, row.errors)
            for row in totals
        }


def _canary(row: ExperimentRow) -> JsonObject:
    return {
        "experimentId": str(row.id),
        "allocation": row.allocation,
        "unit": row.assignment_unit,
        "startedAt": None if row.started_at is None else wire_timestamp(row.started_at),
        "endsAt": None if row.ends_at is None else wire_timestamp(row.ends_at),
        "variants": row.variants,
    }
