"""The amount that a list of operations builds. Pure."""

from collections.abc import Sequence

from models.workspace.changes.rules.kinds import OperationKind
from models.workspace.changes.shapes import Operation
from models.workspace.starters.shapes import StarterCounts


def counts_of(operations: Sequence[Operation]) -> StarterCounts:
    """The counts of what is there once all operations are done."""
    kinds = [operation.kind for operation in operations]
    items = [
        operation.input.get("kind")
        for operation in operations
        if operation.kind is OperationKind.CREATE_ITEM
    ]
    databases = [
        operation.input
        for operation in operations
        if operation.kind is OperationKind.CREATE_DATABASE
    ]
    records = [
        operation.input
        for operation in operations
        if operation.kind is OperationKind.CREATE_RECORDS
    ]
    views = sum(max(1, len(database.get("views") or ())) for database in databases)
    return StarterCounts(
        database_count=len(databases),
        record_count=sum(len(batch["records"]) for batch in records),
        view_count=views + kinds.count(OperationKind.CREATE_VIEW),
        page_count=items.count("page"),
        dashboard_count=items.count("dashboard"),
        form_count=items.count("form"),
        automation_count=kinds.count(OperationKind.CREATE_AUTOMATION),
    )
