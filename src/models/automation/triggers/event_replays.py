"""Replaying an event of the inbox: one more run of it, on any version, as a test or for real.

A replay has its run's payload from the run that the event started, or else from the inbox, which
has it without secrets: the outcome of the replay and its run then say where (ADR 0161). It is an
outcome of its own beside the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.automation.automation_runs import commands
from models.automation.automation_runs.acceptance import RunRequest, accept
from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.shapes import REDACTED_PATHS, TestRun
from models.automation.automations import runnable_versions
from models.automation.automations.queries import visible
from models.automation.automations.references import with_present_keys
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.inbox import queries as inbox_queries
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, KeptEvent
from models.automation.inbox.store import keep_replay
from models.automation.triggers.rules import payload_of
from models.core.access.rules import Actor, Level
from models.core.base import EXAMPLE_ID, Id, Input, InputId, JsonObject, example
from models.messages.events.rules import ANSWERED_BY
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import DeniedError, NotFoundError, RunError, ValidationError
from runtime.redaction import redacted_paths

NOT_KEPT = "The payload of the event was too large to keep, and no run has it."


class ReplayEvent(Input):
    """Body of replay trigger event: the automation, and the version that runs.

    `version` is `published`, `draft`, or the number of a version. A test sends nothing outside.
    """

    model_config = example({"automationId": EXAMPLE_ID, "version": "draft", "test": True})

    automation_id: InputId
    version: Literal["published", "draft"] | Annotated[int, Field(ge=1, strict=True)] = "published"
    test: bool = False


class _EventRun(Protocol):
    """A run that the event started."""

    id: Id
    trigger_payload: JsonObject
    attributes: Mapping[str, str] | None
    options: JsonObject


@dataclass(frozen=True, slots=True)
class _Replayed:
    """The payload of a replay, the paths where it lacks what came, and the run that had it."""

    payload: JsonObject
    redacted: Sequence[str]
    earlier: _EventRun | None

    @property
    def options(self) -> JsonObject:
        """The options of the run."""
        return {REDACTED_PATHS: [*self.redacted]} if self.redacted else {}


async def replay(
    work: UnitOfWork, actor: Actor, event_id: Id, replay_id: Id, body: ReplayEvent
) -> inbox_queries.EventOutcomeShape:
    """Start a run of an event, by an automation that it concerned.

    Raises NotFoundError when the actor does not see one of the two, DeniedError without edit access
    to the automation, ValidationError for one that the event did not concern or for a version that
    is not there, and RunError when there is no payload, the version cannot run, or its concurrency
    forbids it.
    """
    seen = await inbox_queries.get_event(work, actor, event_id)
    automation_id = body.automation_id
    if await visible.level(work, actor, automation_id) < Level.VIEW:
        raise NotFoundError("automation")
    if automation_id not in {outcome.automation_id for outcome in seen.outcomes}:
        raise ValidationError.at("automationId", "The event did not reach this automation.")
    version = await version_to_replay(work, actor, body)
    event = await inbox_queries.find_event(work, actor, event_id)
    replayed = await _replayed(work, event, automation_id)
    run_id = derived_id(replay_id, "run")
    if body.test:
        named = str(version.version_id)
        test = TestRun.model_validate(
            {"payload": replayed.payload, "automationVersionId": named, "simulate": True}
        )
        await commands.test_run(work, actor, automation_id, test, run_id, replayed.redacted)
        detail = {"version": version.version, "test": True, **replayed.options}
        judgement = Judgement(EventOutcome.RUN, run_id, detail)
    else:
        judgement = await _start(work, actor, version, replayed, run_id)
    await keep_replay(work, replay_id, event, automation_id, judgement)
    answer = await inbox_queries.get_event(work, actor, event_id)
    return next(outcome for outcome in answer.outcomes if outcome.id == replay_id)


async def _start(
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    replayed: _Replayed,
    run_id: Id,
) -> Judgement:
    """Accept the run for real; a version that was never published has to compile."""
    await runnable_versions.compiled(work, actor, version.automation_id, version)
    earlier = replayed.earlier
    request = RunRequest(
        RunSource.REPLAY,
        replayed.payload,
        options=replayed.options,
        attributes=(earlier and earlier.attributes) or {},
        replay_of_run_id=None if earlier is None else earlier.id,
        run_id=run_id,
    )
    accepted = (await accept(work, actor, version, request)).judgement
    detail = {**(accepted.detail or {}), "version": version.version, "test": False}
    detail |= replayed.options
    return Judgement(accepted.outcome, run_id, detail)


async def _replayed(work: UnitOfWork, event: KeptEvent, automation_id: Id) -> _Replayed:
    """The payload of a replay, by the keys that fields have now. Raises RunError."""
    earlier = await _first_run(work, event, automation_id)
    if earlier is not None:
        # The run of an earlier replay lacks what that one lacked.
        redacted = earlier.options.get(REDACTED_PATHS, ())
        payload = earlier.trigger_payload
    else:
        payload = _kept(event)
        redacted = redacted_paths(payload)
    payload = await with_present_keys(work, event.workspace_id, payload, event.received_at)
    return _Replayed(payload, redacted, earlier)


async def _first_run(work: UnitOfWork, event: KeptEvent, automation_id: Id) -> _EventRun | None:
    """The first run of the event that is still there."""
    run_ids = sa.literal(
        await inbox_queries.runs_of_event(work, event, automation_id), sa.ARRAY(sa.Uuid)
    )
    ids = (
        sa.func.unnest(run_ids)
        .table_valued(sa.column("run_id", sa.Uuid), with_ordinality="place")
        .render_derived(name="started")
    )
    run, is_its_run = run_of(ids.c.run_id)
    return await work.first(
        sa.select(RUN.id, RUN.trigger_payload, RUN.attributes, RUN.options)
        .select_from(ids)
        .join(run, is_its_run)
        .where(RUN.workspace_id == event.workspace_id, RUN.automation_id == automation_id)
        .order_by(ids.c.place)
        .limit(1),
        of=_EventRun,
    )


def _kept(event: KeptEvent) -> JsonObject:
    """The trigger payload of an event that started no run. Raises RunError."""
    if event.payload is None or event.source == EventSource.RECORD_DATE:
        raise RunError(NOT_KEPT)
    if event.source == EventSource.RECORD:
        return payload_of(event.payload)
    return {key: value for key, value in event.payload.items() if key != ANSWERED_BY}


async def version_to_replay(work: UnitOfWork, actor: Actor, body: ReplayEvent) -> RunnableVersion:
    """The version that runs. Raises as `replay` does for the automation and the version."""
    automation_id = body.automation_id
    level = await visible.level(work, actor, automation_id)
    if level < Level.VIEW:
        raise NotFoundError("automation")
    if level < Level.EDIT:
        raise DeniedError("You need edit access to the automation.")
    if isinstance(body.version, int):
        return await runnable_versions.numbered(work, actor, automation_id, body.version)
    if body.version == "draft":
        return await runnable_versions.draft(work, actor, automation_id)
    enabled = not body.test
    return await runnable_versions.published(work, actor, automation_id, only_enabled=enabled)
