"""The text of a draft without its page: lines of faults, and what can be written at a place."""

import json
from typing import Any

import pytest

from api.console.automations.catalog import catalog
from tests.support.browser import Page
from tests.support.server import Server

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.long]

DOCUMENT = {
    "triggerConfig": {"kind": "schedule"},
    "graph": {
        "nodes": [
            {"id": "read", "kind": "http_request", "config": {"url": "https://a.test"}},
            {"id": "check", "kind": "condition", "label": "Large?", "config": {"filter": {}}},
        ],
        "edges": [{"id": "edge-1", "from": "read", "to": "check", "outcome": "always"}],
    },
}


async def known(page: Page, server: Server) -> None:
    """Open a page on which modules can be asked, with the catalog of the editor."""
    await page.open(f"{server.url}/sign-in")
    await page.evaluate(f"window.catalog = {json.dumps(catalog())}; 0")


async def asked(page: Page, module: str, call: str, *given: Any) -> Any:
    """What a function of a module answers."""
    values = ", ".join(json.dumps(one) for one in given)
    return await page.evaluate(
        f"import('/pages/canvas/{module}.js').then((m) => ({call})({values}))"
    )


async def proposed(page: Page, text: str) -> dict[str, str]:
    """The text after each proposal at the mark `|`, by its name, with the cursor as `|`."""
    at = text.index("|")
    call = (
        "(text, at) => Object.fromEntries(m.proposals(text, at, window.catalog).map((one) => ["
        "one.name, text.slice(0, one.from) + one.text.slice(0, one.cursor - one.from) + '|'"
        " + one.text.slice(one.cursor - one.from) + text.slice(one.to)]))"
    )
    found: dict[str, str] = await asked(page, "json-completion", call, text.replace("|", ""), at)
    return found


READ = """(text) => {
  const { document, fault } = m.read(text, window.catalog);
  return document ?? [fault.row + 1, fault.message];
}"""


async def test_a_text_is_a_document_with_what_the_canvas_needs(page: Page, server: Server) -> None:
    await known(page, server)
    whole = json.dumps(DOCUMENT, indent=2)
    found = await asked(page, "json-text", READ, whole)
    assert found == {"graph": DOCUMENT["graph"], "trigger": DOCUMENT["triggerConfig"]}
    text = await asked(page, "json-text", "(one) => m.textOf(one)", found)
    assert text == whole
    # An edge has an id on the canvas.
    bare = await asked(page, "json-text", READ, whole.replace('"id": "edge-1",', ""))
    assert bare["graph"]["edges"][0]["id"] == "edge-1"
    noted = whole.replace(
        '"edges"', '"notes": [{"id": "n", "position": {"x": 1, "y": 2}}], "edges"'
    )
    (note,) = (await asked(page, "json-text", READ, noted))["graph"]["notes"]
    assert (note["width"], note["height"], note["color"], note["text"]) == (240, 120, "yellow", "")
    # A trigger that lacks something is a problem of the draft; one of another shape is none.
    lacking = whole.replace('"schedule"', '"record_matches"')
    assert (await asked(page, "json-text", READ, lacking))["trigger"] == {"kind": "record_matches"}
    odd = whole.replace('"schedule"', '"schedule", "cron": {}')
    assert (await asked(page, "json-text", READ, odd))[0] == 3


async def test_a_fault_is_said_with_its_line(page: Page, server: Server) -> None:
    await known(page, server)
    whole = json.dumps(DOCUMENT, indent=2)
    lines = whole.split("\n")
    row = next(at for at, line in enumerate(lines, 1) if '"id": "check"' in line)
    wrong = {
        "": [1, "Enter a JSON object"],
        "[]": [1, "Enter a JSON object"],
        whole + "\n}": [len(lines) + 1, "Unexpected text after the end"],
        whole[:-1]: [len(lines) - 1, "Missing }"],
        whole.replace('"id": "check",', '"id": "check"'): [row, "Missing comma"],
        whole.replace('"id": "check",', '"id": "check'): [row, "Missing closing quotation mark"],
        whole.replace('"id": "check"', '"id" "check"'): [
            row,
            "Missing colon and value after the key",
        ],
        whole.replace('"id": "check"', "id: 1"): [row, "Keys need quotation marks"],
        whole.replace('"id": "check"', '"id": check'): [row, "Invalid value: check"],
        whole.replace('"id": "check"', '"id": 7'): [row, "Must be text"],
        whole.replace('"id": "check"', '"id": "read"'): [row, "Duplicate ID: read"],
        whole.replace('"id": "check"', '"kind": "check"'): [row + 1, "Duplicate key: kind"],
        whole.replace('"id": "check",', ""): [row - 1, "Missing key: id"],
        whole.replace('"triggerConfig"', '"trigger"'): [
            2,
            "Unknown key. Allowed: triggerConfig, graph",
        ],
        '{"triggerConfig": {"kind": "manual"}, "graph": {"nodes": [1]}}': [1, "Must be an object"],
        "[" * 5000: [1, "Nested too deeply"],
    }
    for text, expected in wrong.items():
        assert await asked(page, "json-text", READ, text) == expected, text[:200]
    unknown = await asked(page, "json-text", READ, whole.replace('"condition"', '"if"'))
    assert unknown[0] == row + 1
    assert unknown[1].startswith("Unknown value. Allowed: ")


