"""Node runs of loops: their items, their progress, and the results of their iterations.

The input of a loop's node run is its parameters with all items. While the loop runs, its output is
its progress.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.node_writes import NodeKey, NodeRow
from models.automation.automation_runs.rules import OPEN_NODE, NodeStatus
from models.automation.automation_runs.run_header import RunHeader
from models.automation.automation_runs.tables import node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.protocol import NodeRef
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement

ERRORS_SHOWN = 100
"""Failed items that a loop lists in its output (the others are counted)."""

_node = node_run.c
_THIS = (
    _node.workspace_id == sa.bindparam("workspace_id"),
    _node.run_id == sa.bindparam("run_id"),
    _node.node_id == sa.bindparam("node_id"),
    _node.scope_key == sa.bindparam("scope_key"),
)
_READ = PreparedStatement(sa.select(_node.input, _node.output).where(*_THIS))
_PROGRESS = PreparedStatement(sa.select(_node.output).where(*_THIS))
_ENDED = PreparedStatement(
    sa.select(_node.node_id, _node.status, _node.attempt, _node.outcome, _node.case_key).where(
        _node.workspace_id == sa.bindparam("workspace_id"),
        _node.run_id == sa.bindparam("run_id"),
        _node.scope_key == sa.bindparam("scope_key"),
        _node.status
        == sa.func.any(sa.literal([NodeStatus.SUCCEEDED, NodeStatus.FAILED], sa.ARRAY(sa.Text))),
    )
)
_RUN_IDS = sa.bindparam("run_ids", type_=sa.ARRAY(sa.Uuid))
_EARLIER = PreparedStatement(
    sa.select(_node.run_id, _node.input)
    .where(
        _node.workspace_id == sa.bindparam("workspace_id"),
        _node.run_id == sa.func.any(_RUN_IDS),
        _node.node_id == sa.bindparam("node_id"),
        _node.scope_key == sa.bindparam("scope_key"),
        _node.input.is_not(None),
    )
    .order_by(sa.func.array_position(_RUN_IDS, _node.run_id))
)


class StoredLoop(Protocol):
    """A loop that was opened: its parameters, and its progress as its output."""

    input: JsonObject
    output: JsonObject | None


class EarlierLoop(Protocol):
    """The same loop in an earlier run."""

    run_id: Id
    input: JsonObject


class FailedItem(Protocol):
    """An iteration that failed; `total` counts all of them."""

    index: int
    node_id: str
    error: str | None
    total: int


async def read_loop(work: Work, key: NodeKey) -> StoredLoop | None:
    """The parameters and the progress of a loop, if it was opened."""
    return await _READ.first(work, _identity(key))


async def read_progress(work: Work, key: NodeKey) -> JsonObject | None:
    """The progress of a loop as it was last written."""
    row = await _PROGRESS.first(work, _identity(key))
    return None if row is None else row.output


async def ended_nodes(work: Work, key: NodeKey, scope_key: str) -> dict[str, NodeRow]:
    """The nodes that have ended in an iteration."""
    rows = await _ENDED.rows(work, {**_identity(key), "scope_key": scope_key})
    return {row.node_id: NodeRow(*row[1:]) for row in rows}


async def earlier_loop(work: Work, header: RunHeader, key: NodeKey) -> EarlierLoop | None:
    """The same loop in the runs this one replays: its run and its parameters.

    See interface.md#runs-again.
    """
    own = _identity(key)
    del own["run_id"]
    return await _EARLIER.first(work, {**own, "run_ids": header.replayed_run_ids})


_REUSED = ("node_id", "scope_key", "workspace_id", "node_kind", "status", "attempt", "outcome",
           "case_key", "input", "output", "error", "error_code")  # fmt: skip


async def reuse_items(
    work: UnitOfWork, key: NodeKey, run_id: Id, nodes: Sequence[str], handled: Sequence[str]
) -> None:
    """Reuse the ends of these body nodes in another run for the same items of this run.

    A failure is reused where an edge handles it. A stop node is not reused.
    """
    earlier = replace(key, run_id=run_id)
    stands = sa.or_(
        _node.status == NodeStatus.SUCCEEDED,
        sa.and_(_node.status == NodeStatus.FAILED, _node.node_id.in_(handled)),
    )
    now = sa.literal(work.now, Timestamp)
    ended = sa.select(
        sa.literal(key.run_id, sa.Uuid), *(_node[name] for name in _REUSED), now, now
    ).where(*_inside(earlier), _node.node_id.in_(nodes), _node.node_kind != NodeKind.STOP, stands)
    columns = ("run_id", *_REUSED, "started_at", "completed_at")
    await work.execute(upsert(node_run).from_select(columns, ended).on_conflict_do_nothing())


async def keep_progress(work: UnitOfWork, key: NodeKey, progress: JsonObject) -> None:
    """Write the progress of a loop, so that another process can continue from there."""
    await _change(work, key, NodeStatus.RUNNING, output=progress)


async def has_begun(work: UnitOfWork, key: NodeKey, index: int) -> bool:
    """True when an iteration of a loop has begun, in an execution before this one."""
    scope_key = NodeRef(key.node_id, key.scope_key).iteration(index)
    inside = sa.func.starts_with(_node.scope_key, f"{scope_key}/")
    begun = sa.select(_node.node_id).where(
        _node.workspace_id == key.workspace_id,
        _node.run_id == key.run_id,
        (_node.scope_key == scope_key) | inside,
    )
    return await work.first(begun.limit(1)) is not None


async def pause_loop(work: UnitOfWork, key: NodeKey, seconds: float) -> None:
    """Write that a loop waits before its next iteration."""
    moment = work.now_after(seconds)
    await _change(work, key, NodeStatus.RUNNING, status=NodeStatus.WAITING, due_at=moment)


async def resume_loop(work: UnitOfWork, key: NodeKey) -> None:
    """Write that a paused loop continues."""
    await _change(work, key, NodeStatus.WAITING, status=NodeStatus.RUNNING, due_at=None)


async def cancel_iterations(work: UnitOfWork, key: NodeKey) -> None:
    """Cancel the open nodes in the iterations of a failed loop."""
    await work.execute(
        sa.update(node_run)
        .where(*_inside(key), _node.status.in_(OPEN_NODE))
        .values(status=NodeStatus.CANCELLED, completed_at=work.now)
    )


async def failed_items(
    work: UnitOfWork, key: NodeKey, nodes: Sequence[str]
) -> Sequence[FailedItem]:
    """The first iterations in which one of these nodes failed, with `total`, by index."""
    # Written out, because DISTINCT ON and ORDER BY have to be the same text.
    behind: sa.ColumnElement[int] = sa.literal_column(str(len(_iterations(key)) + 1))
    index = sa.cast(sa.func.substr(_node.scope_key, behind), sa.Integer)
    first = (
        sa.select(index.label("index"), _node.node_id, _node.error)
        .ext(distinct_on(index))
        .where(*_inside(key), _node.node_id.in_(nodes), _node.status == NodeStatus.FAILED)
        .order_by(index, _node.completed_at)
        .cte("failed")
    )
    total = sa.select(sa.func.count()).select_from(first).scalar_subquery()
    return await work.rows(
        sa.select(first, total.label("total")).order_by(first.c.index).limit(ERRORS_SHOWN),
        of=FailedItem,
    )


async def collected_bytes(work: UnitOfWork, key: NodeKey, node_id: str) -> int:
    """The size of all outputs of a body node together."""
    size = sa.func.sum(sa.func.octet_length(sa.cast(_node.output, sa.Text)))
    return int(await work.scalar(_outputs(key, node_id, sa.func.coalesce(size, 0))))


async def collected(work: UnitOfWork, key: NodeKey, node_id: str) -> dict[int, JsonObject]:
    """The outputs of a body node by index of the iteration it succeeded in."""
    rows = await work.rows(_outputs(key, node_id, _node.scope_key, _node.output))
    start = len(_iterations(key))
    return {int(row.scope_key[start:]): row.output for row in rows}


def _outputs(key: NodeKey, node_id: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    succeeded = _node.status == NodeStatus.SUCCEEDED
    return sa.select(*columns).where(*_inside(key), _node.node_id == node_id, succeeded)


def _inside(key: NodeKey) -> tuple[sa.ColumnElement[bool], ...]:
    """The nodes of a loop's iterations."""
    return (
        _node.workspace_id == key.workspace_id,
        _node.run_id == key.run_id,
        sa.func.starts_with(_node.scope_key, _iterations(key)),
    )


def _iterations(key: NodeKey) -> str:
    return NodeRef(key.node_id, key.scope_key).iterations


def _identity(key: NodeKey) -> JsonObject:
    return {
        "workspace_id": key.workspace_id,
        "run_id": key.run_id,
        "node_id": key.node_id,
        "scope_key": key.scope_key,
    }


async def _change(work: UnitOfWork, key: NodeKey, origin: NodeStatus, **values: object) -> None:
    await work.execute(
        sa.update(node_run)
        .where(
            _node.workspace_id == key.workspace_id,
            _node.run_id == key.run_id,
            _node.node_id == key.node_id,
            _node.scope_key == key.scope_key,
            _node.status == origin,
        )
        .values(**values)
    )
