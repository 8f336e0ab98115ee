"""Guarded writes, bounds and indexes that every table of durable work shares.

A write is conditional on the states it may leave, so repeating one is harmless and closed work
stays as it is. Requests to Temporal about a piece of work leave through the outbox, in the
transaction that decided it.

See architecture.md#final-statuses.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert, insert

from models.core.access.rules import Actor, PrincipalType
from models.core.base import Id
from models.core.lifecycle.rules import Lifecycle
from models.core.pauses import intents as resting
from runtime.database import UnitOfWork
from runtime.errors import RateLimitedError
from runtime.postgresql.schema import listed, partial_index
from runtime.postgresql.statements import lock_name
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

RowT = TypeVar("RowT")

RUNNING: Mapping[WorkflowKind, int] = {
    workflow_kind: workflow_kind.bounds.running
    for workflow_kind in WorkflowKind
    if workflow_kind.bounds.running is not None
}
OPEN: Mapping[WorkflowKind, int] = {
    workflow_kind: workflow_kind.bounds.open
    for workflow_kind in WorkflowKind
    if workflow_kind.bounds.open is not None
}
"""Over the first bound of a kind, work waits in the outbox; over the second, it is refused."""

WORK = "work"
"""The key of a table's `info` under which its description stands."""


@dataclass(frozen=True, slots=True)
class WorkTable:
    """A table of durable work, with the columns `id`, `workspace_id` and `status`.

    `accepted_column` and `ended_column` hold the moments at which a row was made and closed. Rows
    for which `executed` does not hold are only kept: nothing has to be done about them.
    `workflow_kind` gives that of a row's execution; rows of a table without it have none.

    From its column `dispatched_at` on, open work holds a place under the bound of its kind.
    """

    table: sa.Table
    lifecycle: Lifecycle[Any]
    accepted_column: str = "created_at"
    ended_column: str = "completed_at"
    executed: sa.ColumnElement[bool] = field(default_factory=sa.true)
    workflow_kind: WorkflowKind | sa.ColumnElement[str] | None = None

    def __post_init__(self) -> None:
        self.table.info[WORK] = self

    def accepting(self, values: Mapping[str, Any], decided: sa.CTE | None = None) -> Insert:
        """Insert a row, unless there is one of its id, or `decided` is empty.

        No index is named: the id stands in two unique indexes, and a row inserted at the same time
        may be met in either.
        """
        if decided is None:
            rows = insert(self.table).values(**values)
        else:
            chosen = sa.select(*values.values()).select_from(decided)
            rows = insert(self.table).from_select(list(values), chosen)
        return rows.on_conflict_do_nothing()

    def moving(self, target: StrEnum) -> sa.Update:
        """Bring rows, which the caller chooses, to the state `target` where they may reach it."""
        sources = [status.value for status in self.lifecycle.sources_of(target)]
        return (
            sa.update(self.table)
            .where(self.table.c.status.in_(sources))
            .values(status=target.value)
        )

    @property
    def is_open(self) -> sa.ColumnElement[bool]:
        """The condition that a row is open."""
        return self.table.c.status.in_([status.value for status in self.lifecycle.open])

    @property
    def workflow_kind_of_row(self) -> sa.ColumnElement[Any]:
        """The workflow kind of a row, in a query."""
        workflow_kind = self.workflow_kind
        if isinstance(workflow_kind, sa.ColumnElement):
            return workflow_kind
        return sa.null() if workflow_kind is None else sa.literal(workflow_kind.value)

    @property
    def takes_places(self) -> bool:
        """True when an open row holds a place, and its end frees it for what waits."""
        return "dispatched_at" in self.table.c


def executed_tables(metadata: sa.MetaData) -> Sequence[WorkTable]:
    """The tables of work with executions, by name, out of those imported so far."""
    described = [table.info.get(WORK) for table in metadata.tables.values()]
    found = [kind for kind in described if kind is not None and kind.workflow_kind is not None]
    return sorted(found, key=lambda kind: kind.table.name)


async def accept(work: UnitOfWork, kind: WorkTable, row: Mapping[str, Any]) -> bool:
    """Record a piece of work; False when one of this id was accepted before."""
    values = {"status": kind.lifecycle.initial.value, kind.accepted_column: work.now, **row}
    statement = kind.accepting(values).returning(kind.table.c.id)
    return await work.first(statement) is not None


async def start(
    work: UnitOfWork,
    workflow_kind: WorkflowKind,
    workspace_id: Id,
    work_id: Id,
    request: outbox.StartRequest,
    restarts: int = 0,
) -> None:
    """Have the execution of accepted work started; operators see the `request`.

    `restarts` counts the executions before it that ended without closing the row.
    """
    if restarts:
        request = {**request, "restarts": restarts, "weight": outbox.ANEW}
    await outbox.append(
        work,
        intent=outbox.Intent.START,
        workflow_kind=workflow_kind,
        workspace_id=workspace_id,
        subject_id=work_id,
        request=request,
    )


