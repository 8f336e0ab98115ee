"""The documentation of each kind of operation, with an example that is valid."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.core.base import EXAMPLE_ID, JsonObject
from models.workspace.changes.rules import OperationKind


@dataclass(frozen=True, slots=True)
class OperationNote:
    """A sentence on what an operation does, the body that its `input` is, and an example of one."""

    says: str
    body: str | None
    example: JsonObject


_ITEM: JsonObject = {"itemId": EXAMPLE_ID}
_DATABASE: JsonObject = {"databaseId": EXAMPLE_ID}
_VIEW: JsonObject = {**_DATABASE, "viewId": EXAMPLE_ID}
_BLOCKS: JsonObject = {"blocks": [{"kind": "paragraph", "content": {"text": "Hello"}}]}
_LEADS: JsonObject = {"label": "Leads", "fields": [{"label": "Company", "kind": "text"}]}

NOTES: Mapping[OperationKind, OperationNote] = {
    OperationKind.CREATE_ITEM: OperationNote(
        "Create a folder, page, dashboard, form or another item.",
        "CreateItem",
        {"kind": "page", "title": "Start here", "content": _BLOCKS},
    ),
    OperationKind.UPDATE_ITEM: OperationNote(
        "Change the name, look or access of an item.",
        "UpdateItem",
        {**_ITEM, "title": "Sales"},
    ),
    OperationKind.MOVE_ITEM: OperationNote(
        "Move an item in the tree.", "MoveItem", {**_ITEM, "parentItemId": None}
    ),
    OperationKind.DELETE_ITEM: OperationNote(
        "Move an item and everything below it to the trash.", None, _ITEM
    ),
    OperationKind.CREATE_DATABASE: OperationNote(
        "Create a database with fields and views.", "CreateDatabase", _LEADS
    ),
    OperationKind.UPDATE_DATABASE: OperationNote(
        "Change a database, except its fields.",
        "UpdateDatabase",
        {**_DATABASE, "description": "People we talk to."},
    ),
    OperationKind.CREATE_FIELD: OperationNote(
        "Add a field.", "CreateField", {**_DATABASE, "label": "City", "kind": "text"}
    ),
    OperationKind.UPDATE_FIELD: OperationNote(
        "Change a field, except its kind.",
        "UpdateField",
        {**_DATABASE, "fieldId": EXAMPLE_ID, "label": "Town"},
    ),
    OperationKind.CREATE_VIEW: OperationNote(
        "Add a view.", "CreateView", {**_DATABASE, "label": "All", "kind": "table"}
    ),
    OperationKind.UPDATE_VIEW: OperationNote(
        "Change a view.", "UpdateView", {**_VIEW, "label": "Everyone"}
    ),
    OperationKind.DELETE_VIEW: OperationNote("Permanently delete a view.", None, _VIEW),
    OperationKind.CREATE_RECORD: OperationNote(
        "Create a record.", "CreateRecord", {**_DATABASE, "title": "Acme"}
    ),
    OperationKind.CREATE_RECORDS: OperationNote(
        "Create up to 500 records, all or none. Each can have its own `ref`.",
        "CreateRecord",
        {**_DATABASE, "records": [{"ref": "acme", "title": "Acme"}, {"title": "Other"}]},
    ),
    OperationKind.UPDATE_RECORD: OperationNote(
        "Change a record.", "UpdateRecord", {"recordId": EXAMPLE_ID, "data": {"city": "Bern"}}
    ),
    OperationKind.DELETE_RECORD: OperationNote(
        "Move a record to the trash.", None, {"recordId": EXAMPLE_ID}
    ),
    OperationKind.ADD_BLOCKS: OperationNote(
        "Add blocks to a page, canvas or dashboard.",
        "AddBlocks",
        {"surfaceId": EXAMPLE_ID, **_BLOCKS},
    ),
    OperationKind.REPLACE_SURFACE: OperationNote(
        "Replace all blocks of a page, canvas or dashboard.",
        "ReplaceSurface",
        {"surfaceId": EXAMPLE_ID, **_BLOCKS},
    ),
    OperationKind.CREATE_ACTION: OperationNote(
        "Create an action.",
        "CreateAction",
        {
            "label": "Notify the team",
            "kind": "send_notification",
            "config": {"role": "editor", "title": "Hello"},
        },
    ),
    OperationKind.CREATE_AUTOMATION: OperationNote(
        "Create an automation as a draft.",
        "CreateAutomation",
        {"label": "Hello", "graph": {"nodes": [], "edges": []}},
    ),
    OperationKind.UPDATE_AUTOMATION: OperationNote(
        "Change the draft of an automation, or enable it.",
        "UpdateAutomation",
        {"automationId": EXAMPLE_ID, "enabled": True},
    ),
    OperationKind.PUBLISH_AUTOMATION: OperationNote(
        "Publish the draft of an automation.", "PublishAutomation", {"automationId": EXAMPLE_ID}
    ),
}
