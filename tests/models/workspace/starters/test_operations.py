"""The operations that build a plan, and what they count."""

from typing import Any

from models.workspace.changes.shapes import Operation
from models.workspace.starters.rules.operations import counts_of, operations_of
from models.workspace.starters.rules.plan import normalized
from models.workspace.starters.shapes import StarterCounts

TASKS = {
    "type": "database",
    "ref": "tasks",
    "label": "Tasks",
    "description": "What to do",
    "fields": [
        {"label": "State", "kind": "status", "options": ["Open", "Doing", "Done"]},
        {"label": "Tag", "kind": "select", "options": ["A"]},
        {"label": "Due", "kind": "date"},
        {"label": "Owner", "kind": "relation", "target": "people"},
        {"label": "Size", "kind": "number"},
        {"label": "Note", "kind": "text"},
    ],
    "views": [{"kind": "board", "field": "state"}, {"kind": "calendar", "field": "due"}],
    "records": [{"title": "First"}, {"title": "Second"}],
}
OPERATIONS = operations_of(
    normalized(
        {
            "nodes": [
                {
                    "type": "folder",
                    "ref": "work",
                    "label": "Work",
                    "icon": "📁",
                    "children": [TASKS],
                },
                {"type": "database", "ref": "people", "label": "People"},
                {
                    "type": "page",
                    "label": "Read me",
                    "content": ["# A", "### B", "- [ ] C", "- [x] D", "- E", "> F", "G"],
                },
                {"type": "dashboard", "label": "Overview"},
                {"type": "form", "label": "Ask", "databaseRef": "tasks", "description": "Please"},
            ]
        }
    )
)


def given(ref: str | None, kind: str | None = None) -> dict[str, Any]:
    [found] = [one.input for one in OPERATIONS if one.ref == ref and kind in {None, one.kind.value}]
    return found


def test_relations_come_when_all_databases_are_there() -> None:
    assert [one.ref or one.kind.value for one in OPERATIONS] == [
        "work",
        "read_me",
        "people",
        "tasks",
        "create_field",
        "create_records",
        "overview",
        "ask",
    ]
    assert given(None, "create_field")["settings"] == {
        "databaseId": {"ref": "people"},
        "cardinality": "one",
    }
    assert given("ask")["config"] == {
        "databaseId": {"ref": "tasks"},
        "title": "Ask",
        "description": "Please",
    }


def test_a_database_has_its_fields_with_options_and_views() -> None:
    tasks = given("tasks")
    assert (tasks["parentItemId"], tasks["description"]) == ({"ref": "work.item"}, "What to do")
    title, state, tag, *others = tasks["fields"]
    assert title == {"key": "title", "label": "Name", "kind": "text"}
    assert [one["key"] for one in state["options"]] == ["open", "doing", "done"]
    assert len({one["color"] for one in state["options"]}) == 3
    groups = {"todo": ["open"], "in_progress": ["doing"], "done": ["done"]}
    assert (state["settings"], state["defaultValue"]) == ({"groups": groups}, "open")
    assert tag["settings"] == {"allowCreate": True}
    assert "defaultValue" not in tag
    assert [one["key"] for one in others] == ["due", "size", "note"]
    assert [(one["kind"], one["manifest"]) for one in tasks["views"]] == [
        ("table", {}),
        ("board", {"stackFieldKey": "state", "cardFields": ["tag", "due", "size"]}),
        ("calendar", {"dateFieldKey": "due"}),
    ]


def test_lines_of_a_page_are_blocks_by_how_they_begin() -> None:
    assert [(one["kind"], one["content"]) for one in given("read_me")["content"]["blocks"]] == [
        ("heading_1", {"text": "A"}),
        ("heading_3", {"text": "B"}),
        ("to_do", {"text": "C", "checked": False}),
        ("to_do", {"text": "D", "checked": True}),
        ("bulleted_list_item", {"text": "E"}),
        ("quote", {"text": "F"}),
        ("paragraph", {"text": "G"}),
    ]


def test_a_dashboard_has_a_figure_and_the_first_view_of_each_database() -> None:
    blocks = given("overview")["content"]["blocks"]
    frames = [(one["kind"], one["x"], one["y"], one["w"], one["h"]) for one in blocks]
    assert frames == [
        ("number", 0, 0, 6, 2),
        ("number", 6, 0, 6, 2),
        ("view", 0, 2, 6, 6),
        ("view", 6, 2, 6, 6),
    ]
    assert [one["content"].get("viewId") for one in blocks[2:]] == [
        {"ref": "people.views.all"},
        {"ref": "tasks.views.all"},
    ]


def test_the_things_that_a_plan_makes_are_counted() -> None:
    view = Operation.model_validate({"kind": "create_view", "input": {"label": "More"}})
    assert counts_of([*OPERATIONS, view]).view_count == 5
    assert counts_of(OPERATIONS) == StarterCounts(
        database_count=2,
        record_count=2,
        view_count=4,
        page_count=1,
        dashboard_count=1,
        form_count=1,
        automation_count=0,
    )
