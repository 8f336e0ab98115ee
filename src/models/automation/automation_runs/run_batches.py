"""Many runs of one automation, accepted in one transaction and read together (ADR 0081)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import ARRAY, Uuid, any_, literal, select

from models.automation.automation_runs import slots
from models.automation.automation_runs.acceptance import accept
from models.automation.automation_runs.admission import key_of
from models.automation.automation_runs.commands import manual_request
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.shapes import (
    MOST_RUNS,
    BatchedRun,
    PayloadFault,
    RunBatch,
    RunBatchDetail,
    RunOfBatch,
    RunsBatched,
)
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.attributes import Attributes
from models.automation.automations.runnable_versions import RunnableVersion
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionError
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, RunError, ValidationError

_runs = automation_run.c


async def run_batch(
    work: UnitOfWork, actor: Actor, automation_id: Id, batch_id: Id, body: RunBatch
) -> RunsBatched:
    """A queued run of the published version for each payload that it takes, in their order.

    Raises RunError unless published and enabled.
    """
    run_ids = run_ids_of(batch_id)
    version = await runnable_versions.published(work, actor, automation_id)
    await _lock_slots(work, version, body.payloads)
    attributes = body.attributes or [{}] * len(body.payloads)
    results = [
        await _run(work, actor, version, run_id, payload, own)
        for run_id, payload, own in zip(run_ids, body.payloads, attributes, strict=False)
    ]
    accepted = sum(result.accepted for result in results)
    refused = len(results) - accepted
    return RunsBatched(id=batch_id, accepted=accepted, refused=refused, results=results)


async def get_batch(
    work: UnitOfWork, actor: Actor, automation_id: Id, batch_id: Id
) -> RunBatchDetail:
    """The runs of a batch as they are now, in their order. Raises NotFoundError without any.

    A batch is no row of its own: the ids of its runs follow from its id.
    """
    run_ids = any_(literal(run_ids_of(batch_id), ARRAY(Uuid)))
    rows = await work.rows(
        select(_runs.id, _runs.status, _runs.created_at)
        .where(
            _runs.workspace_id == actor.workspace_id,
            _runs.automation_id == automation_id,
            _runs.id == run_ids,
        )
        .order_by(_runs.id)
    )
    if not rows:
        raise NotFoundError("batch")
    return RunBatchDetail(
        id=batch_id,
        created_at=rows[0].created_at,
        accepted=len(rows),
        open=sum(row.status in OPEN_RUN for row in rows),
        statuses=Counter(RunStatus(row.status) for row in rows),
        runs=[RunOfBatch(run_id=row.id, status=RunStatus(row.status)) for row in rows],
    )


def run_ids_of(batch_id: Id) -> list[Id]:
    """The ids that the runs of a batch may have, in the order of their payloads."""
    return [Id(int=(batch_id.int + number) % 2**128) for number in range(1, MOST_RUNS + 1)]


async def _run(
    work: UnitOfWork,
    actor: Actor,
    version: RunnableVersion,
    run_id: Id,
    payload: JsonObject,
    attributes: Attributes,
) -> BatchedRun:
    # Both refuse before they write anything.
    try:
        request = manual_request(version, payload, attributes)
        run = await accept(work, actor, version, replace(request, run_id=run_id))
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
