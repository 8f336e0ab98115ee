"""Writing the progress of a run: begin, wait, batches of nodes, its end and what follows.

Every write of this progress is conditional on the states it may leave, so repeating one is harmless
and a closed run stays as it is (architecture.md#final-statuses).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs import node_writes, rules, run_header, slots
from models.automation.automation_runs.acceptance import RunRequest, accept_live, is_too_long
from models.automation.automation_runs.open_runs import cancel_children
from models.automation.automation_runs.tables import AUTOMATION_RUNS, automation_run, node_run
from models.automation.automations import queries as automation_queries
from models.automation.automations import runnable_versions
from models.automation.circuit_breakers import count_failure
from models.automation.inbox.rules import EventSource, Judgement, Received, masked_payload
from models.automation.inbox.store import keep
from models.core.base import Id, JsonObject
from models.core.pauses.intents import is_resting
from models.messages.events.rules import EventKind
from models.messages.events.store import emit
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.clock import utc_now
from runtime.database import UnitOfWork, Work
from runtime.derived_ids import derived_id
from runtime.ids import parse_id
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement

_run = automation_run.c

_MAY_BEGIN = sa.and_(
    _run.id == sa.bindparam("run_id"),
    _run.status == sa.func.any(sa.literal(rules.OPEN_RUN, sa.ARRAY(sa.Text))),
    _run.admitted_at.is_not(None),
    ~is_resting(_run.id),
)

_BEGIN = PreparedStatement(
    sa.update(automation_run)
    .where(_MAY_BEGIN)
    .values(
        # One that waits begins anew: its execution has come to none of its waits yet.
        status=rules.RunStatus.RUNNING.value,
        started_at=sa.func.coalesce(_run.started_at, sa.bindparam("now", type_=Timestamp)),
    )
    .returning(*run_header.header_columns())
)


async def begin(work: Work, run_id: Id) -> run_header.RunHeader | None:
    """`queued → running`, or anew; None when the run is closed, or may not begin yet.

    Repeating it changes nothing.
    """
    row = await _BEGIN.first(work, {"run_id": run_id, "now": work.now})
    return None if row is None else run_header.read_header(row)


_WAITS_FOR_SLOT = PreparedStatement(
    sa.select(_run.id).where(
        _run.id == sa.bindparam("run_id"), _run.status == rules.RunStatus.QUEUED.value
    )
)


async def waits_for_slot(work: Work, run_id: Id) -> bool:
    """True for a run that could not begin and is open: it waits for a slot, or under a pause.

    What it waited for may have come since. The signal that says so is on its way then.
    """
    return await _WAITS_FOR_SLOT.first(work, {"run_id": run_id}) is not None


_SET_WAITING = PreparedStatement(
    sa.update(automation_run)
    .where(_run.id == sa.bindparam("run_id"), _run.status == rules.RunStatus.RUNNING.value)
    .values(status=rules.RunStatus.WAITING.value)
)


async def set_waiting(work: Work, run_id: Id) -> bool:
    """`running → waiting`, for a run of a single execution; `calls.resume_execution` undoes it.

    False when it was not running.
    """
    return await _SET_WAITING.execute(work, {"run_id": run_id}) > 0


async def finish(
    work: UnitOfWork,
    run_id: Id,
    *,
    status: rules.RunStatus,
    output: JsonObject | None,
    error: str | None = None,
    node_id: str | None = None,
) -> bool:
    """Write the end of a run, which `node_id` decided, and what follows; False when it was closed.

    Its open nodes are closed with it.
    """
    await slots.lock_of_runs(work, [run_id])
    # The wait for the lock is a part of the run, and a slot is handed on when it ends.
    work.now = utc_now()
    row = await work.first(
        AUTOMATION_RUNS.moving(status)
        .where(automation_run.c.id == run_id)
        .values(output=output, error=error, completed_at=work.now)
        .returning(*ENDED_COLUMNS)
    )
    if row is None:
        return False
    work.answered.add(run_id)
    await node_writes.close_nodes(work, [run_id])
    await apply_end_effects(work, row, node_id)
    return True


async def abandon(work: UnitOfWork, run_id: Id, status: rules.RunStatus, error: str) -> bool:
    """Close a run whose workflow cannot. Returns False when it was closed already."""
    return await finish(work, run_id, status=status, output=None, error=error)


async def skip_nodes(
    work: UnitOfWork,
    workspace_id: Id,
    run_id: Id,
    nodes: Sequence[tuple[str, str, str]],
    outcome: str | None = None,
) -> None:
    """Record nodes that did not run, given as (node id, scope key, kind)."""
    await skip_nodes_of(work, workspace_id, {run_id: nodes}, outcome)


async def skip_nodes_of(
    work: UnitOfWork,
    workspace_id: Id,
    nodes_by_run: Mapping[Id, Sequence[tuple[str, str, str]]],
    outcome: str | None = None,
) -> None:
    """Record nodes of several runs that did not run, given as in `skip_nodes`."""
    rows = [(run_id, *node) for run_id, nodes in nodes_by_run.items() for node in nodes]
    if not rows:
        return
    names = ("run_id", "node_id", "scope_key", "node_kind")
    columns = [
        sa.literal([row[place] for row in rows], sa.ARRAY(node_run.c[name].type))
        for place, name in enumerate(names)
    ]
    skipped = sa.func.unnest(*columns).table_valued(*names).render_derived("skipped")
    constants = {
        "workspace_id": sa.literal(workspace_id, node_run.c.workspace_id.type),
        "status": sa.literal(rules.NodeStatus.SKIPPED.value, sa.Text),
        "attempt": sa.literal(0),
        "outcome": sa.literal(outcome, sa.Text),
        "completed_at": sa.literal(work.now, Timestamp),
    }
    statement = upsert(node_run).from_select(
        [*names, *constants], sa.select(*skipped.c, *constants.values()).select_from(skipped)
    )
    await work.execute(statement.on_conflict_do_nothing())


def succeeding(
    nodes: sa.FromClause,
    reused: sa.BindParameter[Any] | None = None,
    gate: sa.ColumnElement[bool] = node_writes.RUN_IS_OPEN,
) -> sa.Update:
    """The end of a run behind its gate whose nodes, with these rows, all ended well."""
    outputs: sa.ColumnElement[Any] = run_header.leaf_outputs(nodes)
    return (
        sa.update(automation_run)
        .where(gate)
        .values(
            status=rules.RunStatus.SUCCEEDED,
            output=sa.func.coalesce(
                run_header.first_response(nodes),
                outputs if reused is None else reused.concat(outputs),
            ),
            completed_at=sa.bindparam("now", type_=Timestamp),
        )
    )


_SUCCEED = PreparedStatement(
    succeeding(node_run, reused=sa.bindparam("reused", type_=_run.output.type))
)


async def succeed_and_follow(
    work: UnitOfWork, run: run_header.RunHeader, leaves: Sequence[str]
) -> bool:
    """Write the end of a run whose nodes all ended well; False when it was closed already.

    Its slot is handed on, and reused outputs are among its own.
    """
    reused = {one.node_id for one in run_header.read_reused(run.options)}.intersection(leaves)
    outputs = await run_header.load_outputs(work, run, reused, [""]) if reused else []
    await slots.lock_of_runs(work, [run.run_id])
    work.now = utc_now()
    parameters = {
        "run_id": run.run_id,
        "leaves": list(leaves),
        "now": work.now,
        "reused": run_header.within_limit(
            {row.node_id: row.output for row in outputs if row.succeeded}
        ),
    }
    work.answered.add(run.run_id)
    written = await _SUCCEED.execute(work, parameters) > 0
    if written and run.concurrency_key is not None:
        await slots.hand_on(work, run.automation_id, run.concurrency_key)
    return written


_RUN_ID = sa.bindparam("run_id", type_=automation_run.c.id.type)

_BATCH_GATE = sa.select(automation_run.c.id, automation_run.c.workspace_id)

_BATCH_FIELDS = (
    "node_id", "scope_key", "node_kind", "status", "attempt", "outcome", "case_key",
    "input", "output", "started_at", "completed_at",
)  # fmt: skip

_BATCH_COLUMNS = ("run_id", "workspace_id", *_BATCH_FIELDS)

_BATCH = (
    sa.func.jsonb_to_recordset(sa.bindparam("nodes", type_=sa.Text).cast(JSONB))
    .table_valued(*(sa.column(name, node_run.c[name].type) for name in _BATCH_FIELDS))
    .render_derived(name="batch", with_types=True)
)


def _batch_rows(gate: sa.FromClause) -> sa.Select[Any]:
    return sa.select(*gate.c, *_BATCH.c).select_from(gate.join(_BATCH, sa.true()))


_WRITE_NODES = PreparedStatement(
    sa.insert(node_run).from_select(
        _BATCH_COLUMNS,
        _batch_rows(
            _BATCH_GATE.where(node_writes.RUN_IS_OPEN, node_writes.EXECUTES_GRAPH)
            .with_for_update(read=True)
            .cte("gate")
        ),
    )
)


def _writing_and_ending(*, begins: bool) -> PreparedStatement:
    passed = _MAY_BEGIN if begins else node_writes.RUN_IS_OPEN
    # The stronger lock: two executions that share the row would deadlock when both end the run.
    held = _BATCH_GATE.where(passed, node_writes.EXECUTES_GRAPH).with_for_update(key_share=True)
    gate = held.cte("gate")
    is_listed = sa.exists().where(
        *(node_run.c[name] == _BATCH.c[name] for name in ("node_id", "scope_key")),
        node_run.c.run_id == gate.c.id,
    )
    # A node that the run did not come to may have been shown while the run waited.
    fresh = _batch_rows(gate).where(
        sa.or_(_BATCH.c.status != rules.NodeStatus.SKIPPED.value, ~is_listed)
    )
    names = ("run_id", "node_id", "scope_key", "node_kind", "status", "output", "completed_at")
    columns = [node_run.c[name] for name in names]
    batch = sa.insert(node_run).from_select(_BATCH_COLUMNS, fresh).returning(*columns).cte("ended")
    before = sa.select(*columns).where(node_run.c.run_id == _RUN_ID)
    nodes = sa.union_all(before, sa.select(*batch.c)).subquery("nodes")
    if not begins:
        return PreparedStatement(succeeding(nodes))
    began = sa.func.coalesce(_run.started_at, sa.bindparam("began", type_=Timestamp))
    # The row as the gate has locked it: it may have begun meanwhile.
    locked = _run.id == sa.select(gate.c.id).scalar_subquery()
    return PreparedStatement(succeeding(nodes, gate=locked).values(started_at=began))


_WRITE_AND_SUCCEED = _writing_and_ending(begins=False)
_BEGIN_AND_SUCCEED = _writing_and_ending(begins=True)


def success_row(key: node_writes.NodeKey, completion: node_writes.Completion) -> JsonObject:
    """The row of a node that has just succeeded, for a batch."""
    values = completion.values()
    return {
        **_node_identity(key.node_id, key.scope_key, key.kind),
        **values,
        "started_at": key.began_at.isoformat(),
        "completed_at": values["completed_at"].isoformat(),
    }


def skipped_row(work: Work, node_id: str, scope_key: str, kind: str) -> JsonObject:
    """The row of a node to which its run does not come, for a batch."""
    return {
        **_node_identity(node_id, scope_key, kind),
        "status": rules.NodeStatus.SKIPPED,
        "attempt": 0,
        "completed_at": work.now.isoformat(),
    }


def _node_identity(node_id: str, scope_key: str, kind: str) -> JsonObject:
    return {"node_id": node_id, "scope_key": scope_key, "node_kind": kind}


async def write_nodes(work: Work, run: run_header.RunHeader, rows: Sequence[JsonObject]) -> bool:
    """Pass the gate and write the ends of nodes; False when the run is closed.

    The batch is written as a whole or not at all, behind the gate of its run
    (`node_writes.pass_gate`). One that finds a node written before raises the error of the
    database.
    """
    return await _WRITE_NODES.execute(work, _batch(run, rows)) > 0


async def write_nodes_and_succeed(
    work: Work,
    run: run_header.RunHeader,
    leaves: Sequence[str],
    rows: Sequence[JsonObject],
    began: datetime | None = None,
) -> bool:
    """Write the last nodes of a run and its end in success; False when it was closed already.

    It is for runs that end alone (see `RunHeader`): nothing else follows. With `began` it is the
    begin of the run, too (ADR 0154): False also where it may not begin yet.
    """
    values = {**_batch(run, rows), "leaves": list(leaves), "now": work.now}
    work.answered.add(run.run_id)
    if began is not None:
        return await _BEGIN_AND_SUCCEED.execute(work, {**values, "began": began}) > 0
    return await _WRITE_AND_SUCCEED.execute(work, values) > 0


def _batch(run: run_header.RunHeader, rows: Sequence[JsonObject]) -> JsonObject:
    nodes = json.dumps(rows, ensure_ascii=False)
    return {"run_id": run.run_id, "graph_checksum": run.graph_checksum, "nodes": nodes}


log = structlog.get_logger()

FAILURES = frozenset({rules.RunStatus.FAILED, rules.RunStatus.TIMED_OUT})

ENDED_COLUMNS = (
    _run.id,
    _run.workspace_id,
    _run.automation_id,
    _run.status,
    _run.source,
    _run.error,
    _run.options,
    _run.chain,
    _run.concurrency_key,
)
"""The columns of an ended run that `apply` needs."""


async def apply_end_effects(work: UnitOfWork, run: rules.EndedRun, node_id: str | None) -> None:
    """Cancel called runs, free the slot, handle a failure; `node_id` is the node that failed.

    Every transaction that closes a run calls this: the last one of its workflow, or the
    reconciler's. So the failure of a run whose execution died is handled like any other.
    """
    await cancel_children(work, run.workspace_id, run.id)
    if run.concurrency_key is not None:
        await slots.hand_on(work, run.automation_id, run.concurrency_key)
    if run.status in FAILURES:
        await _log_failure(work, run, node_id)
        if not rules.is_test(run.source, run.options):
            await count_failure(work, run.workspace_id, run.automation_id)
        if answers_for_failures(run.source, run.options):
            await _handle_failure(work, run, node_id)


def answers_for_failures(source: str, options: JsonObject) -> bool:
    """True when the failure of a run is handled and notified: of a test only on request."""
    return bool(options.get("triggerFailureAutomation", not rules.is_test(source, options)))


def failure_run_id(run_id: Id) -> Id:
    """The run that handles the failure of a run, if there is one."""
    return derived_id(run_id, "failure")


async def _log_failure(work: UnitOfWork, run: rules.EndedRun, node_id: str | None) -> None:
    """One line in the log, once the end is written; what the node said stands in its row alone."""
    code = await work.scalar(
        sa.select(node_run.c.error_code)
        .where(
            node_run.c.workspace_id == run.workspace_id,
            node_run.c.run_id == run.id,
            node_run.c.node_id == node_id,
            node_run.c.error_code.is_not(None),
        )
        .limit(1)
    )
    line = partial(
        log.warning,
        "automation_run_failed",
        run_id=str(run.id),
        automation_id=str(run.automation_id),
        workspace_id=str(run.workspace_id),
        node_id=node_id,
        code=code or str(run.status),
    )
    work.after_commit.append(line)


async def _handle_failure(work: UnitOfWork, run: rules.EndedRun, node_id: str | None) -> None:
    row = await _failed_run(work, run.id)
    if rules.is_test(run.source, run.options):
        await _notify_author(work, run, row)
    chain = (*run.chain, run.id)
    if run.source == rules.RunSource.FAILURE or is_too_long(chain):
        return
    payload = {
        "automationId": str(run.automation_id),
        "runId": str(run.id),
        "nodeId": node_id,
        "error": run.error,
        "triggerPayload": row.trigger_payload,
    }
    handler_id = parse_id(row.failure_automation_id or "")
    handler = None
    if handler_id is not None:
        handler = await runnable_versions.live(work, run.workspace_id, handler_id)
    event_id = derived_id(run.id, EventKind.AUTOMATION_FAILED)
    await emit(
        work,
        run.workspace_id,
        EventKind.AUTOMATION_FAILED,
        run.automation_id,
        payload,
        chain=chain,
        event_id=event_id,
        answered_by=[] if handler is None else [handler.automation_id],
    )
    judgement = None
    if handler is not None:
        actor = run_header.automation_actor(run.workspace_id, handler.automation_id)
        request = RunRequest(
            rules.RunSource.FAILURE, payload, run_id=failure_run_id(run.id), chain=chain
        )
        judgement = (await accept_live(work, actor, handler, request)).judgement
    elif handler_id is not None:
        _, reason = await runnable_versions.dormant(work, run.workspace_id, handler_id)
        judgement = Judgement.of_dormant(reason)
    if handler_id is not None and judgement is not None:
        this = run.workspace_id, EventSource.FAILURE, run.automation_id
        event = Received(event_id, *this, masked_payload(payload))
        await keep(work, event, {handler_id: judgement})


class _FailedRun(Protocol):
    trigger_payload: JsonObject
    label: str
    item_id: Id
    created_by_user_id: Id | None
    failure_automation_id: str | None


async def _failed_run(work: UnitOfWork, run_id: Id) -> _FailedRun:
    """The automation and the version of a failed run."""
    row = await work.first(
        sa.select(
            _run.trigger_payload,
            automation_queries.AUTOMATION.label,
            automation_queries.AUTOMATION.item_id,
            automation_queries.VERSION.created_by_user_id,
            automation_queries.GRAPH.graph["failureAutomationId"].astext.label(
                "failure_automation_id"
            ),
        )
        .select_from(automation_run)
        .join(*automation_queries.automation_of(automation_run))
        .outerjoin(*automation_queries.version_of(automation_run))
        .outerjoin(*automation_queries.graph_of(automation_run))
        .where(_run.id == run_id),
        of=_FailedRun,
    )
    assert row is not None, "the transaction holds the run, which refers to its automation"
    return row


async def _notify_author(work: UnitOfWork, run: rules.EndedRun, known: _FailedRun) -> None:
    """Notify the creator of the version of a failed test; other failures become incidents."""
    if known.created_by_user_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_FAILED,
        title=f"“{known.label}” failed",
        body=run.error or "",
        item_id=known.item_id,
        run_id=run.id,
        data={"automationId": str(run.automation_id), "runId": str(run.id)},
        key=f"automation_failed/{run.id}",
    )
    await notify(work, run.workspace_id, [known.created_by_user_id], notice)
