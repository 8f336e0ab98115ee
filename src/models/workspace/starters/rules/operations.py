"""From a plan to the operations that build it, what they build, and their days. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from pydantic import JsonValue

from models.core.base import JsonObject
from models.core.keys import slug
from models.data.fields.rules.fields import OPTION_KINDS, TITLE_KEY, FieldKind
from models.data.views.rules.kinds import ViewKind
from models.workspace.changes.rules import OperationKind
from models.workspace.changes.shapes import Operation
from models.workspace.starters import shapes
from models.workspace.starters.rules.plan import suggested_views

_COLORS = ("blue", "green", "orange", "purple", "red", "teal", "yellow", "pink", "brown", "gray")
_MOST_SHOWN = 4
"""Databases that a dashboard shows."""
_CARD_FIELDS = 3


def operations_of(plan: shapes.StarterPlan) -> list[Operation]:
    """The operations for a well-formed plan: databases, then what relates them, then the rest."""
    tree = [
        node for node in plan.nodes if node.type in {shapes.NodeType.FOLDER, shapes.NodeType.PAGE}
    ]
    databases = [node for node in plan.nodes if node.type is shapes.NodeType.DATABASE]
    rest = [
        node
        for node in plan.nodes
        if node.type in {shapes.NodeType.DASHBOARD, shapes.NodeType.FORM}
    ]
    return [
        *(_NODES[node.type](node, databases) for node in tree),
        *(_NODES[node.type](node, databases) for node in databases),
        *(one for node in databases for one in _relations(node)),
        *(_records(node) for node in databases if node.records),
        *(_NODES[node.type](node, databases) for node in rest),
    ]


def _operation(kind: OperationKind, ref: str | None, given: JsonObject) -> Operation:
    return Operation.model_validate({"kind": kind.value, "ref": ref, "input": given})


def _ref(name: str) -> JsonObject:
    return {"ref": name}


def _place(node: shapes.PlanNode) -> JsonObject:
    return {} if node.parent_ref is None else {"parentItemId": _place_ref(node.parent_ref)}


def _place_ref(ref: str) -> JsonObject:
    return _ref(f"{ref}.item")


def _appearance(node: shapes.PlanNode) -> JsonObject:
    return {} if node.icon is None else {"icon": node.icon}


def _item(node: shapes.PlanNode, kind: str, **given: object) -> Operation:
    body = {"kind": kind, "title": node.label, **_place(node), **_appearance(node), **given}
    return _operation(OperationKind.CREATE_ITEM, node.ref, body)


def _folder(node: shapes.PlanNode, _databases: Sequence[shapes.PlanNode]) -> Operation:
    return _item(node, "folder")


def _page(node: shapes.PlanNode, _databases: Sequence[shapes.PlanNode]) -> Operation:
    lines = node.content or ([node.description] if node.description else [])
    return _item(node, "page", content={"blocks": [_block(line) for line in lines]})


_LINES: Mapping[str, tuple[str, JsonObject]] = {
    "### ": ("heading_3", {}),
    "## ": ("heading_2", {}),
    "# ": ("heading_1", {}),
    "- [ ] ": ("to_do", {"checked": False}),
    "- [x] ": ("to_do", {"checked": True}),
    "- ": ("bulleted_list_item", {}),
    "> ": ("quote", {}),
}
"""The kinds of lines by how they begin, as in Markdown."""


def _block(line: str) -> JsonObject:
    for mark, (kind, content) in _LINES.items():
        if line.startswith(mark):
            return {"kind": kind, "content": {"text": line.removeprefix(mark), **content}}
    return {"kind": "paragraph", "content": {"text": line}}


def _database(node: shapes.PlanNode, _databases: Sequence[shapes.PlanNode]) -> Operation:
    fields = [field for field in node.fields if field.kind is not FieldKind.RELATION]
    body = {
        "label": node.label,
        **_place(node),
        **_appearance(node),
        **({} if node.description is None else {"description": node.description}),
        "fields": [_field(field) for field in fields],
        "views": [_view(view, fields) for view in node.views or suggested_views(fields)],
    }
    return _operation(OperationKind.CREATE_DATABASE, node.ref, body)


def _field(field: shapes.PlanField) -> JsonObject:
    body: JsonObject = {"key": field.key, "label": field.label, "kind": field.kind.value}
    if field.kind not in OPTION_KINDS:
        return body
    names = field.options or []
    keys = [slug(name, "option") for name in names]
    body["options"] = [
        {"name": name, "key": key, "color": _COLORS[place % len(_COLORS)]}
        for place, (name, key) in enumerate(zip(names, keys, strict=True))
    ]
    if field.kind is FieldKind.STATUS:
        return {**body, "settings": {"groups": _groups(keys)}, "defaultValue": keys[0]}
    return {**body, "settings": {"allowCreate": True}}


def _groups(keys: Sequence[str]) -> JsonObject:
    """The first is to do, the last is done, what lies between is in progress."""
    if len(keys) == 1:
        return {"todo": list(keys), "in_progress": [], "done": []}
    return {"todo": [keys[0]], "in_progress": list(keys[1:-1]), "done": [keys[-1]]}


def _view(view: shapes.PlanView, fields: Sequence[shapes.PlanField]) -> JsonObject:
    manifest: JsonObject = {}
    if view.kind is ViewKind.BOARD:
        cards = [one.key for one in fields if one.key not in {TITLE_KEY, view.field}]
        manifest = {"stackFieldKey": view.field, "cardFields": cards[:_CARD_FIELDS]}
    elif view.kind is ViewKind.CALENDAR:
        manifest = {"dateFieldKey": view.field}
    return {"label": view.label, "kind": view.kind.value, "manifest": manifest}


def _relations(node: shapes.PlanNode) -> Iterator[Operation]:
    """Relations come when all databases are there, so that two may point at each other."""
    for field in node.fields:
        if field.kind is FieldKind.RELATION and field.target is not None:
            settings = {"databaseId": _ref(field.target), "cardinality": "one"}
            body = {"key": field.key, "label": field.label, "kind": "relation"}
            given = {"databaseId": _ref(node.ref), **body, "settings": settings}
            yield _operation(OperationKind.CREATE_FIELD, None, given)


def _records(node: shapes.PlanNode) -> Operation:
    records = [record.model_dump(mode="json", exclude_none=True) for record in node.records]
    given = {"databaseId": _ref(node.ref), "records": records}
    return _operation(OperationKind.CREATE_RECORDS, None, given)


def _form(node: shapes.PlanNode, _databases: Sequence[shapes.PlanNode]) -> Operation:
    assert node.database_ref is not None, "a form without a database was skipped"
    config = {"databaseId": _ref(node.database_ref), "title": node.label}
    if node.description is not None:
        config["description"] = node.description
    return _item(node, "form", config=config)


def _dashboard(node: shapes.PlanNode, databases: Sequence[shapes.PlanNode]) -> Operation:
    """A figure for each database in the first row, and their records below."""
    selection = databases[:_MOST_SHOWN]
    width = 12 // max(1, len(selection))
    blocks: list[JsonObject] = [
        {
            "kind": "number",
            "content": {
                "databaseId": _ref(database.ref),
                "aggregate": {"op": "count"},
                "title": database.label,
            },
            "x": place * width,
            "y": 0,
            "w": width,
            "h": 2,
        }
        for place, database in enumerate(selection)
    ]
    for place, database in enumerate(selection):
        key = slug(_first_view(database).label, "view")
        content = {"viewId": _ref(f"{database.ref}.views.{key}"), "title": database.label}
        frame = {"x": 6 * (place % 2), "y": 2 + 6 * (place // 2), "w": 6, "h": 6}
        blocks.append({"kind": "view", "content": content, **frame})
    return _item(node, "dashboard", content={"blocks": blocks})


def _first_view(node: shapes.PlanNode) -> shapes.PlanView:
    return (node.views or suggested_views(node.fields))[0]


_NODES: Mapping[
    shapes.NodeType, Callable[[shapes.PlanNode, Sequence[shapes.PlanNode]], Operation]
] = {
    shapes.NodeType.FOLDER: _folder,
    shapes.NodeType.PAGE: _page,
    shapes.NodeType.DATABASE: _database,
    shapes.NodeType.DASHBOARD: _dashboard,
    shapes.NodeType.FORM: _form,
}


def counts_of(operations: Sequence[Operation]) -> shapes.StarterCounts:
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
    return shapes.StarterCounts(
        database_count=len(databases),
        record_count=sum(len(batch["records"]) for batch in records),
        view_count=views + kinds.count(OperationKind.CREATE_VIEW),
        page_count=items.count("page"),
        dashboard_count=items.count("dashboard"),
        form_count=items.count("form"),
        automation_count=kinds.count(OperationKind.CREATE_AUTOMATION),
    )


_TODAY = "today"


def dated(value: JsonValue, today: date) -> JsonValue:
    """The value with days in the place of `{"today": 3}`, which means in three days."""
    if isinstance(value, dict):
        if value.keys() == {_TODAY} and isinstance(days := value[_TODAY], int):
            return (today + timedelta(days=days)).isoformat()
        return {key: dated(part, today) for key, part in value.items()}
    if isinstance(value, list):
        return [dated(part, today) for part in value]
    return value