FUZZ = """(text) => {
  let state = 7;
  const random = (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % most;
  };
  const parts = ['"', '{', '}', '[', ']', ':', ',', '\\\\', '\\n', '\\u00a0', '\\t',
    ' ', '0', '-', 'null', 'x', '"a"'];
  const wrong = [];
  let read = 0;
  for (let turn = 0; turn < 4000; turn += 1) {
    let changed = text;
    for (let times = random(3); times >= 0; times -= 1) {
      const at = random(changed.length);
      const part = random(3) ? parts[random(parts.length)] : '';
      changed = changed.slice(0, at) + part + changed.slice(at + random(3));
    }
    let isJson = true;
    try { JSON.parse(changed); } catch { isJson = false; }
    const { fault } = m.partsOf(changed);
    read += isJson;
    const isTwice = fault?.message.startsWith('Duplicate');
    if (isJson ? fault && !isTwice : !fault) wrong.push([changed, fault]);
    m.read(changed, window.catalog);
  }
  return { wrong: wrong.slice(0, 3), read };
}"""


async def test_a_fault_is_found_exactly_where_a_text_is_invalid(page: Page, server: Server) -> None:
    await known(page, server)
    found = await asked(page, "json-text", FUZZ, json.dumps(DOCUMENT, indent=1))
    assert found["wrong"] == []
    assert found["read"] > 300


async def test_a_problem_has_the_line_of_its_key(page: Page, server: Server) -> None:
    await known(page, server)
    text = json.dumps(DOCUMENT, indent=2)
    call = "(text, issues) => issues.map((one) => m.rowOf(m.partsOf(text).root, one) + 1)"
    issues = [
        {"nodeId": "check", "path": "config.filter"},
        {"nodeId": "check", "path": "config.filter.and.0"},
        {"nodeId": "read", "path": ""},
        {"nodeId": ":trigger", "path": "triggerConfig.kind"},
        {"nodeId": ":trigger", "path": "triggerConfig.cron"},
        {"nodeId": "", "path": "graph.edges.0.to"},
        {"nodeId": "gone", "path": "config"},
    ]
    rows = await asked(page, "json-text", call, text, issues)
    lines = [text.split("\n")[row - 1].strip() for row in rows]
    assert lines == [
        '"filter": {}',
        '"filter": {}',
        "{",
        '"kind": "schedule"',
        '"triggerConfig": {',
        '"to": "check",',
        '"graph": {',
    ]


INSIDE = '{"triggerConfig": {"kind": "schedule"}, "graph": {"nodes": [{"id": "read", "kind": '
REST = '}, {"id": "b c", "kind": "condition"}], "edges": [{"from": "b c", "to": "read"}]}}'


async def names(page: Page, text: str) -> set[str]:
    return set(await proposed(page, text))


async def test_keys_are_proposed(page: Page, server: Server) -> None:
    await known(page, server)
    assert await names(page, "{|}") == {"triggerConfig", "graph"}
    assert await names(page, '{"graph": {|}}') >= {
        "nodes",
        "edges",
        "entryNodeIds",
        "notes",
        "variables",
    }
    assert {"id", "kind"} & await names(page, f'{INSIDE}"condition", "|"{REST}') == set()
    assert await names(page, f'{INSIDE}"condition", "|"{REST}') >= {
        "label",
        "config",
        "input",
        "retry",
    }
    assert await names(page, f'{INSIDE}"condition", "config": {{|}}{REST}') == {
        "expression",
        "filter",
    }
    assert await names(page, f'{INSIDE}"condition", "input": {{"filter": {{|}}}}{REST}') == {
        "type",
        "value",
    }
    assert await names(
        page, f'{INSIDE}"transform", "config": {{"output": {{"a": {{"|"}}}}}}{REST}'
    ) == {
        "type",
        "value",
    }


async def test_values_and_ids_are_proposed(page: Page, server: Server) -> None:
    await known(page, server)
    assert await names(page, f'{INSIDE}"|"{REST}') >= {"condition", "transform", "http_request"}
    assert await names(page, f'{INSIDE}"a", "disabled": |{REST}') == {"true", "false"}
    assert await names(page, '{"triggerConfig": {"kind": "|"}}') >= {
        "manual",
        "schedule",
        "webhook",
    }
    assert await names(page, '{"triggerConfig": {"kind": "schedule", "|"}}') >= {"cron", "timezone"}
    edge = f'{INSIDE}"condition"{REST}'
    assert await names(page, edge.replace('"from": "b c"', '"from": "|"')) == {"read", "b c"}
    assert await names(page, edge.replace('"to": "read"', '"outcome": "|"')) >= {"true", "false"}
    assert "item" not in await names(page, edge.replace('"to": "read"', '"outcome": "|"'))
    assert await names(page, edge.replace('"edges"', '"entryNodeIds": ["|"], "edges"')) == {
        "read",
        "b c",
    }
    # A text is free, and so is what follows the document.
    assert await names(page, f'{INSIDE}"condition", "label": "|"{REST}') == set()
    assert await names(page, "{}|") == set()

    found = await proposed(page, '{"graph": {\n  "nodes": []\n  "ed|\n}}')
    assert found["edges"] == '{"graph": {\n  "nodes": [],\n  "edges": [|]\n}}'


async def test_a_proposal_is_written_whole(page: Page, server: Server) -> None:
    await known(page, server)
    edge = f'{INSIDE}"condition"{REST}'
    path = "(text, mark) => m.pathAt(text, text.indexOf(mark) + mark.length)"
    for mark in ('"schedule', '"schedule"', '"kind": '):
        place = await asked(page, "json-completion", path, edge, mark)
        assert place == ["triggerConfig", "kind"], mark
    found = await proposed(page, '{"graph": {"no|": []}}')
    assert found["nodes"] == '{"graph": {"nodes"|: []}}'
    found = await proposed(page, '{|"graph": {}}')
    assert found["triggerConfig"] == '{"triggerConfig": {|},"graph": {}}'
    found = await proposed(page, f"{INSIDE}|{REST}")
    assert found["condition"] == f'{INSIDE}"condition"|{REST}'
