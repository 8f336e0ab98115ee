"""Comments on the record beside the table, with mentions, by mouse and by keys."""

from pathlib import Path

import pytest

from models.core.access.rules import Role
from tests.support.browser import Page
from tests.support.grid import CONTROL, Table, table_of
from tests.support.person import Json, violations
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]

ROWS: list[Json] = [{"title": f"Item {at}"} for at in range(3)]
HOSTILE = "<img src=x onerror=alert(1)> "
BOX = ".beside form.say textarea"


@pytest.fixture
async def table(page: Page, server: Server, space: Space) -> Table:
    return await table_of(page, server, space, [{"label": "Price", "kind": "number"}], ROWS)


async def beside(table: Table, row: int) -> None:
    await table.choose(row, "title")
    await table.key(" ")
    await table.page.until(f"document.querySelector({BOX!r}) !== null")


async def begin(table: Table, text: str) -> None:
    await table.page.evaluate(f"document.querySelector({BOX!r}).focus()")
    await table.type(text)


async def comments(table: Table, row: int) -> list[Json]:
    path = f"/v1/records/{table.ids[row]}/comments"
    listed: list[Json] = (await table.person.call("GET", path))["comments"]
    return listed


async def test_a_member_is_mentioned_in_a_comment(
    table: Table, space: Space, screens: Path
) -> None:
    member, _ = await space.member(Role.COMMENTER)
    await table.open()
    page = table.page
    await beside(table, 1)
    members = await table.person.call("GET", f"{space.path}/members")
    found = next(one for one in members["members"] if one["userId"] == str(member))
    name, email = found["name"], found["email"]
    await begin(table, f"{HOSTILE}@{name[:3]}")
    await page.until("document.querySelector('.mention-hits li') !== null")
    await page.screenshot(screens / "mention.png")
    assert await violations(page) == []
    # Members of one name differ by their addresses.
    hits = "[...document.querySelectorAll('.mention-hits .quiet')].map(one => one.innerText.trim())"
    for _ in range((await page.evaluate(hits)).index(email)):
        await table.key("ArrowDown")
    await table.key("Enter")
    await page.until(f"document.querySelector({BOX!r}).value.endsWith('@{name} ')")
    await page.click(".beside form.say button")
    await page.until("document.querySelector('.beside .thread .mention') !== null")
    assert await page.text(".beside .thread .mention") == f"@{name}"
    assert await page.evaluate("document.querySelector('.beside .thread img') === null")
    (said,) = await comments(table, 1)
    assert (said["body"], said["mentions"]) == (f"{HOSTILE}@{name}", [str(member)])
    assert await page.evaluate(f"document.querySelector({BOX!r}).value") == ""


async def test_a_comment_that_is_begun_stays_with_its_record(table: Table) -> None:
    await table.open()
    page = table.page
    await beside(table, 0)
    await begin(table, "Half a")
    # The record is read anew, and the words stay.
    path = f"/v1/records/{table.ids[0]}"
    await table.person.call("PATCH", path, {"data": {"price": 5}})
    await page.until("document.querySelector('.beside .properties').innerText.includes('5')")
    assert await page.evaluate(f"document.activeElement === document.querySelector({BOX!r})")
    await table.key("ArrowDown", 1)
    await page.until("document.querySelector('.beside h2').innerText === 'Item 1'")
    await page.until(f"document.querySelector({BOX!r}).value === ''")
    await page.click("[aria-label='Previous record']")
    await page.until(f"document.querySelector({BOX!r})?.value === 'Half a'")
    await begin(table, " sentence")
    await table.key("Enter", 2)
    await page.until("document.querySelector('.beside .words').innerText === 'Half a sentence'")
    assert [one["body"] for one in await comments(table, 0)] == ["Half a sentence"]


async def test_a_viewer_has_no_form_for_comments(table: Table, space: Space) -> None:
    await table.person.call("POST", f"/v1/records/{table.ids[0]}/comments", {"body": "Seen"})
    viewer, _ = await space.member(Role.VIEWER)
    await table.open(user_id=viewer)
    await table.choose(0, "title")
    await table.key(" ")
    await table.page.until("document.querySelector('.beside .words').innerText === 'Seen'")
    assert await table.page.evaluate("document.querySelector('.beside form') === null")


async def test_a_commenter_comments_and_edits_nothing(table: Table, space: Space) -> None:
    commenter, _ = await space.member(Role.COMMENTER)
    await table.open(user_id=commenter)
    await beside(table, 0)
    await begin(table, "Mine")
    await table.page.click(".beside form.say button")
    await table.page.until("document.querySelector('.beside .words').innerText === 'Mine'")
    assert await table.page.evaluate("document.querySelector('.new-field') === null")


HELD = (
    "(() => { const ask = window.fetch; const open = new Promise(done => { window.letGo = done; });"
    " window.fetch = async (path, how) => { const answer = await ask(path, how);"
    " if (path.endsWith('/comments')) { window.isHeld = true; await open; } return answer; }; })()"
)


async def test_a_text_typed_while_a_comment_is_sent_is_the_next_one(table: Table) -> None:
    await table.open()
    page = table.page
    await beside(table, 1)
    await page.evaluate(HELD)
    await begin(table, "First")
    await table.key("Enter", CONTROL)
    await page.until("window.isHeld")
    await table.type(" and more")
    await page.evaluate("letGo()")
    await page.until(f"document.querySelector({BOX!r}).value === 'and more'")
    await table.key("Enter", CONTROL)
    await page.until(f"document.querySelector({BOX!r}).value === ''")
    assert {one["body"] for one in await comments(table, 1)} == {"First", "and more"}
