"""The slots of a concurrency key, and the intents that start runs (interface.md#concurrency).

A transaction that changes which runs hold slots takes the lock of the key first, and then the locks
of runs, a calling run before those it calls. So a slot is given once. Transactions can deadlock
only where automations call each other in a loop; PostgreSQL then aborts one of them, and it is
tried again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.automation.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import IS_OPEN, automation_run
from models.automation.automations import queries as automation_queries
from models.core.base import Id
from models.core.pauses import intents
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

BATCH = 20
"""Runs that get a slot when one run ends, after a newer version has raised the limit."""

_run = automation_run.c
_OF_KEY = sa.and_(
    _run.automation_id == sa.bindparam("automation_id"),
    _run.concurrency_key == sa.bindparam("key", type_=sa.Text),
    # Spelled out, so that every plan finds the indexes of open runs.
    _run.status.in_([sa.literal_column(f"'{status}'") for status in OPEN_RUN]),
)
HOLDS = sa.and_(_OF_KEY, _run.admitted_at.is_not(None))
"""The runs of a key that hold a slot; parameters `automation_id` and `key`."""
WAITS = sa.and_(_OF_KEY, _run.admitted_at.is_(None))
"""The runs of a key that wait for one."""


def _lock_number(
    automation_id: sa.ColumnElement[Id], key: sa.ColumnElement[str]
) -> sa.ColumnElement[int]:
    return sa.func.hashtextextended(sa.func.concat(sa.cast(automation_id, sa.Text), "/", key), 0)


_LOCK = PreparedStatement(
    sa.select(
        sa.func.pg_advisory_xact_lock(
            _lock_number(
                sa.bindparam("automation_id", type_=sa.Uuid), sa.bindparam("key", type_=sa.Text)
            )
        )
    )
)
_keys = (
    sa.select(_lock_number(_run.automation_id, _run.concurrency_key).label("number"))
    .where(
        _run.id == sa.func.any(sa.bindparam("run_ids", type_=sa.ARRAY(sa.Uuid))),
        _run.concurrency_key.is_not(None),
    )
    .distinct()
    # In one order, so that two transactions never wait for each other in a circle.
    .order_by("number")
    .subquery()
)
_LOCK_OF_RUNS = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock(_keys.c.number)))


async def lock(work: UnitOfWork, automation_id: Id, key: str) -> None:
    """Lock a key until this transaction ends: no other transaction gives or takes its slots."""
    await _LOCK.execute(work, {"automation_id": automation_id, "key": key})


async def lock_of_runs(work: UnitOfWork, run_ids: Collection[Id]) -> None:
    """Take the locks of the keys of these runs, in one order everywhere."""
    await _LOCK_OF_RUNS.execute(work, {"run_ids": sorted(run_ids)})


_first = (
    sa.select(_run.id, _run.created_at, _run.automation_id, _run.graph_checksum)
    .where(WAITS)
    .order_by(_run.created_at, _run.id)
    .limit(BATCH)
    .subquery()
)
_next = (
    sa.select(
        _first.c.id,
        sa.func.row_number().over(order_by=(_first.c.created_at, _first.c.id)).label("turn"),
        sa.cast(
            automation_queries.GRAPH.trigger_config[("concurrency", "limit")].astext, sa.Integer
        ).label("slots"),
    )
    .join(*automation_queries.graph_of(_first))
    .subquery()
)
_held = (
    sa.select(sa.func.count())
    .select_from(automation_run)
    .where(HOLDS)
    .correlate(None)
    .scalar_subquery()
)
_ADMIT = PreparedStatement(
    sa.update(automation_run)
    .where(
        _run.id.in_(sa.select(_next.c.id).where(_next.c.turn + _held <= _next.c.slots)),
        _run.status == RunStatus.QUEUED.value,
    )
    .values(admitted_at=sa.bindparam("now", type_=Timestamp))
    .returning(_run.id)
)


async def hand_on(work: UnitOfWork, automation_id: Id, key: str) -> Sequence[Id]:
    """Give the free slots of a key, whose lock is held, to the runs that have waited longest.

    Each run counts with the limit of its own frozen version.
    """
    parameters = {"automation_id": automation_id, "key": key, "now": work.now}
    admitted = [row.id for row in await _ADMIT.rows(work, parameters)]
    await append_starts(work, admitted)
    return admitted


@dataclass(frozen=True, slots=True)
class Taken:
    """The state of a key, and whether the run asked about exists already."""

    held: int
    waiting: bool
    known: bool


_TAKEN = PreparedStatement(
    sa.select(
        _held.label("held"),
        sa.select(sa.literal(1)).select_from(automation_run).where(WAITS).exists().label("waiting"),
        sa.select(sa.literal(1))
        .select_from(automation_run)
        .where(_run.id == sa.bindparam("run_id", type_=sa.Uuid))
        .exists()
        .label("known"),
    )
)


async def taken(work: UnitOfWork, automation_id: Id, key: str, run_id: Id) -> Taken:
    """The state of a key whose lock is held."""
    row = await _TAKEN.first(work, {"automation_id": automation_id, "key": key, "run_id": run_id})
    assert row is not None, "a row of aggregates"
    return Taken(*row)


_OLDEST = PreparedStatement(
    sa.select(_run.id)
    .where(HOLDS)
    .order_by(_run.created_at, _run.id)
    .limit(sa.bindparam("count", type_=sa.Integer))
)


async def oldest(work: UnitOfWork, automation_id: Id, key: str, count: int) -> list[Id]:
    """The runs that have held a slot of this key longest."""
    parameters = {"automation_id": automation_id, "key": key, "count": count}
    return [row.id for row in await _OLDEST.rows(work, parameters)]


_LOOKED_AT = 10_000
"""Open runs with a key that are counted: who has more sees the busiest of these."""


class KeyRow(Protocol):
    """A key with its open runs: `admitted` have a slot, `queued` wait for one."""

    automation_id: Id
    key: str
    admitted: int
    queued: int


async def busiest_keys(
    work: UnitOfWork, workspace_id: Id, automation_ids: sa.Select[Id], most: int
) -> Sequence[KeyRow]:
    """The keys of automations with the most open runs now, the most first."""
    keyed = (
        sa.select(_run.automation_id, _run.concurrency_key.label("key"), _run.admitted_at)
        .where(
            _run.workspace_id == workspace_id,
            IS_OPEN,
            _run.concurrency_key.is_not(None),
            _run.automation_id.in_(automation_ids),
        )
        .limit(_LOOKED_AT)
        .subquery("keyed")
    )
    key = (keyed.c.automation_id, keyed.c.key)
    admitted = sa.func.count(keyed.c.admitted_at)
    counted = sa.select(
        *key, admitted.label("admitted"), (sa.func.count() - admitted).label("queued")
    ).group_by(*key)
    return await work.rows(counted.order_by(sa.func.count().desc(), *key).limit(most), of=KeyRow)


ADMITTED = "admitted"
"""The signal to an execution that its run has a slot."""

_AWAITED = frozenset(
    {
        RunSource.TEST,
        RunSource.MANUAL,
        RunSource.FROM_NODE,
        RunSource.REPLAY,
        RunSource.BUTTON,
    }
)
"""The sources whose runs a person waits for."""


class StartedVersion(Protocol):
    """The version that a run executes, as far as Temporal gets it."""

    automation_id: Id
    label: str
    version: int


def start_intent(
    workspace_id: Id,
    run_id: Id,
    version: StartedVersion,
    source: RunSource,
    attributes: Mapping[str, str] | None,
    *,
    in_bulk: bool = False,
    is_asleep: bool = False,
) -> outbox.IntentArguments:
    return {
        "intent": outbox.Intent.START,
        "workflow_kind": WorkflowKind.AUTOMATION_RUN,
        "workspace_id": workspace_id,
        "subject_id": run_id,
        "request": start_request(version, source, attributes, in_bulk=in_bulk, is_asleep=is_asleep),
    }


def start_request(
    version: StartedVersion,
    source: RunSource,
    attributes: Mapping[str, str] | None,
    *,
    in_bulk: bool = False,
    is_asleep: bool = False,
) -> outbox.StartRequest:
    """The facts of a run that Temporal gets at its start, and operators see."""
    request: outbox.StartRequest = {
        "summary": summary(version.label, version.version, source),
        "resourceId": str(version.automation_id),
        "source": source,
        "weight": outbox.AWAITED if source in _AWAITED and not in_bulk else 1,
    }
    if source is RunSource.SCHEDULE or is_asleep:
        # Its fire may have started it, and then it waits for its slot, or for the end of a pause.
        # Two intents, one that starts and one that signals, could be parted by a pause.
        request["signal"] = ADMITTED
    if attributes:
        request["attributes"] = dict(attributes)
    return request


def summary(label: str, version: int, source: RunSource) -> str:
    """The text operators read on the run in the Temporal UI; at most 200 bytes (ecosystem 2.3)."""
    tail = f" · v{version} · {source}"
    room = 200 - len(tail.encode())
    return label.encode()[:room].decode(errors="ignore") + tail


class _AcceptedRun(StartedVersion, Protocol):
    id: Id
    workspace_id: Id
    source: str
    attributes: Mapping[str, str] | None
    parent_run_id: Id | None
    status: str
    created_at: datetime


_ACCEPTED = PreparedStatement(
    sa.select(
        _run.id,
        _run.workspace_id,
        _run.automation_id,
        _run.source,
        _run.attributes,
        _run.parent_run_id,
        _run.status,
        _run.created_at,
        automation_queries.AUTOMATION.label,
        automation_queries.VERSION.version,
    )
    .select_from(automation_run)
    .join(*automation_queries.automation_of(automation_run))
    .join(*automation_queries.version_of(automation_run))
    .where(_run.id == sa.func.any(sa.bindparam("run_ids", type_=sa.ARRAY(sa.Uuid))))
    .order_by(_run.created_at, _run.id),
    _AcceptedRun,
)


async def accepted_start_request(work: UnitOfWork, run_id: Id) -> outbox.StartRequest | None:
    """`start_request` of a run accepted earlier; None when there is none of this id."""
    for row in await _ACCEPTED.rows(work, {"run_ids": [run_id]}):
        return start_request(row, RunSource(row.source), row.attributes)
    return None


async def append_starts(
    work: UnitOfWork, run_ids: Sequence[Id], *, is_asleep: bool = False
) -> None:
    """Start runs that were accepted earlier and waited for a slot; under a pause they rest.

    A run that another run waits for was started by that one, so it is only signalled that it has
    its slot. So is an execution that is asleep: a start alone does not wake it.
    """
    if not run_ids:
        return
    for row in await _ACCEPTED.rows(work, {"run_ids": list(run_ids)}):
        intent = (
            start_intent(
                row.workspace_id,
                row.id,
                row,
                RunSource(row.source),
                row.attributes,
                is_asleep=is_asleep,
            )
            if row.parent_run_id is None
            else admitted_intent(row.workspace_id, row.id)
        )
        await _append(work, row, intent)


async def _append(work: UnitOfWork, row: _AcceptedRun, intent: outbox.IntentArguments) -> None:
    """Append an intent, or let it rest; that of a run which has ended tells its execution so."""
    pausable_ids = [row.automation_id, row.workspace_id]
    if row.status != RunStatus.QUEUED:
        pausable_ids = []
    await intents.append_intent(work, pausable_ids, row.created_at, **intent)


async def append_restart(work: UnitOfWork, run_id: Id, restarts: int) -> None:
    """Start a run again that has begun before, for any caller; see `StartRequest`."""
    for row in await _ACCEPTED.rows(work, {"run_ids": [run_id]}):
        source = RunSource(row.source)
        intent = start_intent(row.workspace_id, row.id, row, source, row.attributes)
        request = start_request(row, source, row.attributes)
        intent["request"] = {**request, "restarts": restarts}
        await outbox.append(work, **intent)


def admitted_intent(workspace_id: Id, run_id: Id) -> outbox.IntentArguments:
    """The signal to the execution of a run that it may begin."""
    return {
        "intent": outbox.Intent.SIGNAL,
        "workflow_kind": WorkflowKind.AUTOMATION_RUN,
        "workspace_id": workspace_id,
        "subject_id": run_id,
        "request": {
            "workflowId": WorkflowKind.AUTOMATION_RUN.workflow_id(run_id),
            "signal": ADMITTED,
            "arguments": [],
        },
    }
