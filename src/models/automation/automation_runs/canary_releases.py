"""Canary releases: a version is tried by a share of runs, then promoted or rolled back (ADR 0049).

A canary is an experiment about two versions, of which the candidate is the published one. Taking it
back publishes the other one again. The experiment stands on the automation too, so that accepting a
run asks nothing more. A run that takes part says so in its options, and the figures of the
experiment are counts of such runs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field

from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import runnable_versions, versions
from models.automation.automations.commands import publish
from models.automation.automations.shapes import AutomationDetail, PublishAutomation
from models.core.access.rules import Actor
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape, example
from models.core.values import moment
from models.people.experiments import commands as experiments
from models.people.experiments import rules as experiment_rules
from models.people.experiments.queries import ExperimentRow
from models.people.experiments.shapes import CreateExperiment, UpdateExperiment, VariantInput
from runtime.clock import wire_timestamp
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError
from runtime.ids import parse_id


class StartCanary(Input):
    """Body of start canary: the share of runs that try a version, by default the open draft.

    The version is published; the one that was published before keeps the other runs.
    """

    model_config = example({"percent": 10})

    percent: Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)]
    version_id: InputId | None = None
    expected_draft_version_id: InputId | None = None
    note: Annotated[str, Field(max_length=2_000)] | None = None


class CanaryVersion(Shape):
    """One of the two versions, its share of runs, and how its runs of the canary ended."""

    version_id: Id
    version: int
    percent: float
    runs: dict[RunStatus, int]


class CanaryBody(Shape):
    """A canary: `candidate` is tried by a share of runs, `control` has the others."""

    experiment_id: Id
    started_at: Moment
    control: CanaryVersion
    candidate: CanaryVersion


class CanaryAnswer(Shape):
    """The canary of an automation; absent if none is running."""

    canary: CanaryBody | None = None


NONE = "No canary is running."
RUNS = "A canary is already running. Promote it or stop it."
FIRST = "A canary needs a published version. Publish one first."
SAME = "This version is already published. Choose another or open a draft."

_run = automation_run.c


@dataclass(frozen=True, slots=True)
class CanaryShare:
    """The two versions of a canary without their runs, which are many to count."""

    control: CanaryVersion
    candidate: CanaryVersion


async def canary_share(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryShare | None:
    """The versions of the canary that is under way, and their shares. Raises NotFoundError."""
    release = await runnable_versions.release_of(work, actor, automation_id)
    return CanaryShare(*await _pair(work, release, {})) if _is_under_way(release) else None


async def canary(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryAnswer:
    """The canary of an automation, with the runs of both versions by status.

    Raises NotFoundError.
    """
    release = await runnable_versions.release_of(work, actor, automation_id)
    if not _is_under_way(release):
        return CanaryAnswer(canary=None)
    return CanaryAnswer(canary=await _body(work, actor, release))


async def start(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    automation_id: Id,
    experiment_id: Id,
    body: StartCanary,
) -> CanaryAnswer:
    """Publish a version, and let a share of runs try it.

    Raises ConflictError while another canary is under way, and when there is no version to keep the
    other runs; otherwise as publishing does.
    """
    await versions.lock(work, actor, automation_id)
    release = await runnable_versions.release_of(work, actor, automation_id)
    if _is_under_way(release):
        raise ConflictError(RUNS)
    control = release.published_version_id
    if control is None:
        raise ConflictError(FIRST)
    if release.canary is not None:
        await _end(work, release, winner=None)
    wanted = PublishAutomation(
        versionId=body.version_id,
        note=body.note,
        expectedDraftVersionId=body.expected_draft_version_id,
    )
    published = await publish(work, actor, keys, automation_id, wanted)
    candidate = published.published_version_id
    if candidate is None or candidate == control:
        raise ConflictError(SAME)
    shares = {control: experiment_rules.WHOLE - body.percent, candidate: body.percent}
    await _begin(work, actor, experiment_id, published, shares)
    return await canary(work, actor, automation_id)


async def promote(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryAnswer:
    """Let every run take the candidate. Raises ConflictError when no canary is under way."""
    await versions.lock(work, actor, automation_id)
    release = await runnable_versions.release_of(work, actor, automation_id)
    if not _is_under_way(release):
        raise ConflictError(NONE)
    await _end(work, release, winner=_versions(release)[1])
    return CanaryAnswer(canary=None)


async def stop(work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id) -> CanaryAnswer:
    """Publish the version from before again. Raises ConflictError when no canary is under way."""
    await versions.lock(work, actor, automation_id)
    release = await runnable_versions.release_of(work, actor, automation_id)
    if not _is_under_way(release):
        raise ConflictError(NONE)
    control, _ = _versions(release)
    await _end(work, release, winner=control)
    await publish(work, actor, keys, automation_id, PublishAutomation(versionId=control))
    return CanaryAnswer(canary=None)


async def _begin(
    work: UnitOfWork,
    actor: Actor,
    experiment_id: Id,
    published: AutomationDetail,
    shares: Mapping[Id, float],
) -> None:
    """Start the experiment about versions with these shares."""
    numbers = await runnable_versions.version_numbers(work, published.id, shares)
    creation = CreateExperiment(
        name=f"Canary of {published.label}"[:200],
        targetType=experiment_rules.TargetType.AUTOMATION_VERSION,
        targetKey=str(published.id),
        assignmentUnit=experiment_rules.AssignmentUnit.DEVICE,
        status=experiment_rules.ExperimentStatus.SCHEDULED,
        variants=[
            VariantInput(id=str(version_id), label=f"v{numbers[version_id]}", split=share)
            for version_id, share in shares.items()
        ],
    )
    await experiments.create_experiment(work, actor.principal, experiment_id, creation)
    await _move(work, experiment_id, experiment_rules.ExperimentStatus.RUNNING)


def _is_under_way(release: runnable_versions.Release) -> bool:
    """True while runs are shared out between the published version and one more."""
    if release.canary is None or release.canary["startedAt"] is None:
        return False
    ids = [one["id"] for one in release.canary["variants"]]
    return len(ids) == 2 and str(release.published_version_id) in ids


def _versions(release: runnable_versions.Release) -> tuple[Id, Id]:
    """The ids of control and candidate."""
    assert release.canary is not None, "a canary is under way"
    ids = [Id(one["id"]) for one in release.canary["variants"]]
    candidate = release.published_version_id
    assert candidate is not None, "it is one of the two"
    return next(one for one in ids if one != candidate), candidate


async def _end(work: UnitOfWork, release: runnable_versions.Release, winner: Id | None) -> None:
    """Archive the experiment; its target is free for the next one then."""
    assert release.canary is not None, "there is one to end"
    experiment_id = Id(release.canary["experimentId"])
    if winner is None:
        await _move(work, experiment_id, experiment_rules.ExperimentStatus.PAUSED)
    else:
        await _move(
            work, experiment_id, experiment_rules.ExperimentStatus.COMPLETED, winner=str(winner)
        )
    await _move(work, experiment_id, experiment_rules.ExperimentStatus.ARCHIVED)


async def _move(
    work: UnitOfWork, experiment_id: Id, status: experiment_rules.ExperimentStatus, **others: object
) -> None:
    change = UpdateExperiment.model_validate({"status": status, **others})
    await experiments.update_experiment(work, experiment_id, change)


async def _body(work: UnitOfWork, actor: Actor, release: runnable_versions.Release) -> CanaryBody:
    assert release.canary is not None, "a canary is under way"
    runs = await _runs(work, actor, release.id, release.canary)
    control, candidate = await _pair(work, release, runs)
    return CanaryBody(
        experiment_id=Id(release.canary["experimentId"]),
        started_at=moment(release.canary["startedAt"]),
        control=control,
        candidate=candidate,
    )


async def _pair(
    work: UnitOfWork, release: runnable_versions.Release, runs: Mapping[Id, dict[RunStatus, int]]
) -> list[CanaryVersion]:
    """Control and candidate."""
    assert release.canary is not None, "a canary is under way"
    ids = _versions(release)
    numbers = await runnable_versions.version_numbers(work, release.id, ids)
    variants = release.canary["variants"]
    shares = {Id(variant["id"]): float(variant["split"]) for variant in variants}
    return [
        CanaryVersion(
            version_id=version_id,
            version=numbers[version_id],
            percent=shares[version_id],
            runs=runs.get(version_id, {}),
        )
        for version_id in ids
    ]


async def _runs(
    work: UnitOfWork, actor: Actor, automation_id: Id, found: JsonObject
) -> Mapping[Id, dict[RunStatus, int]]:
    """The numbers of the runs that take part, by version and status."""
    rows = await work.rows(
        sa.select(_run.automation_version_id, _run.status, sa.func.count().label("number"))
        .where(
            _run.workspace_id == actor.workspace_id,
            _run.automation_id == automation_id,
            _run.created_at >= moment(found["startedAt"]),
            _run.options[CANARY_OPTION].as_string() == found["experimentId"],
        )
        .group_by(_run.automation_version_id, _run.status)
    )
    counted: dict[Id, dict[RunStatus, int]] = defaultdict(dict)
    for row in rows:
        counted[row.automation_version_id][RunStatus(row.status)] = row.number
    return counted


CANARY_OPTION = "experimentId"
"""Names the experiment among the options of a run that takes part."""

_CHOSEN = frozenset({RunSource.TEST, RunSource.FROM_NODE, RunSource.REPLAY, RunSource.BACKFILL})
"""Sources of runs whose version was chosen, or that repeat another run."""


async def drawn_version(
    work: UnitOfWork,
    actor: Actor,
    version: runnable_versions.RunnableVersion,
    source: RunSource,
    run_id: Id,
) -> tuple[runnable_versions.RunnableVersion, JsonObject]:
    """The version that a run executes instead of the published one, and its further options."""
    canary = version.canary
    if canary is None or source in _CHOSEN or not _is_on(canary, work.now):
        return version, {}
    variants = [
        experiment_rules.Variant(one["id"], one["label"], one["split"])
        for one in canary["variants"]
    ]
    if str(version.version_id) not in {variant.id for variant in variants}:
        # Another version was published meanwhile, and is the one to run.
        return version, {}
    unit = _unit(experiment_rules.AssignmentUnit(canary["unit"]), actor, run_id)
    version_id = experiment_rules.draw(
        Id(canary["experimentId"]), unit, canary["allocation"], variants
    )
    if version_id is None:
        return version, {}
    options = {CANARY_OPTION: canary["experimentId"]}
    if version_id == str(version.version_id):
        return version, options
    named = await runnable_versions.named(work, actor, version.automation_id, Id(version_id))
    return named, options


def _is_on(canary: JsonObject, now: datetime) -> bool:
    starts, ends = canary["startedAt"], canary["endsAt"]
    return (starts is None or moment(starts) <= now) and (ends is None or now < moment(ends))


def _unit(kind: experiment_rules.AssignmentUnit, actor: Actor, run_id: Id) -> str:
    """The unit that keeps a version: a workspace, a person, or, without one, the run alone."""
    if kind is experiment_rules.AssignmentUnit.WORKSPACE:
        return f"workspace:{actor.workspace_id}"
    if kind is experiment_rules.AssignmentUnit.USER and actor.person is not None:
        return f"user:{actor.person}"
    return f"run:{run_id}"


@dataclass(frozen=True, slots=True)
class AutomationVersions:
    """Automations as experiments ask for them: `targetKey` is one, variants are versions of it."""

    async def check(
        self, work: UnitOfWork, target_key: str | None, variants: Sequence[experiment_rules.Variant]
    ) -> None:
        """Raises ValidationError for an automation or a version that there is none of."""
        automation_id = None if target_key is None else parse_id(target_key)
        if automation_id is None or not await runnable_versions.is_automation(work, automation_id):
            raise ValidationError.at("targetKey", "Automation not found.")
        ids = [parse_id(variant.id) for variant in variants]
        named = [one for one in ids if one is not None]
        found = await runnable_versions.published_among(work, automation_id, named)
        for place, one in enumerate(ids):
            if one not in found:
                raise ValidationError.at(
                    f"variants.{place}.id", "Not a published version of this automation."
                )

    async def changed(self, work: UnitOfWork, row: ExperimentRow) -> None:
        """Write the experiment to its automation while it may run, and take it away after."""
        await runnable_versions.remove_canary(work, row.id)
        if row.status not in {
            experiment_rules.ExperimentStatus.SCHEDULED,
            experiment_rules.ExperimentStatus.RUNNING,
        }:
            return
        if row.status == experiment_rules.ExperimentStatus.SCHEDULED and row.started_at is None:
            return
        await runnable_versions.set_canary(work, Id(row.target_key), _canary(row))

    async def counts(
        self, work: UnitOfWork, rows: Sequence[ExperimentRow]
    ) -> Mapping[tuple[str, str], experiment_rules.Counts]:
        """Counts of the runs of the experiments by version: all, succeeded, failed."""
        experiment = _run.options[CANARY_OPTION].as_string()
        version = _run.automation_version_id
        failed = _run.status.in_([RunStatus.FAILED, RunStatus.TIMED_OUT])
        totals = await work.rows(
            sa.select(
                experiment.label("experiment"),
                version.label("version"),
                sa.func.count().label("exposures"),
                sa.func.count().filter(_run.status == RunStatus.SUCCEEDED).label("conversions"),
                sa.func.count().filter(failed).label("errors"),
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
            (row.experiment, str(row.version)): experiment_rules.Counts(
                row.exposures, row.conversions, row.errors
            )
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
