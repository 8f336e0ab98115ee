"""The slots of a concurrency key: who holds one, and who gets one next (decisions C7).

Whatever changes which runs hold slots takes the lock of the key first, and then the locks of runs,
a calling run before those it calls. So a slot is given once. Transactions can deadlock only where
automations call each other in a loop; PostgreSQL then aborts one of them, and it is tried again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    select,
    update,
)

from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.start_intents import append_starts
from models.automation.automation_runs.tables import IS_OPEN, automation_run
from models.automation.automations.joins import GRAPH, graph_of
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

BATCH = 20
"""Runs that get a slot when one run ends, after a newer version has raised the limit."""

_run = automation_run.c
_OF_KEY = and_(
    _run.automation_id == bindparam("automation_id"),
    _run.concurrency_key == bindparam("key", type_=Text),
    # Spelled out, so that every plan finds the indexes of open runs.
    _run.status.in_([literal_column(f"'{status}'") for status in OPEN_RUN]),
)
HOLDS = and_(_OF_KEY, _run.admitted_at.is_not(None))
"""The runs of a key that hold a slot; parameters `automation_id` and `key`."""
WAITS = and_(_OF_KEY, _run.admitted_at.is_(None))
"""The runs of a key that wait for one."""


def _lock_number(automation_id: ColumnElement[Id], key: ColumnElement[str]) -> ColumnElement[int]:
    return func.hashtextextended(func.concat(cast(automation_id, Text), "/", key), 0)


_LOCK = PreparedStatement(
    select(
        func.pg_advisory_xact_lock(
            _lock_number(bindparam("automation_id", type_=Uuid), bindparam("key", type_=Text))
        )
    )
)
_keys = (
    select(_lock_number(_run.automation_id, _run.concurrency_key).label("number"))
    .where(
        _run.id == func.any(bindparam("run_ids", type_=ARRAY(Uuid))),
        _run.concurrency_key.is_not(None),
    )
    .distinct()
    .order_by("number")
    .subquery()
)
_LOCK_OF_RUNS = PreparedStatement(select(func.pg_advisory_xact_lock(_keys.c.number)))


async def lock(work: UnitOfWork, automation_id: Id, key: str) -> None:
    """Lock a key until this transaction ends: nobody else gives or takes its slots."""
    await _LOCK.execute(work, {"automation_id": automation_id, "key": key})


async def lock_of_runs(work: UnitOfWork, run_ids: Collection[Id]) -> None:
    """Take the locks of the keys of these runs, in one order everywhere."""
    await _LOCK_OF_RUNS.execute(work, {"run_ids": sorted(run_ids)})


_first = (
    select(_run.id, _run.created_at, _run.automation_id, _run.graph_checksum)
    .where(WAITS)
    .order_by(_run.created_at, _run.id)
    .limit(BATCH)
    .subquery()
)
_next = (
    select(
        _first.c.id,
        func.row_number().over(order_by=(_first.c.created_at, _first.c.id)).label("turn"),
        cast(GRAPH.trigger_config[("concurrency", "limit")].astext, Integer).label("slots"),
    )
    .join(*graph_of(_first))
    .subquery()
)
_held = (
    select(func.count()).select_from(automation_run).where(HOLDS).correlate(None).scalar_subquery()
)
_ADMIT = PreparedStatement(
    update(automation_run)
    .where(
        _run.id.in_(select(_next.c.id).where(_next.c.turn + _held <= _next.c.slots)),
        _run.status == RunStatus.QUEUED.value,
    )
    .values(admitted_at=bindparam("now", type_=Timestamp))
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
    select(
        _held.label("held"),
        select(literal(1)).select_from(automation_run).where(WAITS).exists().label("waiting"),
        select(literal(1))
        .select_from(automation_run)
        .where(_run.id == bindparam("run_id", type_=Uuid))
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
    select(_run.id)
    .where(HOLDS)
    .order_by(_run.created_at, _run.id)
    .limit(bindparam("count", type_=Integer))
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
    work: UnitOfWork, workspace_id: Id, automation_ids: Select[Id], most: int
) -> Sequence[KeyRow]:
    """The keys of automations with the most open runs now, the most first."""
    keyed = (
        select(_run.automation_id, _run.concurrency_key.label("key"), _run.admitted_at)
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
    admitted = func.count(keyed.c.admitted_at)
    counted = select(
        *key, admitted.label("admitted"), (func.count() - admitted).label("queued")
    ).group_by(*key)
    return await work.rows(counted.order_by(func.count().desc(), *key).limit(most), of=KeyRow)
