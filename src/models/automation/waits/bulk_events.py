"""Giving an event to the waiting nodes of many runs in one transaction (ADR 0089)."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ARRAY, Uuid, any_, literal, select

from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.waits import store
from models.automation.waits.rules.resolution import resolve
from models.automation.waits.rules.responses import Resolution, Response
from models.automation.waits.tables import RunWait, run_wait
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.errors import PlatformError
from runtime.timestamps import wire_timestamp

_wait = run_wait.c


async def give_event(
    work: UnitOfWork,
    actor: Actor,
    run_ids: Sequence[Id],
    node_id: str | None,
    data: JsonObject,
) -> Mapping[Id, PlatformError | None]:
    """Resume the nodes of open runs that wait for an event, all of them or the one named.

    By run: None when one of its nodes goes on, else the refusal of the last. Runs without such a
    node are not there.
    """
    response = Response(str(actor.user_id), wire_timestamp(work.now), data=data)
    waits = await _waiting(work, actor.workspace_id, run_ids, node_id)
    ends = await evaluate_bounded(lambda: [_end_of(wait, response) for wait in waits])
    answers: dict[Id, PlatformError | None] = {}
    passed = []
    for wait, end in zip(waits, ends, strict=True):
        if isinstance(end, Resolution):
            answers[wait.run_id] = None
            passed.append(wait)
        else:
            answers.setdefault(wait.run_id, end)
    if passed:
        # All that let the event through end with the same: its data.
        resolution = next(end for end in ends if isinstance(end, Resolution))
        await store.end_waits(work, passed, resolution, response)
    return answers


def _end_of(wait: RunWait, response: Response) -> Resolution | PlatformError | None:
    try:
        return resolve(wait.kind, wait.terms, None, (), response)
    except PlatformError as error:
        return error


async def _waiting(
    work: UnitOfWork, workspace_id: Id, run_ids: Sequence[Id], node_id: str | None
) -> Sequence[RunWait]:
    """The nodes that wait for an event, locked in one order everywhere."""
    of_node = () if node_id is None else (_wait.node_id == node_id,)
    return await work.rows(
        select(run_wait)
        .join(*run_of(_wait.run_id))
        .where(
            _wait.workspace_id == workspace_id,
            _wait.run_id == any_(literal(list(run_ids), ARRAY(Uuid))),
            _wait.kind == NodeKind.WAIT_EVENT,
            _wait.workflow_id.is_not(None),
            _wait.outcome.is_(None),
            RUN.status.in_(OPEN_RUN),
            *of_node,
        )
        .order_by(_wait.run_id, _wait.node_id, _wait.scope_key)
        .with_for_update(of=run_wait),
        of=RunWait,
    )