async def stand_in_line(
    work: UnitOfWork,
    workflow_kind: WorkflowKind,
    workspace_id: Id,
    work_id: Id,
    request: outbox.StartRequest,
) -> None:
    """Have accepted work wait for its turn, at which its caller starts it as a child."""
    await start(work, workflow_kind, workspace_id, work_id, {**request, "child": True})


async def hold(work: UnitOfWork, kind: WorkTable, work_id: Id, *, of: type[RowT]) -> RowT | None:
    """The gate: an open row, locked until the transaction ends; None when it is closed.

    `of` is the class of the table.
    """
    statement = sa.select(kind.table).where(kind.table.c.id == work_id, kind.is_open)
    return await work.first(statement.with_for_update(), of=of)


async def move(
    work: UnitOfWork, kind: WorkTable, work_id: Id, target: StrEnum, **values: object
) -> bool:
    """Bring one row to another state, with other values; False when it may not go there."""
    statement = kind.moving(target).where(kind.table.c.id == work_id).values(**values)
    return (await work.execute(statement)).rowcount > 0


async def record_progress(work: UnitOfWork, kind: WorkTable, work_id: Id, **values: object) -> None:
    """Write values of a row whose gate the caller has passed."""
    await work.execute(sa.update(kind.table).where(kind.table.c.id == work_id).values(**values))


async def finish(
    work: UnitOfWork, kind: WorkTable, work_ids: Collection[Id], end: StrEnum, **values: object
) -> list[Id]:
    """Close the open ones among these rows for ever, now or when `values` say; their ids.

    What waits for their place may begin.
    """
    work.notify_workers = work.notify_workers or kind.takes_places
    statement = (
        kind.moving(end)
        .where(kind.table.c.id.in_(work_ids))
        .values(**{kind.ended_column: work.now, **values})
        .returning(kind.table.c.id)
    )
    closed_ids = [row.id for row in await work.rows(statement)]
    work.answered.update(closed_ids)
    return closed_ids


async def cancel_executions(
    work: UnitOfWork, workflow_kind: WorkflowKind, workspace_id: Id, work_ids: Collection[Id]
) -> None:
    """Have the executions of closed rows cancelled; those not started yet never are."""
    withdrawn = await outbox.withdraw_starts(work, work_ids)
    withdrawn |= await resting.withdraw_intents(work, work_ids)
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.CANCEL,
            "workflow_kind": workflow_kind,
            "workspace_id": workspace_id,
            "subject_id": work_id,
        }
        for work_id in sorted(set(work_ids) - withdrawn)
    ]
    await outbox.append_all(work, intents)


def indexes_of_work(table: str, open_states: Iterable[StrEnum]) -> tuple[sa.Index, ...]:
    """The indexes by which sweeps and bounds read open rows alone, with any number of closed ones.

    For a table whose rows are of one workflow kind, and hold places by their `dispatched_at`.
    """
    is_open = f"status IN ({listed(open_states)})"
    dispatched = f"dispatched_at IS NOT NULL AND {is_open}"
    return (
        partial_index(f"ix_{table}_open", "id", where=is_open),
        partial_index(f"ix_{table}_open_workspace_id", "workspace_id", where=is_open),
        partial_index(f"ix_{table}_dispatched", "workspace_id", where=dispatched),
    )


class TooMuchOpenError(RateLimitedError):
    """The limit of open work of a kind is reached."""

    advice = "Wait until one has ended, or cancel one."
    headers: ClassVar[dict[str, str]] = {"Retry-After": "10"}

    def __init__(self, workflow_kind: WorkflowKind, bound: int) -> None:
        super().__init__(
            f"The limit of {bound:,} open executions ({workflow_kind.value.replace('-', ' ')}) is"
            " reached. Wait until one has ended, or cancel one."
        )


async def require_place(
    work: UnitOfWork,
    actor: Actor,
    kind: WorkTable,
    workflow_kind: WorkflowKind,
    *which: sa.ColumnElement[bool],
) -> None:
    """Refuse what was just accepted, when more of its kind is open than may be.

    `which` rows of the table are of that kind. What the platform does by itself waits instead.
    Raises `TooMuchOpenError`, and then nothing may be committed.
    """
    if actor.principal.type is not PrincipalType.SYSTEM:
        of_workspace = kind.table.c.workspace_id == actor.workspace_id
        await require_place_of(work, actor.workspace_id, kind, workflow_kind, of_workspace, *which)


async def require_place_of(
    work: UnitOfWork,
    owner: Id,
    kind: WorkTable,
    workflow_kind: WorkflowKind,
    *which: sa.ColumnElement[bool],
) -> None:
    """As `require_place`, for `which` rows of an owner."""
    limit = OPEN.get(workflow_kind)
    if limit is None:
        return
    # One after the other, so that the next one counts this one, too.
    place = f"open/{workflow_kind}/{owner}"
    await lock_name(work, place)
    some = sa.select(kind.table.c.id).where(kind.is_open, *which).limit(limit + 1).subquery()
    if await work.scalar(sa.select(sa.func.count()).select_from(some)) > limit:
        raise TooMuchOpenError(workflow_kind, limit)
