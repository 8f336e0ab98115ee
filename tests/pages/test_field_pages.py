"""A database is made with its fields by mouse, in a real browser: no call of the API, no JSON."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.person import Person, quoted, sign_in
from tests.support.server import Server
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=25), pytest.mark.long]

HOSTILE = "<img src=x onerror=alert(1)>"
SAVE = "#live .buttons .primary"


async def choose(page: Page, selector: str, value: str) -> None:
    """As a browser does when an entry of a list is chosen."""
    await page.evaluate(
        f"(() => {{ const one = document.querySelector({quoted(selector)}); one.value ="
        f" {quoted(value)}; one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    )


async def begin(page: Page, kind: str, label: str) -> None:
    """Press New field, name it, and choose its kind, whose part of the form is then there."""
    await page.until("document.querySelector('.fields') !== null")
    await page.click(".head a.primary")
    await page.until("document.querySelector('#f-kind') !== null")
    await page.write("#f-label", label)
    if kind != "text":  # which a new field is
        await choose(page, "#f-kind", kind)
    await page.until(f"document.querySelector('#live').dataset.kind === {quoted(kind)}")


async def save(page: Page, label: str) -> None:
    """Press the button of the form; the list has the field then."""
    await page.click(SAVE)
    await page.until("document.querySelector('.fields') !== null")
    assert label in await page.text(".fields")


async def write(page: Page, name: str, text: str) -> None:
    selector = f"#live [name='{name}']"
    await page.evaluate(f"document.querySelector({quoted(selector)}).value = ''")
    await page.write(selector, text)


async def new_database(page: Page, person: Person) -> None:
    """Make an empty database, and look at its fields."""
    await page.open(f"{person.home}/databases/new")
    await page.write("#f-label", "Goods")
    await page.click("form.choose .primary")
    await page.until("document.querySelector('a[href$=\"/fields\"]') !== null")
    await page.click(".more-actions summary")
    await page.click("a[href$='/fields']")


async def make_fields(page: Page) -> None:
    """Five fields, one after the other."""
    await begin(page, "currency", "Price")
    await write(page, "settings.currencyCode", "EUR")
    await write(page, "settings.min", "0")
    await save(page, "EUR")
    await begin(page, "select", "State")
    await write(page, "options.0.name", "Open")
    await write(page, "options.1.name", HOSTILE)
    await page.click("button[name=row][value=add]")
    await page.until("document.querySelector('#live [name=\"options.2.name\"]') !== null")
    await page.until("document.activeElement.name === 'options.2.name'")
    await write(page, "options.2.name", "Shut")
    await choose(page, "#live [name='options.2.color']", "green")
    await save(page, "Shut")
    await begin(page, "date", "Due")
    await save(page, "Due")
    await begin(page, "text", "Weight")
    await page.click("#live [name=required]")
    await save(page, "Required")
    await begin(page, "formula", "Double")
    await write(page, "settings.expression", "record.price * 2.0")
    await save(page, "record.price * 2.0")


async def edit_state(page: Page) -> None:
    """Rename an option, remove one, and put another first."""
    await page.click("a[aria-label='Edit State']")
    await page.until("document.querySelector('#live [name=\"options.1.key\"]') !== null")
    await write(page, "options.0.name", "To sell")
    await page.click("button[name=row][value='remove.1']")
    await page.until("document.querySelector('#live [name=\"options.2.name\"]') === null")
    await page.click("button[name=row][value='up.1']")
    await page.until("document.querySelector('#live [name=\"options.0.name\"]').value === 'Shut'")


async def test_five_fields_are_made_and_one_is_edited(
    page: Page, server: Server, space: Space, screens: Path
) -> None:
    person = Person(server, space)
    await sign_in(page, server, space)
    await new_database(page, person)
    await make_fields(page)
    await page.screenshot(screens / "fields.png")
    await edit_state(page)
    await page.screenshot(screens / "edit-field.png")
    await save(page, "To sell")
    (made,) = (await person.call("GET", f"{space.path}/databases"))["databases"]
    kinds = [(one["key"], one["kind"]) for one in made["fields"]]
    assert kinds[1:] == [
        ("price", "currency"),
        ("state", "select"),
        ("due", "date"),
        ("weight", "text"),
        ("double", "formula"),
    ]
    options = made["fields"][2]["options"]
    assert [(one["name"], one["color"]) for one in options] == [
        ("Shut", "green"),
        ("To sell", "gray"),
    ]


SLOW = """(() => { const { fetch } = window; window.fetch = async (...call) => {
  const answer = await fetch(...call);
  await new Promise((done) => setTimeout(done, 700));
  return answer;
}; })()"""
"""Answers that take long; a page that is opened anew is as before."""


async def test_text_and_clicks_are_kept_while_a_part_is_replaced(
    page: Page, server: Server, space: Space
) -> None:
    person = Person(server, space)
    await sign_in(page, server, space)
    await new_database(page, person)
    await begin(page, "select", "State")
    await page.until("document.readyState === 'complete'")
    await page.evaluate(SLOW)
    await write(page, "options.0.name", "Open")
    await page.click("button[name=row][value=add]")
    await write(page, "options.1.name", "Shut")
    # The part is asked for once more, and the button waits for it.
    await page.click(SAVE)
    await page.until("document.querySelector('.fields') !== null")
    (made,) = (await person.call("GET", f"{space.path}/databases"))["databases"]
    assert [one["name"] for one in made["fields"][1]["options"]] == ["Open", "Shut"]


async def test_the_caret_stays_where_one_types_while_a_part_is_replaced(
    page: Page, server: Server, space: Space
) -> None:
    person = Person(server, space)
    await sign_in(page, server, space)
    await new_database(page, person)
    await begin(page, "select", "State")
    await page.until("document.readyState === 'complete'")
    await page.evaluate(SLOW)
    await page.click("button[name=row][value=add]")
    await write(page, "options.0.name", "Op")
    await page.until("document.querySelector('#live [name=\"options.2.name\"]') !== null")
    assert await page.evaluate("document.activeElement.name") == "options.0.name"
    await page.send("Input.insertText", text="en")
    value = "document.querySelector('#live [name=\"options.0.name\"]').value"
    assert await page.evaluate(value) == "Open"


async def test_a_field_is_converted_and_deleted(page: Page, server: Server, space: Space) -> None:
    person = Person(server, space)
    body = {"label": "Goods", "fields": [{"label": "Weight", "kind": "text"}]}
    made = await person.call("POST", f"{space.path}/databases", body)
    for text in ("12", "heavy"):
        row = {"data": {"weight": text}}
        await person.call("POST", f"/v1/databases/{made['id']}/records", row)
    await sign_in(page, server, space)
    await page.open(f"{server.url}/databases/{made['id']}/fields")
    await page.click("a[aria-label='Edit Weight']")
    await page.until("document.querySelector('a[href$=\"/convert\"]') !== null")
    await page.click("a[href$='/convert']")
    # The list is there before the script that follows it.
    await page.until("document.querySelector('#kind[data-htmx-powered]') !== null")
    await choose(page, "#kind", "number")
    await page.until("document.querySelector('#live').innerText.includes('1 of 2 values')")
    assert "heavy" in await page.text("#live")
    await page.click("#live button.primary")
    await page.until("document.querySelector('#live').innerText.includes('1 values converted')")
    await page.click("#live a.button")
    await page.until("document.querySelector('.fields') !== null")
    await page.click("button[commandfor^=delete-]")
    await page.until("document.querySelector('dialog[open] .danger') !== null")
    await page.click("dialog[open] button.danger")
    await page.until("document.querySelector('.notice') !== null")
    assert "Weight" not in await page.text(".fields")
