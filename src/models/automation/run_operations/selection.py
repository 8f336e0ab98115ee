"""The runs or events of an operation, written down before the first of them is treated.

The id of a replay follows from the operation and the event, and that of its run from the replay, so
an event is replayed once however often a step is repeated."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.automation.automation_runs.filters import RunFilter, WorkspaceRunQuery
from models.automation.automation_runs.queries import RUN, workspace_runs
from models.automation.inbox.queries import EventQuery, concerned_events, redacted_among
from models.automation.inbox.rules import WITH_RUN, EventOutcome
from models.automation.run_operations import queries, rules
from models.automation.triggers.event_replays import ReplayEvent, replay
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.pagination import native, plain
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import PlatformError, UnavailableError

_result = queries.run_operation_result.c
_COLUMNS = ["operation_id", "workspace_id", "position", "run_id"]
OLDEST_FIRST = (RUN.created_at, RUN.id)


def in_reach(actor: Actor, action: str) -> sa.Select[Any]:
    """The runs that an actor may act on.

    Runs in the trash can be cancelled by owners and administrators, and nothing else.
    """
    return workspace_runs(actor, Level.EDIT, in_trash=action == rules.OperationAction.CANCEL)


def frozen(query: WorkspaceRunQuery, now: datetime) -> WorkspaceRunQuery:
    """The filter as it is at a moment: what is accepted later is not selected, however long the
    selection takes.
    """
    until = now + timedelta(milliseconds=1)
    times = {
        "period": None,
        "since": query.filter(now).since,
        "until": until if query.until is None else min(until, query.until),
    }
    return query.model_copy(update=times)


def candidates(
    runs: sa.Select[Any], query: WorkspaceRunQuery, filters: RunFilter
) -> sa.Select[Any]:
    """The runs of a filter as far as indexes answer it."""
    of_one = () if query.automation_id is None else (RUN.automation_id == query.automation_id,)
    return runs.where(*filters.conditions(), *of_one)


async def select_ids(work: UnitOfWork, operation: rules.OperationRow, run_ids: Sequence[Id]) -> int:
    """Write down runs that were named by their ids, each once; returns their number."""
    unique = list(dict.fromkeys(run_ids))
    listed = sa.func.unnest(sa.literal(unique, sa.ARRAY(sa.Uuid)))
    listed_runs = listed.table_valued("id", with_ordinality="place").render_derived("named")
    place: sa.ColumnElement[Any] = listed_runs.c.place
    source: sa.FromClause = listed_runs
    if operation.action == rules.OperationAction.UNDO:
        # The last write is reverted first, in any order of the ids.
        source = listed_runs.outerjoin(RUN.id.table, RUN.id == listed_runs.c.id)
        order = (RUN.created_at.nulls_first(), RUN.id, listed_runs.c.place)
        place = sa.func.row_number().over(order_by=order)
    return await write_down(work, numbered(operation, place, listed_runs.c.id).select_from(source))


async def select_more(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow
) -> tuple[int, JsonObject, bool]:
    """Write down the next runs of a filter, or of the operation that this one undoes.

    Returns their number, the selection that continues behind them, and whether they are the last.
    """
    if operation.undoes_id is not None:
        return await _select_undone(work, operation, operation.undoes_id)
    selection = dict(operation.selection)
    query = WorkspaceRunQuery.model_validate(selection["filter"], strict=False)
    filters = query.filter(work.now)
    runs = candidates(in_reach(actor, operation.action), query, filters)
    runs = runs.where(RUN.status.in_(rules.fitting(operation.action, operation.parameters)))
    if "after" in selection:
        runs = runs.where(sa.tuple_(*OLDEST_FIRST) > sa.tuple_(*map(native, selection["after"])))
    last, size = await _last_candidate(work, runs)
    if last is None:
        return 0, selection, True
    # Filters without an index are applied to these alone: reading all rows would take long.
    part = runs.where(sa.tuple_(*OLDEST_FIRST) <= sa.tuple_(*last), *filters.searches(RUN))
    most = rules.MAX_RUNS - operation.selected
    page = part.with_only_columns(*OLDEST_FIRST).order_by(*OLDEST_FIRST).limit(most).subquery()
    turn = sa.func.row_number().over(order_by=(page.c.created_at, page.c.id))
    count = await write_down(work, numbered(operation, turn + operation.selected, page.c.id))
    selection["after"] = [plain(value) for value in last]
    return count, selection, count == most or size < rules.SELECTED_AT_ONCE


async def _last_candidate(
    work: UnitOfWork, runs: sa.Select[Any]
) -> tuple[Sequence[Any] | None, int]:
    """The place in the order of the last run of the next part, if it has any, and its size."""
    part = (
        runs.with_only_columns(*OLDEST_FIRST).order_by(*OLDEST_FIRST).limit(rules.SELECTED_AT_ONCE)
    )
    places = part.subquery()
    order = (places.c.created_at.desc(), places.c.id.desc())
    size = sa.func.count().over().label("size")
    row = await work.first(sa.select(*places.c, size).order_by(*order).limit(1))
    return (None, 0) if row is None else ((row.created_at, row.id), row.size)


async def _select_undone(
    work: UnitOfWork, operation: rules.OperationRow, undone_id: Id
) -> tuple[int, JsonObject, bool]:
    """Write down what another operation did: the runs it cancelled, or those it started."""
    theirs = (
        _result.new_run_id if operation.action == rules.OperationAction.CANCEL else _result.run_id
    )
    page = (
        sa.select(_result.position, theirs.label("run_id"))
        .where(
            _result.workspace_id == operation.workspace_id,
            _result.operation_id == undone_id,
            _result.outcome == rules.RunOutcome.SUCCEEDED,
            _result.position > operation.selection.get("position", 0),
        )
        .order_by(_result.position)
        .limit(rules.SELECTED_AT_ONCE)
        .subquery()
    )
    turn = sa.func.row_number().over(order_by=page.c.position)
    last = await work.scalar(sa.select(sa.func.max(page.c.position)))
    count = await write_down(work, numbered(operation, turn + operation.selected, page.c.run_id))
    return count, {"position": last}, count < rules.SELECTED_AT_ONCE


async def write_down(work: UnitOfWork, rows: sa.Select[Any]) -> int:
    """Write down what is treated; returns its number."""
    statement = sa.insert(queries.run_operation_result).from_select(_COLUMNS, rows)
    return (await work.execute(statement.execution_options(preserve_rowcount=True))).rowcount


def numbered(
    operation: rules.OperationRow, position: sa.ColumnElement[Any], run_id: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """The rows of the results, in their order."""
    return sa.select(*_of(operation), position, run_id)


def _of(operation: rules.OperationRow) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    return (
        sa.literal(operation.id, sa.Uuid).label("operation_id"),
        sa.literal(operation.workspace_id, sa.Uuid).label("workspace_id"),
    )


async def select_events(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow
) -> tuple[int, JsonObject, bool]:
    """Write down the next events of a filter, the oldest first.

    Returns their number, the selection that continues behind them, and whether they are the last.
    """
    selection = dict(operation.selection)
    events = matching_events(actor, operation.parameters, selection["events"])
    moment, event_id = events.selected_columns
    if "after" in selection:
        events = events.where(
            sa.tuple_(moment, event_id) > sa.tuple_(*map(native, selection["after"]))
        )
    limit = min(rules.SELECTED_AT_ONCE, rules.MAX_RUNS - operation.selected)
    page = events.order_by(moment, event_id).limit(limit).subquery()
    last = await work.first(
        sa.select(page.c.received_at, page.c.id, sa.func.count().over().label("size"))
        .order_by(page.c.received_at.desc(), page.c.id.desc())
        .limit(1)
    )
    if last is None:
        return 0, selection, True
    turn = sa.func.row_number().over(order_by=(page.c.received_at, page.c.id))
    count = await write_down(work, numbered(operation, turn + operation.selected, page.c.id))
    selection["after"] = [plain(last.received_at), plain(last.id)]
    return count, selection, last.size < limit


def matching_events(
    actor: Actor, parameters: JsonObject, conditions: JsonObject
) -> sa.Select[tuple[()]]:
    """The events of a filter that concerned the automation: when they came, and their ids."""
    query = EventQuery.model_validate(conditions, strict=False)
    return concerned_events(actor, Id(parameters["automationId"]), query)


async def preview_replay(
    work: UnitOfWork, actor: Actor, parameters: JsonObject, body: queries.BulkReplay, counted: int
) -> queries.RunOperationPreview:
    """The number of events that a replay would treat, and what their payloads lack."""
    query = None if body.filter is None else body.filter.until_at_most(work.now)
    events = matching_events(actor, parameters, {} if query is None else query.wire)
    if body.event_ids is not None:
        ids = sa.literal(list(set(body.event_ids)), sa.ARRAY(sa.Uuid))
        events = events.where(events.selected_columns.id == sa.any_(ids))
    some = events.limit(counted + 1).subquery()
    total = await work.scalar(sa.select(sa.func.count()).select_from(some))
    examined, redacted, paths = await redacted_among(work, events, body.automation_id)
    return queries.RunOperationPreview(
        total=min(total, counted),
        fitting=min(total, counted),
        more=total > counted,
        examined=examined,
        statuses={},
        retried_before=0,
        versions=[],
        repeats=[],
        records=0,
        outside=[],
        until=None if query is None else query.until,
        redacted=redacted,
        redacted_paths=paths,
    )


async def replay_events(
    work: UnitOfWork, actor: Actor, operation: rules.OperationRow, event_ids: Sequence[Id]
) -> Sequence[rules.Treated]:
    """Replay these events, in their order."""
    body = ReplayEvent.model_validate(operation.parameters, strict=False)
    treated: list[rules.Treated] = []
    for event_id in event_ids:
        replay_id = derived_id(operation.id, event_id, "replay")
        try:
            async with work.savepoint():
                outcome = await replay(work, actor, event_id, replay_id, body)
        except UnavailableError:
            raise
        except PlatformError as error:
            treated.append(rules.Treated(event_id, rules.RunOutcome.FAILED, rules.reason_of(error)))
            continue
        if EventOutcome(outcome.outcome) in WITH_RUN:
            treated.append(
                rules.Treated(event_id, rules.RunOutcome.SUCCEEDED, new_run_id=outcome.run_id)
            )
        else:
            treated.append(rules.Treated(event_id, rules.RunOutcome.SKIPPED, outcome.reason))
    return treated
