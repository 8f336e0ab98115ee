"""Hostile rows block a workspace, or do no harm; none raises an unexpected error."""

import io
import json
from typing import Any
from uuid import uuid4

import pytest

from models.workspace.bundles.unpacking import unpack
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.bundles import SOURCE, bring_in, bundle, target_of
from tests.support.legacy_imports import MOMENT, folder
from tests.support.spaces import Space

DIGITS = "9" * 100_000
ITEM = folder("One")[1].rstrip(b"\n")
LONE = json.dumps("\ud800").encode()


def _item(metadata: bytes, position: bytes = b"1.0") -> bytes:
    """A folder with this metadata, which is written as it is."""
    with_place = ITEM.replace(b'"position": 1.0', b'"position": ' + position)
    return with_place.replace(b'"metadata": {}', b'"metadata": ' + metadata) + b"\n"


ITEMS: dict[str, bytes] = {
    "digits": _item(b'{"a": ' + DIGITS.encode() + b"}"),
    "digits of a place": _item(b"{}", DIGITS.encode()),
    "beyond all floats": _item(b"{}", b"1e400"),
    "deep": _item(b'{"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
    "rather deep": _item(b'{"a": ' + b"[" * 150 + b"]" * 150 + b"}"),
    "half a character": _item(b'{"a": ' + LONE + b"}"),
    "half a character as a key": _item(b"{" + LONE + b": 1}"),
    "no character": _item(b'{"\\u0000": 1}'),
    "not UTF-8": _item(b'{"a": "\xff"}'),
    "NaN": _item(b'{"a": NaN}'),
    "twice": ITEM[:-1] + b', "type": "database", "kind": "nope"}\n',
    "a list": b"[1]\n",
    "a type that is a list": b'{"type": ["item"]}\n',
    "another kind of item": ITEM.replace(b'"folder"', b'"nope"') + b"\n",
    "an id that is none": ITEM.replace(b'"id": "', b'"id": "x') + b"\n",
}
TAKEN = {"digits", "rather deep", "twice"}
"""Rows that may be imported, because they do no harm."""


@pytest.mark.parametrize("name", ITEMS)
async def test_a_hostile_row_blocks_or_does_no_harm(name: str, space: Space) -> None:
    files = {f"workspaces/{SOURCE}/items.ndjson": ITEMS[name]}
    errors = await _errors(files, space)
    assert errors or name in TAKEN


def _part(row_type: str, **values: Any) -> dict[str, Any]:
    dated = {"createdAt": MOMENT, "updatedAt": MOMENT}
    return {"type": row_type, "id": str(uuid4()), **dated, **values}


def _whole(changed: str, **values: Any) -> dict[str, bytes]:
    """A database with a field, a view and a form, one of which is changed."""
    items = [folder("Goods", kind="database"), folder("Form", kind="form")]
    database = _part("database", itemId=items[0][0], key="goods", label="Goods", settings={},
                     recordLayout={})  # fmt: skip
    own = {"databaseId": database["id"]}
    parts = {
        "field": _part("field", **own, key="a", label="A", kind="text", required=False, options=[],
                       settings={}, position=1),
        "view": _part("view", **own, key="all", label="All", kind="table", placement="database",
                      manifest={}, scope="shared", locked=False, definitionVersion=1, position=0),
        "form": _part("form", **own, itemId=items[1][0], fields=[{"key": "title"}], accepting=True,
                      submitLabel="Submit", confirmation="Thanks", public=True,
                      createdByUserId=str(uuid4())),
        "action": _part("action", itemId=items[1][0], key="act", label="Act", kind="transform",
                        config={"output": {}}, enabled=True),
        "data_source": _part("data_source", itemId=items[1][0], key="s", label="S",
                             kind="http_json", config={"url": "https://example.test"},
                             enabled=True, fields=[], keyFields=[], writeMode="upsert",
                             removedRows="keep", removalGuardPercent=50),
    }  # fmt: skip
    if changed:
        parts[changed] |= values
    of = {"form": "forms", "action": "actions", "data_source": "data_sources"}
    files = {"items": [line.decode() for _, line in items], "databases": [json.dumps(database)]}
    for kind, part in parts.items():
        if kind in {"field", "view", "form", changed}:
            files.setdefault(of.get(kind, "databases"), []).append(json.dumps(part))
    return {
        f"workspaces/{SOURCE}/{name}.ndjson": "".join(f"{one.rstrip()}\n" for one in lines).encode()
        for name, lines in files.items()
    }


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("field", {"kind": "nope"}),
        ("field", {"kind": "relation", "settings": {}}),
        ("field", {"kind": "number", "settings": {"precision": "many"}}),
        ("field", {"kind": "select", "options": [{"key": 1}]}),
        ("view", {"kind": "nope"}),
        ("view", {"manifest": {"sorts": 1}}),
        ("form", {"fields": [1]}),
        ("form", {"fields": [{"label": "No key"}]}),
        ("action", {"kind": "nope"}),
        ("action", {"config": {"url": 1}}),
        ("data_source", {"kind": "nope"}),
        ("data_source", {"config": {"url": "file:///etc/passwd"}}),
    ],
)
async def test_an_impossible_part_blocks(kind: str, values: dict[str, Any], space: Space) -> None:
    errors = await _errors(_whole(kind, **values), space)
    assert errors
    assert all(message.startswith(f"{kind}: ") for _, message in errors), errors


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"status": "active", "endedAt": None, "closedAt": None, "durationMs": None},
        {"status": "paused", "pausedAt": MOMENT, "endedAt": None, "closedAt": None},
        {"status": "discarded"},
        {"closedAt": None},
        {"durationMs": -1},
        {"pausedAt": MOMENT},
        {"endedAt": "2025-12-31T23:59:59Z"},
        {"endedAt": "2026-01-01T23:59:60Z"},
    ],
)
async def test_an_entry_that_is_not_over_blocks(changed: dict[str, Any], space: Space) -> None:
    """Two that run for one person would meet in the table, once everything before was written."""
    people = dict.fromkeys(("userId", "createdByUserId", "updatedByUserId"), str(uuid4()))
    entry = _part("time_entry", targetKind="workspace", targetId=str(SOURCE), source="import",
                  mode="stopwatch", status="completed", startedAt=MOMENT, endedAt=MOMENT,
                  closedAt=MOMENT, durationMs=0, accumulatedPausedMs=0, soundId="none",
                  **people)  # fmt: skip
    text = json.dumps({**entry, **changed}).encode() + b"\n"
    errors = await _errors({f"workspaces/{SOURCE}/time_entries.ndjson": text}, space)
    assert bool(errors) == bool(changed)
    assert all(message.startswith("time_entry: ") for _, message in errors), errors


async def test_the_parts_themselves_are_imported(space: Space) -> None:
    assert await _errors(_whole(""), space) == set()


async def _errors(files: dict[str, bytes], space: Space) -> set[tuple[str, str]]:
    """Bring a bundle in as far as it goes; what blocks it."""
    store, content = ObjectStore("memory://"), bundle(files)
    contents = await unpack(store, io.BytesIO(content), len(content), new_id())
    findings = await bring_in(space.database, store, contents, target_of(space), checked=True)
    return set(findings.errors)
