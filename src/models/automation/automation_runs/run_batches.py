"""Accepting many runs of one automation in one transaction, with an answer for each (ADR 0081)."""

from collections.abc import Sequence
from functools import partial

from models.automation.automation_runs import slots
from models.automation.automation_runs.acceptance import accept
from models.automation.automation_runs.admission import key_of
from models.automation.automation_runs.commands import manual_request
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.shapes import BatchedRun, PayloadFault, RunBatch, RunsBatched
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.errors import RunError, ValidationError


async def run_batch(
    work: UnitOfWork, actor: Actor, automation_id: Id, body: RunBatch
) -> RunsBatched:
    """A queued run of the published version for each payload that it takes, in their order.

    Raises RunError unless published and enabled.
    """
    version = await runnable_versions.published(work, actor, automation_id)
    await _lock_slots(work, version, body.payloads)
    attributes = body.attributes or [{}] * len(body.payloads)
    results = [
        await _run(work, actor, version, payload, own)
        for payload, own in zip(body.payloads, attributes, strict=True)
    ]
    accepted = sum(result.accepted for result in results)
    return RunsBatched(accepted=accepted, refused=len(results) - accepted, results=results)


async def _run(
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    payload: JsonObject,
    attributes: Attributes,
) -> BatchedRun:
    # Both refuse before they write anything.
    try:
        run = await accept(work, actor, version, manual_request(version, payload, attributes))
    except ValidationError as error:
        details = [PayloadFault(path=one.path, message=one.message) for one in error.details]
        return BatchedRun(
            accepted=False, error=error.code, message=error.message, details=details or None
        )
    except RunError as error:
        return BatchedRun(accepted=False, error=error.code, message=error.message)
    return BatchedRun(accepted=True, run_id=run.run_id, status=RunStatus.QUEUED)


async def _lock_slots(
    work: UnitOfWork, version: RunnableVersion, payloads: Sequence[JsonObject]
) -> None:
    """Take the locks of all keys in one order: two batches would else wait for each other."""
    limits = version.trigger_config.get("concurrency")
    if limits is None:
        return
    keys = set()
    for payload in payloads:
        try:
            keys.add(await evaluate_bounded(partial(key_of, limits, payload)))
        except ExpressionError:
            continue
    for key in sorted(keys):
        await slots.lock(work, version.automation_id, key)
