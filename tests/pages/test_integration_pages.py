"""Integrations in a real browser: connected, tested, browsed, read, imported, mounted."""

from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.person import Person, axis, sign_in
from tests.support.server import Server

pytestmark = pytest.mark.takes(seconds=30)


async def shown(page: Page, screens: Path, name: str) -> None:
    """Pictures of a page, wide and narrow; it is never wider than its window."""
    for dark in (False, True):
        await page.show(dark=dark)
        await page.screenshot(screens / f"integrations-{name}-{'dark' if dark else 'light'}.png")
    await page.show(width=360, height=780)
    await page.screenshot(screens / f"integrations-{name}-360.png")
    assert await axis(page) <= 0, name
    await page.show()


async def connect(page: Page, person: Person) -> None:
    """Open the page of a connection that a person makes by the form."""
    await page.open(f"{person.home}/integrations")
    await page.click("a[href$='new?provider=demo']")
    await page.until("document.querySelector('#f-label') !== null")
    await page.click("form.connect button[type=submit]")
    await page.until("document.querySelector('form[action$=\"/test\"]') !== null")


@pytest.mark.long
async def test_a_connection_is_made_and_tested(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await sign_in(page, server, person.space)
    await page.open(f"{person.home}/integrations")
    await shown(page, screens, "empty")
    await page.open(f"{person.home}/integrations/new?provider=s3")
    await shown(page, screens, "form")
    await connect(page, person)
    await page.click("form[action$='/test'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")
    assert "working" in await page.text("#live")
    await shown(page, screens, "connection")
    await page.open(f"{person.home}/integrations")
    await shown(page, screens, "list")


@pytest.mark.long
async def test_a_person_looks_through_a_provider_and_brings_things_in(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await sign_in(page, server, person.space)
    await connect(page, person)
    await page.click("form[action$='/browse'] button")
    await page.until("document.querySelector('#live tbody tr') !== null")
    await shown(page, screens, "browse")
    await page.click("#live .as-link")
    await page.until("document.querySelector('h1')?.innerText === 'handbook'")
    await page.until("document.querySelector('#live form[action$=\"/read\"]') !== null")
    await page.click("#live form[action$='/read'] button")
    await page.until("document.querySelector('#live .content-text') !== null")
    await shown(page, screens, "read")
    await page.click(".actions form[action$='/import'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")
    await shown(page, screens, "imported")
    await page.evaluate("history.back()")
    await page.until("document.querySelector('#live .content-text') !== null")
    await page.click(".actions form[action$='/mount'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")
    await shown(page, screens, "mounted")
    await page.open(f"{person.home}/integrations/mounts")
    await shown(page, screens, "mounts")
    await page.click("tbody a")
    await page.until("document.querySelector('form[action$=\"/sync\"]') !== null")
    await shown(page, screens, "mount")
    await page.click("form[action$='/sync'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")


@pytest.mark.long
async def test_a_form_of_a_provider_becomes_a_form(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await sign_in(page, server, person.space)
    await connect(page, person)
    await page.click("a[href$='/edit']")
    await page.until("document.querySelector('#f-label') !== null")
    await shown(page, screens, "edit")
    await page.click("form.connect button[type=submit]")
    await page.until("document.querySelector('form[action$=\"/browse\"]') !== null")
    await page.click("form[action$='/browse'] button")
    await page.until("document.querySelector('form[action$=\"/import-form\"]') !== null")
    await page.click("form[action$='/import-form'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")
    await shown(page, screens, "form-imported")


@pytest.mark.long
async def test_everything_works_without_scripts(page: Page, server: Server, person: Person) -> None:
    await sign_in(page, server, person.space)
    await page.send("Emulation.setScriptExecutionDisabled", value=True)
    await connect(page, person)
    await page.click("form[action$='/test'] button")
    await page.until("document.querySelector('#live [data-status=succeeded]') !== null")
    await page.click("form[action$='/browse'] button")
    await page.until("document.querySelector('#live tbody tr') !== null")


@pytest.mark.long
async def test_the_code_of_a_provider_does_not_stay_in_the_address(
    page: Page, server: Server, person: Person, screens: Path
) -> None:
    await sign_in(page, server, person.space)
    back = f"{server.url}/integrations/oauth/callback"
    await page.open(f"{back}?state={person.space.id}.x&code=canary-code")
    await page.until("location.search === ''")
    assert await page.evaluate("document.querySelector('[name=code]').value") == "canary-code"
    await shown(page, screens, "returned")
