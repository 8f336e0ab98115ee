"""The runs of an operation, written down before the first of them is treated."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Uuid,
    func,
    insert,
    literal,
    select,
    tuple_,
)

from models.automation.automation_runs.joins import RUN
from models.automation.automation_runs.queries import workspace_runs
from models.automation.automation_runs.run_filters import RunFilter
from models.automation.run_operations.rows import OperationRow
from models.automation.run_operations.rules import (
    MAX_RUNS,
    SELECTED_AT_ONCE,
    OperationAction,
    RunOutcome,
    fitting,
)
from models.automation.run_operations.shapes import RunsFilter
from models.automation.run_operations.tables import run_operation_result
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.pagination import native, plain
from runtime.database import UnitOfWork

_result = run_operation_result.c
_COLUMNS = ["operation_id", "workspace_id", "position", "run_id"]
OLDEST_FIRST = (RUN.created_at, RUN.id)


def in_reach(actor: Actor, action: str) -> Select[Any]:
    """The runs that an actor may act on.

    Runs in the trash can be cancelled by owners and administrators, and nothing else.
    """
    return workspace_runs(actor, Level.EDIT, in_trash=action == OperationAction.CANCEL)


def conditions(runs_filter: RunsFilter) -> list[ColumnElement[bool]]:
    """The conditions of a filter that a client sent."""
    filters = RunFilter(**runs_filter.model_dump(exclude={"automation_id"}))
    automation_id = runs_filter.automation_id
    of_one = [] if automation_id is None else [RUN.automation_id == automation_id]
    return [*filters.conditions(), *of_one]


async def select_ids(work: UnitOfWork, operation: OperationRow, run_ids: Sequence[Id]) -> int:
    """Write down runs that were named by their ids, each once; how many they are."""
    unique = list(dict.fromkeys(run_ids))
    listed = func.unnest(literal(unique, ARRAY(Uuid)))
    named = listed.table_valued("id", with_ordinality="place").render_derived("named")
    return await _write(work, select(*_of(operation), named.c.place, named.c.id))


async def select_more(
    work: UnitOfWork, actor: Actor, operation: OperationRow
) -> tuple[int, JsonObject, bool]:
    """Write down the next runs of a filter, or of the operation that this one takes back.

    Gives how many they are, the selection that goes on behind them, and whether they are the last.
    """
    if operation.undoes_id is not None:
        return await _select_undone(work, operation, operation.undoes_id)
    selection = dict(operation.selection)
    most = min(SELECTED_AT_ONCE, MAX_RUNS - operation.selected)
    runs = in_reach(actor, operation.action).where(*conditions(filter_of(selection)))
    runs = runs.where(RUN.status.in_(fitting(operation.action, operation.parameters)))
    if "after" in selection:
        runs = runs.where(tuple_(*OLDEST_FIRST) > tuple_(*map(native, selection["after"])))
    page = runs.with_only_columns(*OLDEST_FIRST).order_by(*OLDEST_FIRST).limit(most).subquery()
    turn = func.row_number().over(order_by=(page.c.created_at, page.c.id))
    rows = select(*_of(operation), turn + operation.selected, page.c.id)
    count = await _write(work, rows)
    if count:
        selection["after"] = [plain(value) for value in await _last(work, operation, count)]
    return count, selection, count < SELECTED_AT_ONCE


async def _last(work: UnitOfWork, operation: OperationRow, count: int) -> Sequence[Any]:
    """The place in the order of the last run that was written down."""
    row = await work.first(
        select(*OLDEST_FIRST)
        .join(run_operation_result, _result.run_id == RUN.id)
        .where(
            _result.operation_id == operation.id,
            _result.position == operation.selected + count,
        )
    )
    assert row is not None, "this transaction has just written it"
    return row


async def _select_undone(
    work: UnitOfWork, operation: OperationRow, undone_id: Id
) -> tuple[int, JsonObject, bool]:
    """Write down what another operation did: the runs it cancelled, or those it started."""
    theirs = _result.new_run_id if operation.action == OperationAction.CANCEL else _result.run_id
    page = (
        select(_result.position, theirs.label("run_id"))
        .where(
            _result.workspace_id == operation.workspace_id,
            _result.operation_id == undone_id,
            _result.outcome == RunOutcome.SUCCEEDED,
            _result.position > operation.selection.get("position", 0),
        )
        .order_by(_result.position)
        .limit(SELECTED_AT_ONCE)
        .subquery()
    )
    turn = func.row_number().over(order_by=page.c.position)
    last = await work.scalar(select(func.max(page.c.position)))
    count = await _write(work, select(*_of(operation), turn + operation.selected, page.c.run_id))
    return count, {"position": last}, count < SELECTED_AT_ONCE


async def _write(work: UnitOfWork, rows: Select[Any]) -> int:
    statement = insert(run_operation_result).from_select(_COLUMNS, rows)
    return (await work.execute(statement.execution_options(preserve_rowcount=True))).rowcount


def filter_of(selection: JsonObject) -> RunsFilter:
    """The filter of a stored selection."""
    return RunsFilter.model_validate(selection["filter"], strict=False)


def _of(operation: OperationRow) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return (
        literal(operation.id, Uuid).label("operation_id"),
        literal(operation.workspace_id, Uuid).label("workspace_id"),
    )
