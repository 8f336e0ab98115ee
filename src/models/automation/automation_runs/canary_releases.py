"""Canary releases: a version is tried by a share of runs, then promoted or taken back (ADR 0049).

A canary is an experiment about two versions, of which the candidate is the published one. Taking it
back publishes the other one again.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select

from models.automation.automation_runs.canaries import OPTION
from models.automation.automation_runs.canary_shapes import (
    CanaryAnswer,
    CanaryBody,
    CanaryVersion,
    StartCanary,
)
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import versions
from models.automation.automations.canaries import Release, release_of, version_numbers
from models.automation.automations.commands import publish
from models.automation.automations.shapes import AutomationDetail, PublishAutomation
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.values import moment
from models.people.experiments import commands as experiments
from models.people.experiments.rules import WHOLE, AssignmentUnit, ExperimentStatus, TargetType
from models.people.experiments.shapes import CreateExperiment, UpdateExperiment, VariantInput
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

NONE = "No canary is under way."
RUNS = "A canary is under way already. Promote it, or stop it."
FIRST = "Nothing is published that could keep the other runs. Publish a first version."
SAME = "The version is the published one. Name another, or open a draft."

_run = automation_run.c


@dataclass(frozen=True, slots=True)
class CanaryShare:
    """The two versions of a canary without their runs, which are many to count."""

    control: CanaryVersion
    candidate: CanaryVersion


async def canary_share(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryShare | None:
    """The versions of the canary that is under way, and their shares. Raises NotFoundError."""
    release = await release_of(work, actor, automation_id)
    return CanaryShare(*await _pair(work, release, {})) if _is_under_way(release) else None


async def canary(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryAnswer:
    """The canary of an automation, with the runs of both versions by status.

    Raises NotFoundError.
    """
    release = await release_of(work, actor, automation_id)
    if not _is_under_way(release):
        return CanaryAnswer(canary=None)
    return CanaryAnswer(canary=await _body(work, actor, release))


async def start(  # the parts of a release
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
    release = await release_of(work, actor, automation_id)
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
    shares = {control: WHOLE - body.percent, candidate: body.percent}
    await _begin(work, actor, experiment_id, published, shares)
    return await canary(work, actor, automation_id)


async def promote(work: UnitOfWork, actor: Actor, automation_id: Id) -> CanaryAnswer:
    """Let every run take the candidate. Raises ConflictError when no canary is under way."""
    await versions.lock(work, actor, automation_id)
    release = await release_of(work, actor, automation_id)
    if not _is_under_way(release):
        raise ConflictError(NONE)
    await _end(work, release, winner=_versions(release)[1])
    return CanaryAnswer(canary=None)


async def stop(work: UnitOfWork, actor: Actor, keys: KeyRing, automation_id: Id) -> CanaryAnswer:
    """Publish the version from before again. Raises ConflictError when no canary is under way."""
    await versions.lock(work, actor, automation_id)
    release = await release_of(work, actor, automation_id)
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
    numbers = await version_numbers(work, published.id, shares)
    creation = CreateExperiment(
        name=f"Canary of {published.label}"[:200],
        targetType=TargetType.AUTOMATION_VERSION,
        targetKey=str(published.id),
        assignmentUnit=AssignmentUnit.DEVICE,
        status=ExperimentStatus.SCHEDULED,
        variants=[
            VariantInput(id=str(version_id), label=f"v{numbers[version_id]}", split=share)
            for version_id, share in shares.items()
        ],
    )
    await experiments.create_experiment(work, actor.principal, experiment_id, creation)
    await _move(work, experiment_id, ExperimentStatus.RUNNING)


def _is_under_way(release: Release) -> bool:
    """True while runs are shared out between the published version and one more."""
    if release.canary is None or release.canary["startedAt"] is None:
        return False
    ids = [one["id"] for one in release.canary["variants"]]
    return len(ids) == 2 and str(release.published_version_id) in ids


def _versions(release: Release) -> tuple[Id, Id]:
    """The ids of control and candidate."""
    assert release.canary is not None, "a canary is under way"
    ids = [Id(one["id"]) for one in release.canary["variants"]]
    candidate = release.published_version_id
    assert candidate is not None, "it is one of the two"
    return next(one for one in ids if one != candidate), candidate


async def _end(work: UnitOfWork, release: Release, winner: Id | None) -> None:
    """Archive the experiment; its target is free for the next one then."""
    assert release.canary is not None, "there is one to end"
    experiment_id = Id(release.canary["experimentId"])
    if winner is None:
        await _move(work, experiment_id, ExperimentStatus.PAUSED)
    else:
        await _move(work, experiment_id, ExperimentStatus.COMPLETED, winner=str(winner))
    await _move(work, experiment_id, ExperimentStatus.ARCHIVED)


async def _move(
    work: UnitOfWork, experiment_id: Id, status: ExperimentStatus, **others: object
) -> None:
    change = UpdateExperiment.model_validate({"status": status, **others})
    await experiments.update_experiment(work, experiment_id, change)


async def _body(work: UnitOfWork, actor: Actor, release: Release) -> CanaryBody:
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
    work: UnitOfWork, release: Release, runs: Mapping[Id, dict[RunStatus, int]]
) -> list[CanaryVersion]:
    """Control and candidate."""
    assert release.canary is not None, "a canary is under way"
    ids = _versions(release)
    numbers = await version_numbers(work, release.id, ids)
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
        select(_run.automation_version_id, _run.status, func.count().label("number"))
        .where(
            _run.workspace_id == actor.workspace_id,
            _run.automation_id == automation_id,
            _run.created_at >= moment(found["startedAt"]),
            _run.options[OPTION].as_string() == found["experimentId"],
        )
        .group_by(_run.automation_version_id, _run.status)
    )
    counted: dict[Id, dict[RunStatus, int]] = defaultdict(dict)
    for row in rows:
        counted[row.automation_version_id][RunStatus(row.status)] = row.number
    return counted
