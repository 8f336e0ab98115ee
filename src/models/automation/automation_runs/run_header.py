"""The header of a run: what is known when it begins and never changes, so that it may be cached."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    Uuid,
    bindparam,
    case,
    func,
    literal,
    select,
)

from models.automation.automation_runs.gate import RUN_IS_OPEN
from models.automation.automation_runs.rules import NodeStatus, RunSource, is_test
from models.automation.automation_runs.tables import automation_run, node_run
from models.core.access.rules import ROLE_SCOPES, Actor, Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from runtime.prepared_statement import PreparedStatement
from runtime.timestamps import wire_timestamp
from runtime.work import Work


def automation_actor(
    workspace_id: Id,
    automation_id: Id,
    user_id: Id | None = None,
    run_chain: tuple[Id, ...] = (),
) -> Actor:
    """The actor of an automation's runs; `user_id` is the user who started the run, if any.

    `run_chain` are the runs that led to what it does; the last of them is the run that acts.
    """
    return Actor(
        principal=Principal(
            type=PrincipalType.SYSTEM,
            id=automation_id,
            user_id=user_id or automation_id,
            run_id=run_chain[-1] if run_chain else None,
            run_chain=run_chain,
        ),
        workspace_id=workspace_id,
        role=Role.EDITOR,
        scopes=ROLE_SCOPES[Role.EDITOR],
    )


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The columns of a run that never change once it has begun."""

    run_id: Id
    workspace_id: Id
    automation_id: Id
    graph_checksum: str
    source: str
    trigger_payload: JsonObject
    options: JsonObject
    start_node_id: str | None
    created_by_user_id: Id | None
    started_at: datetime
    chain: list[Id]
    """The runs that led to this one, oldest first."""
    concurrency_key: str | None
    """The key of the slot it holds, if its automation's runs are limited."""
    parent_run_id: Id | None
    """The run that starts it and waits for it."""

    @property
    def actor(self) -> Actor:
        """The actor of this run: the platform, with an editor's rights in the run's workspace."""
        return automation_actor(
            self.workspace_id,
            self.automation_id,
            self.created_by_user_id,
            (*self.chain, self.run_id),
        )

    @property
    def is_test(self) -> bool:
        """True when mocks hold (decisions D3)."""
        return is_test(self.source, self.options)

    @property
    def is_started_by_relay(self) -> bool:
        """True when the outbox starts it, instead of a workflow: its caller's or a schedule's."""
        return self.parent_run_id is None and self.source != RunSource.SCHEDULE

    @property
    def ends_alone(self) -> bool:
        """True when its success is one statement: it frees no slot and reuses no outputs."""
        return self.concurrency_key is None and not self.options.get("reused")

    @property
    def replayed_run_ids(self) -> list[Id]:
        """The run this one replays, the one that replayed, and so on."""
        return [uuid.UUID(run_id) for run_id in self.options.get("replays", ())]

    @property
    def variable(self) -> JsonObject:
        """The `run` variable of bindings and expressions (decisions C8)."""
        return {
            "id": str(self.run_id),
            "startedAt": wire_timestamp(self.started_at),
            "source": self.source,
            "workspaceId": str(self.workspace_id),
        }


def header_columns() -> tuple[ColumnElement[Any], ...]:
    """The columns `RunHeader` is made of, in its order."""
    run = automation_run.c
    return (
        run.id,
        run.workspace_id,
        run.automation_id,
        run.graph_checksum,
        run.source,
        run.trigger_payload,
        run.options,
        run.start_node_id,
        run.created_by_user_id,
        run.started_at,
        run.chain,
        run.concurrency_key,
        run.parent_run_id,
    )


def read_header(row: Sequence[Any]) -> RunHeader:
    """The header in a row of `header_columns`."""
    return RunHeader(*tuple(row))


_HEADER = PreparedStatement(select(*header_columns()).where(RUN_IS_OPEN))

_RUN_IDS = bindparam("run_ids", type_=ARRAY(Uuid))
_SCOPES = bindparam("scopes", type_=ARRAY(Text))
_ENDED_WELL = node_run.c.status == NodeStatus.SUCCEEDED
_REASON = func.jsonb_build_object(
    "error", node_run.c.error, "errorCode", node_run.c.error_code, type_=node_run.c.output.type
)
_FAILURE = func.coalesce(node_run.c.output, literal({}, node_run.c.output.type)).concat(_REASON)
"""The object that bindings read of a failed node: its reason beside what came of it."""
_OUTPUTS = (
    select(
        node_run.c.node_id,
        node_run.c.scope_key,
        node_run.c.run_id,
        _ENDED_WELL.label("succeeded"),
        case((_ENDED_WELL, node_run.c.output), else_=_FAILURE).label("output"),
    )
    .where(
        node_run.c.workspace_id == bindparam("workspace_id"),
        node_run.c.run_id == func.any(_RUN_IDS),
        node_run.c.scope_key == func.any(_SCOPES),
        node_run.c.status
        == func.any(literal([NodeStatus.SUCCEEDED, NodeStatus.FAILED], ARRAY(Text))),
    )
    .order_by(
        func.array_position(_RUN_IDS, node_run.c.run_id).desc(),
        func.array_position(_SCOPES, node_run.c.scope_key).desc(),
    )
)
_ALL_OUTPUTS = PreparedStatement(_OUTPUTS)
_SOME_OUTPUTS = PreparedStatement(
    _OUTPUTS.where(node_run.c.node_id == func.any(bindparam("node_ids", type_=ARRAY(Text))))
)


async def load_header(work: Work, run_id: Id) -> RunHeader | None:
    """The header of a run that has begun and is open; None otherwise."""
    row = await _HEADER.first(work, {"run_id": run_id})
    return None if row is None else read_header(row)


class NodeOutput(Protocol):
    """The output of a node that ended; of one that failed, its error."""

    node_id: str
    scope_key: str
    run_id: Id
    succeeded: bool
    output: JsonObject


async def load_outputs(
    work: Work, header: RunHeader, node_ids: Collection[str] | None, scopes: Sequence[str]
) -> Sequence[NodeOutput]:
    """Outputs of the nodes that ended in these scopes; failed nodes have `error` and `errorCode`.

    `node_ids` None asks for every node. Of several rows of a node the last one counts: this run's
    rows come after the rows of the runs it replays (decisions D3), the rows of scopes named first
    after the others.
    """
    parameters = {
        "workspace_id": header.workspace_id,
        "run_ids": [header.run_id, *header.replayed_run_ids],
        "scopes": list(scopes),
    }
    if node_ids is None:
        return await _ALL_OUTPUTS.rows(work, parameters)
    return await _SOME_OUTPUTS.rows(work, {**parameters, "node_ids": sorted(node_ids)})
