"""A run and its start, written in one statement: from here on it cannot be lost (promise I2)."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, insert

from models.access.rules import Actor
from models.automation_runs.rules import RunSource, RunStatus
from models.automation_runs.tables import automation_run
from models.base import Id, JsonObject
from runtime import outbox
from runtime.database import UnitOfWork
from runtime.families import Family
from runtime.ids import new_id
from runtime.prepared import Prepared
from runtime.schema import Timestamp

_PRIORITY = {RunSource.TEST: 2, RunSource.MANUAL: 2, RunSource.FROM_NODE: 2}
"""Temporal priorities: what a person waits for goes before what a trigger started (D1)."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run about to be accepted."""

    source: RunSource
    payload: JsonObject
    options: JsonObject = field(default_factory=dict)
    start_node_id: str | None = None
    replay_of_run_id: Id | None = None


_RUN_COLUMNS = (
    "automation_id",
    "automation_version_id",
    "graph_checksum",
    "status",
    "source",
    "trigger_payload",
    "options",
    "start_node_id",
    "replay_of_run_id",
    "created_by_user_id",
)

_ACCEPT = Prepared(
    outbox.APPEND.add_cte(
        insert(automation_run)
        .values(
            id=bindparam("subject_id"),
            workspace_id=bindparam("workspace_id"),
            created_at=bindparam("now", type_=Timestamp),
            **{name: bindparam(name, type_=automation_run.c[name].type) for name in _RUN_COLUMNS},
        )
        .cte("accepted")
    )
)
"""A run and its start, written together."""


async def accept(work: UnitOfWork, actor: Actor, version: Any, request: RunRequest) -> Id:
    """Accept a run of a version (a row of `runnable`); it starts if this transaction commits."""
    run_id = new_id()
    start = outbox.intent_values(
        work,
        intent=outbox.Intent.START,
        family=Family.AUTOMATION_RUN,
        workspace_id=actor.workspace_id,
        subject_id=run_id,
        facts={
            "summary": summary(version.label, version.version, request.source),
            "resourceId": str(version.automation_id),
            "source": request.source,
            "priority": _PRIORITY[request.source],
        },
    )
    run = {
        "automation_id": version.automation_id,
        "automation_version_id": version.version_id,
        "graph_checksum": version.checksum,
        "status": RunStatus.QUEUED,
        "source": request.source,
        "trigger_payload": request.payload,
        "options": request.options,
        "start_node_id": request.start_node_id,
        "replay_of_run_id": request.replay_of_run_id,
        "created_by_user_id": actor.user_id,
    }
    await _ACCEPT.execute(work, {**start, **run})
    return run_id


def summary(label: str, version: int, source: RunSource) -> str:
    """What an operator reads on the run in the Temporal UI; at most 200 bytes (ecosystem 2.3)."""
    tail = f" · v{version} · {source}"
    room = 200 - len(tail.encode())
    return label.encode()[:room].decode(errors="ignore") + tail
