"""Pages and notes in a real browser: written by keys, saved block by block, kept when two write."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.patience import eventually
from tests.support.person import Person, axis, sign_in, tab_to, violations

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


async def new_note(person: Person, *blocks: dict[str, Any]) -> str:
    """The id of the surface of a new page."""
    body = {"workspaceId": str(person.space.id), "kind": "page", "title": "Plan"}
    made = await person.call("POST", "/v1/items", {**body, "content": {"blocks": list(blocks)}})
    return str(made["item"]["targetId"])


def words(text: str, kind: str = "paragraph", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "content": {"text": text}, **more}


async def opened(page: Page, person: Person, surface_id: str, **user: Any) -> None:
    await sign_in(page, person.server, person.space, **user)
    await page.open(f"{person.server.url}/surfaces/{surface_id}")
    await page.until("document.getElementById('note-body').dataset.ready === 'true'")


def told(block: dict[str, Any]) -> Any:
    content = block["content"]
    text = "".join(span["text"] for span in content.get("text", []))
    own = [block["kind"], text] if "text" in content else [block["kind"]]
    return [*own, *([[told(one) for one in block["children"]]] if block["children"] else [])]


async def stored(person: Person, surface_id: str) -> list[Any]:
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    return [told(block) for block in surface["blocks"]]


async def until_stored(person: Person, surface_id: str, expected: list[Any]) -> None:
    seen: list[Any] = []

    async def is_stored() -> bool:
        seen[:] = await stored(person, surface_id)
        return seen == expected

    try:
        await eventually(is_stored, "the blocks")
    finally:
        assert seen == expected


async def write(page: Page, text: str) -> None:
    """Type signs one after another, as keys do; `\\n` is Enter."""
    for sign in text:
        if sign == "\n":
            await page.press("Enter")
        else:
            await page.send("Input.insertText", text=sign)


async def test_a_page_is_written_by_keys_alone(page: Page, person: Person, screens: Path) -> None:
    surface_id = await new_note(person)
    await opened(page, person, surface_id)
    await tab_to(page, ".note-more")
    await page.press("Enter")
    await page.until("document.activeElement.matches('[data-text]')")
    await write(page, "# Launch\nWe ship **soon** and `fast`.\n- one\ntwo")
    await page.press("Tab")
    await write(page, "\n\n\n[] call Ada\n\n> said\n")
    await write(page, "/numb")
    await page.until("document.querySelector('#note-menu') !== null")
    await page.screenshot(screens / "note-menu.png")
    await page.press("Enter")
    await write(page, "first\nsecond\n\n---")
    await until_stored(
        person,
        surface_id,
        [
            ["heading_1", "Launch"],
            ["paragraph", "We ship soon and fast."],
            ["bulleted_list_item", "one", [["bulleted_list_item", "two"]]],
            ["to_do", "call Ada"],
            ["quote", "said"],
            ["numbered_list_item", "first"],
            ["numbered_list_item", "second"],
            ["divider"],
            ["paragraph", ""],
        ],
    )
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    assert surface["blocks"][1]["content"]["text"] == [
        {"text": "We ship "},
        {"text": "soon", "marks": ["bold"]},
        {"text": " and "},
        {"text": "fast", "marks": ["code"]},
        {"text": "."},
    ]
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"note-{'dark' if dark else 'light'}.png")
        assert await violations(page) == []
    await page.show(width=390, height=800)
    await page.screenshot(screens / "note-narrow.png")
    assert await axis(page) <= 0


async def place_caret(page: Page, block: int, at: int) -> None:
    """Put the caret into the text of a block, counted from the top."""
    await page.evaluate(
        f"(() => {{ const one = document.querySelectorAll('[data-text]')[{block}]; one.focus();"
        f" getSelection().collapse(one.firstChild ?? one, {at}); }})()"
    )


async def paste(page: Page, **data: str) -> None:
    """Paste texts by their media types, into the element with the focus."""
    await page.evaluate(
        "(() => { const data = new DataTransfer();"
        f" for (const [type, text] of Object.entries({json.dumps(data)}))"
        " data.setData(`text/${type}`, text);"
        " document.activeElement.dispatchEvent(new ClipboardEvent('paste',"
        " { clipboardData: data, bubbles: true, cancelable: true })); })()"
    )


async def undo(page: Page, key: str = "z") -> None:
    await page.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
        f" {{ key: '{key}', ctrlKey: true, bubbles: true, cancelable: true }}))"
    )


HOSTILE = """<html><head><style>p { display: none }</style><script>window.hacked = 1</script></head>
<body onload="window.hacked = 2"><h2 onclick="window.hacked = 3">Title</h2>
<p style="position:fixed">Some <b>bold</b> and <a href="javascript:window.hacked=4">a link</a>,
<a href="https://example.com/a">another</a>.<img src="x" onerror="window.hacked = 5"></p>
<iframe src="javascript:window.top.hacked=6"></iframe><svg onload="window.hacked=7"></svg>
<ul><li>one<ul><li>inner</li></ul></li><li><input type="checkbox" checked>done</li></ul>
<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>
<pre>let x = 1;
</pre><blockquote><p>said</p></blockquote><template><p>hidden</p></template></body></html>"""


async def test_hostile_html_is_pasted_as_clean_blocks(page: Page, person: Person) -> None:
    surface_id = await new_note(person, words("before after"))
    await opened(page, person, surface_id)
    await place_caret(page, 0, 7)
    await paste(page, html=HOSTILE, plain="Title")
    expected = [
        ["paragraph", "before "],
        ["heading_2", "Title"],
        ["paragraph", "Some bold and a link, another."],
        ["bulleted_list_item", "one", [["bulleted_list_item", "inner"]]],
        ["to_do", "done"],
        ["table"],
        ["code"],
        ["quote", "said"],
        ["paragraph", "after"],
    ]
    await until_stored(person, surface_id, expected)
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    assert [span.get("link") for span in surface["blocks"][2]["content"]["text"]] == [
        *(None, None, None, "https://example.com/a", None)
    ]
    assert surface["blocks"][5]["content"]["rows"] == [
        [[{"text": "A"}], [{"text": "B"}]],
        [[{"text": "1"}], []],
    ]
    assert await page.evaluate("window.hacked ?? null") is None
    inside = "document.querySelectorAll('#note-body :is(script, iframe, svg, style)').length"
    assert await page.evaluate(inside) == 0
    await undo(page)
    await until_stored(person, surface_id, [["paragraph", "before after"]])
    await undo(page, "y")
    await until_stored(person, surface_id, expected)


async def test_two_people_in_one_block_keep_both_texts(
    page: Page, person: Person, screens: Path
) -> None:
    surface_id = await new_note(person, words("Hello"), words("Other"))
    await opened(page, person, surface_id)
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    first, second = [f"/v1/surfaces/{surface_id}/blocks/{one['id']}" for one in surface["blocks"]]
    # Someone else writes in another block: this one is saved all the same.
    await person.call("PATCH", second, {"content": {"text": "Theirs"}})
    await place_caret(page, 0, 5)
    await write(page, "!")
    await until_stored(person, surface_id, [["paragraph", "Hello!"], ["paragraph", "Theirs"]])
    await page.until("document.querySelectorAll('[data-text]')[1].innerText === 'Theirs'")
    # Both write in one block, which this page has not seen yet.
    await person.call("PATCH", first, {"content": {"text": "Bye"}})
    await write(page, " Mine")
    both = [["paragraph", "Bye"], ["paragraph", "Hello! Mine"], ["paragraph", "Theirs"]]
    await until_stored(person, surface_id, both)
    await page.until("document.querySelector('.note-conflict').innerText.includes('Both versions')")
    await write(page, ".")
    both[1] = ["paragraph", "Hello! Mine."]
    await until_stored(person, surface_id, both)
    await page.screenshot(screens / "note-conflict.png")
    assert await violations(page) == []
    await page.evaluate("document.querySelectorAll('.note-conflict button')[1].click()")
    await until_stored(person, surface_id, both[1:])
    # Someone else deletes a block that is being written.
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    await person.call("DELETE", f"/v1/surfaces/{surface_id}/blocks/{surface['blocks'][1]['id']}")
    await place_caret(page, 1, 6)
    await write(page, "?")
    await until_stored(person, surface_id, [both[1], ["paragraph", "Theirs?"]])
    page.problems[:] = [one for one in page.problems if "409" not in one and "404" not in one]


async def test_viewers_read_and_pages_read_without_scripts(page: Page, person: Person) -> None:
    item = {"kind": "table", "content": {"rows": [["a", "b"]]}}
    surface_id = await new_note(
        person, words("Read me", "heading_1"), words("Point", "bulleted_list_item"), item
    )
    viewer, _ = await person.space.member(Role.VIEWER)
    await opened(page, person, surface_id, user_id=viewer)
    await page.until("document.querySelector('#note-body [role=heading]').innerText === 'Read me'")
    editable = "document.querySelectorAll('main [contenteditable=true], .grip, .note-more').length"
    assert await page.evaluate(editable) == 0
    assert await violations(page) == []
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await page.send("Page.reload")
    tree = {"heading": False}

    async def is_read() -> bool:
        answer = await page.send("Accessibility.getFullAXTree")
        names = [str(node.get("name", {}).get("value")) for node in answer["nodes"]]
        tree["heading"] = {"Read me", "Point", "a"} <= set(names)
        return tree["heading"]

    await eventually(is_read, "the page without scripts")
    await page.send("Emulation.setScriptExecutionDisabled", value=False)


async def choose_block(page: Page, query: str) -> None:
    """Write `/` with a part of a name, and take the first entry of the menu."""
    await write(page, f"/{query}")
    await page.until("document.querySelector('#note-menu') !== null")
    await page.press("Enter")


async def submit(page: Page, **values: str) -> None:
    """Fill in the dialog, and send it."""
    await page.until("document.querySelector('#note-dialog[open] form') !== null")
    await page.evaluate(
        "(() => { const form = document.querySelector('#note-dialog form');"
        f" for (const [name, value] of Object.entries({json.dumps(values)}))"
        " form.elements[name].value = value; form.requestSubmit(); })()"
    )
    await page.until("document.querySelector('#note-dialog[open] form') === null")


async def stock(person: Person) -> str:
    """The id of a database of two records."""
    database = await person.call("POST", f"{person.space.path}/databases", {"label": "Stock"})
    for title in ("Tea", "Milk"):
        await person.call("POST", f"/v1/databases/{database['id']}/records", {"title": title})
    return str(database["id"])


async def test_parts_of_a_page_are_chosen_from_the_menu(
    page: Page, person: Person, screens: Path
) -> None:
    database_id = await stock(person)
    surface_id = await new_note(person, words(""))
    await opened(page, person, surface_id)
    await place_caret(page, 0, 0)
    await choose_block(page, "table")
    await page.until("document.activeElement.matches('[data-cell=\"0,0\"]')")
    await write(page, "Name")
    await page.press("Tab")
    await page.until("document.activeElement.matches('[data-cell=\"0,1\"]')")
    await write(page, "Price")
    await page.click(".note-more")
    await page.until("document.activeElement.matches('[data-text]')")
    await write(page, "Ask @tod")
    await page.until("document.querySelector('#note-menu') !== null")
    await page.press("Enter")
    await page.until("document.querySelector('.mention') !== null")
    await write(page, "please\n")
    await choose_block(page, "web page")
    await submit(page, url="https://example.com/a", title="Example")
    await page.click(".note-more")
    await page.until("document.activeElement.matches('[data-text]')")
    await choose_block(page, "database view")
    await submit(page, databaseId=database_id)
    await page.until("document.querySelector('#note-dialog select[name=viewId]') !== null")
    await submit(page, viewId="")
    await page.until("document.querySelectorAll('.note-view tbody tr').length === 2")
    await page.screenshot(screens / "note-parts.png")
    assert await violations(page) == []
    expected = [["table"], ["paragraph", ANY], ["bookmark"], ["database_view"]]
    await until_stored(person, surface_id, expected)
    surface = await person.call("GET", f"/v1/surfaces/{surface_id}")
    assert surface["blocks"][0]["content"]["rows"][0] == [
        [{"text": "Name"}],
        [{"text": "Price"}],
        [],
    ]
    spans = surface["blocks"][1]["content"]["text"]
    assert [list(span.get("mention", {})) for span in spans] == [[], ["date"], []]
    await page.show(dark=True)
    await page.screenshot(screens / "note-parts-dark.png")
