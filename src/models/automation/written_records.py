"""The records that nodes of runs wrote: by node, and in the history of a record.

Who does not see an automation learns that a run of it wrote, and not by which of its nodes.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa

from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automations.queries import AUTOMATION, automation_of, open_automations
from models.core.access.rules import Actor, Level
from models.core.base import Id, Shape
from models.core.pagination import PageRequest
from models.data.fields.rows import DATABASE, open_databases
from models.data.record_changes.history import RecordHistory
from models.data.records.reverts import list_history
from models.data.records.rows import CHANGES_WITH_CREATIONS
from runtime.database import UnitOfWork

MAX_CHANGES = 10_000
"""Changes of runs that are looked at, in the order of their records."""
MAX_NODES = 500
MAX_KEYS = 50
"""Fields that are listed of a node."""

_change = CHANGES_WITH_CREATIONS.c


class WritingNode(Shape):
    """A node that wrote records: their number, and the fields that it set, 50 at most.

    Nodes of an automation that the caller does not see are one entry without ids, and so are
    changes from before nodes were recorded.
    """

    automation_id: Id | None = None
    automation_label: str | None = None
    node_id: str | None = None
    records: int
    field_keys: list[str]


class _NodeRow(Protocol):
    automation_id: Id | None
    automation_label: str | None
    node_id: str | None
    records: int
    field_keys: Sequence[str]


class _RecordNode(Protocol):
    record_id: Id
    node_id: str


async def list_record_history(
    work: UnitOfWork, actor: Actor, record_id: Id, page: PageRequest
) -> RecordHistory:
    """The changes of a record, newest first, with their nodes where the actor sees these.

    Raises NotFoundError.
    """
    history = await list_history(work, actor, record_id, page)
    run_ids = {one.run_id for one in history.changes if one.run_id is not None}
    seen = await _visible_runs(work, actor, run_ids)
    changes = [
        one if one.run_id in seen else one.model_copy(update={"node_id": None})
        for one in history.changes
    ]
    return history.model_copy(update={"changes": changes})


async def writing_nodes(
    work: UnitOfWork, actor: Actor, run_ids: Collection[Id]
) -> Sequence[WritingNode]:
    """The nodes by which runs wrote records that the actor sees."""
    writes = (await _writes(work, actor, run_ids)).order_by(_change.record_id, _change.id)
    change = writes.limit(MAX_CHANGES).subquery("write").c
    values = sa.func.coalesce(change.before, sa.text("'{}'::jsonb")).op("||")(
        sa.func.coalesce(change.after, sa.text("'{}'::jsonb"))
    )
    keys = sa.func.jsonb_object_keys(values).table_valued("key").render_derived(name="own_key")
    names = (change.automation_id, change.automation_label, change.node_id)
    rows = await work.rows(
        sa.select(
            *names,
            sa.func.count(change.record_id.distinct()).label("records"),
            sa.func.coalesce(
                sa.func.array_agg(keys.c.key.distinct()).filter(keys.c.key.is_not(None)),
                sa.text("'{}'::text[]"),
            ).label("field_keys"),
        )
        .select_from(change.record_id.table.outerjoin(keys, sa.true()))
        .group_by(*names)
        .order_by(*names)
        .limit(MAX_NODES),
        of=_NodeRow,
    )
    return [
        WritingNode(
            automation_id=row.automation_id,
            automation_label=row.automation_label,
            node_id=row.node_id,
            records=row.records,
            field_keys=list(row.field_keys)[:MAX_KEYS],
        )
        for row in rows
    ]


async def nodes_of_records(
    work: UnitOfWork, actor: Actor, run_ids: Collection[Id], record_ids: Collection[Id]
) -> Mapping[Id, Sequence[str]]:
    """The ids of the nodes by which runs wrote these records, in the order of their first write."""
    if not record_ids:
        return {}
    writes = await _writes(work, actor, run_ids)
    one = writes.where(_change.record_id == sa.any_(_ids(record_ids))).subquery("write").c
    rows = await work.rows(
        sa.select(one.record_id, one.node_id)
        .where(one.node_id.is_not(None))
        .group_by(one.record_id, one.node_id)
        .order_by(sa.func.min(sa.cast(one.id, sa.Text))),
        of=_RecordNode,
    )
    nodes: defaultdict[Id, list[str]] = defaultdict(list)
    for row in rows:
        nodes[row.record_id].append(row.node_id)
    return nodes


async def _writes(work: UnitOfWork, actor: Actor, run_ids: Collection[Id]) -> sa.Select[Any]:
    """The changes by runs in the databases that the actor sees, with their nodes."""
    visible = await _visible_runs(work, actor, run_ids)
    is_seen = _change.run_id == sa.any_(_ids(visible))
    run, is_its_run = run_of(_change.run_id)
    return (
        open_databases(
            actor,
            _change.id,
            _change.record_id,
            _change.before,
            _change.after,
            sa.case((is_seen, AUTOMATION.id)).label("automation_id"),
            sa.case((is_seen, AUTOMATION.label)).label("automation_label"),
            sa.case((is_seen, _change.node_id)).label("node_id"),
        )
        .join(CHANGES_WITH_CREATIONS, _change.database_id == DATABASE.id)
        .join(run, is_its_run)
        .join(*automation_of(run))
        .where(_change.workspace_id == actor.workspace_id, _change.run_id == sa.any_(_ids(run_ids)))
    )


async def _visible_runs(work: UnitOfWork, actor: Actor, run_ids: Collection[Id]) -> Collection[Id]:
    """The runs among these whose automation the actor sees."""
    if not run_ids:
        return ()
    rows = await work.rows(
        sa.select(RUN.id).where(
            RUN.workspace_id == actor.workspace_id,
            RUN.id == sa.any_(_ids(run_ids)),
            RUN.automation_id.in_(open_automations(actor, Level.VIEW)),
        )
    )
    return {row.id for row in rows}


def _ids(ids: Collection[Id]) -> sa.ColumnElement[Any]:
    return sa.literal(sorted(ids), sa.ARRAY(sa.Uuid))
