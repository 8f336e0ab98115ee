"""The gate every node passes, in the same transaction that writes its node run (promise I5).

Cancel closes a run under the row's lock; a node holds that row shared while it writes, so a node
either started before the cancel or never does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, select

from models.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.automation_runs.errors import RunClosedError
from models.automation_runs.rules import ACTIVE_RUN, NodeStatus
from models.automation_runs.tables import automation_run, node_run
from models.base import Id, JsonObject
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a node of an open run may know, and the state its own node run already has."""

    run_id: Id
    workspace_id: Id
    automation_id: Id
    graph_checksum: str
    source: str
    trigger_payload: JsonObject
    options: JsonObject
    started_at: datetime
    replay_of_run_id: Id | None
    created_by_user_id: Id | None
    node_status: str | None
    node_attempt: int | None
    node_outcome: str | None
    node_case_key: str | None

    @property
    def actor(self) -> Actor:
        """The platform itself, writing with an editor's rights in the run's own workspace."""
        return Actor(
            principal=Principal(
                type=PrincipalType.SYSTEM,
                id=self.automation_id,
                user_id=self.created_by_user_id or self.automation_id,
            ),
            workspace_id=self.workspace_id,
            role=Role.EDITOR,
            scopes=ROLE_SCOPES[Role.EDITOR],
        )

    @property
    def facts(self) -> JsonObject:
        """The `run` variable of bindings and expressions (decisions C8)."""
        return {
            "id": str(self.run_id),
            "startedAt": wire_timestamp(self.started_at),
            "source": self.source,
            "workspaceId": str(self.workspace_id),
        }


async def pass_gate(
    work: UnitOfWork, run_id: Id, node_id: str, scope_key: str, *, exclusive: bool = False
) -> RunContext:
    """The context of an open run, whose row stays locked until the transaction ends.

    `exclusive` is for those who go on to change the run's own status. Raises RunClosedError.
    """
    own = and_(
        node_run.c.run_id == automation_run.c.id,
        node_run.c.node_id == node_id,
        node_run.c.scope_key == scope_key,
    )
    run = automation_run.c
    statement = (
        select(
            run.id,
            run.workspace_id,
            run.automation_id,
            run.graph_checksum,
            run.source,
            run.trigger_payload,
            run.options,
            run.started_at,
            run.replay_of_run_id,
            run.created_by_user_id,
            node_run.c.status,
            node_run.c.attempt,
            node_run.c.outcome,
            node_run.c.case_key,
        )
        .select_from(automation_run.outerjoin(node_run, own))
        .where(run.id == run_id, run.status.in_(ACTIVE_RUN))
        .with_for_update(read=not exclusive, of=automation_run)
    )
    row = await work.first(statement)
    if row is None:
        raise RunClosedError
    return RunContext(*tuple(row))


async def load_outputs(
    work: UnitOfWork, context: RunContext, node_ids: Iterable[str] | None
) -> dict[str, Any]:
    """Outputs of the succeeded nodes a binding can read; None means of every node.

    A node that did not run here is looked up in the run this one replays (decisions D3), unless
    its output was pinned by the caller.
    """
    wanted = None if node_ids is None else sorted(node_ids)
    if wanted == []:
        return {}
    outputs: dict[str, Any] = {}
    for run_id in (context.replay_of_run_id, context.run_id):
        if run_id is not None:
            outputs |= await _outputs_of(work, context.workspace_id, run_id, wanted)
    pinned: dict[str, Any] = context.options.get("pinned") or {}
    return outputs | pinned


async def _outputs_of(
    work: UnitOfWork, workspace_id: Id, run_id: Id, node_ids: list[str] | None
) -> dict[str, Any]:
    statement = select(func.jsonb_object_agg(node_run.c.node_id, node_run.c.output)).where(
        node_run.c.workspace_id == workspace_id,
        node_run.c.run_id == run_id,
        node_run.c.scope_key == "",
        node_run.c.status == NodeStatus.SUCCEEDED,
    )
    if node_ids is not None:
        statement = statement.where(node_run.c.node_id.in_(node_ids))
    outputs: JsonObject | None = await work.scalar(statement)
    return outputs or {}
