"""The pages for administrators of the platform."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest_asyncio
from fastapi import FastAPI

from models.people.experiments.commands import create_experiment
from models.people.users import make_platform_admin
from tests.support.client import Client
from tests.support.settings_pages import (
    HOSTILE,
    a_draft,
    assert_inert,
    posted,
    sent,
    settings_of,
)
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

SECTIONS = ("system", "experiments", "release-notices")


@pytest_asyncio.fixture
async def administrator(app: FastAPI, space: Space) -> AsyncIterator[Visitor]:
    """The owner of `space`, who administers the platform too."""
    async with space.database.transaction() as work:
        await make_platform_admin(work, space.user_id)
    async with await signed_in(app, space) as visitor:
        yield visitor


async def test_owners_see_nothing_of_the_platform(owner: Visitor, space: Space) -> None:
    menu = (await owner.get(settings_of(space))).text
    for section in SECTIONS:
        path = settings_of(space, section)
        assert path not in menu
        assert (await owner.get(path)).status_code == 403
    answer = await posted(
        owner, settings_of(space), settings_of(space, "release-notices"), {"title": "x"}
    )
    assert answer.status_code == 403


async def test_an_administrator_of_another_workspace_is_no_member(
    administrator: Visitor, foreign: Space
) -> None:
    for section in SECTIONS:
        assert (await administrator.get(settings_of(foreign, section))).status_code == 404


async def test_the_state_of_the_platform(administrator: Visitor, space: Space) -> None:
    shown = await administrator.get(settings_of(space, "system"))
    assert shown.status_code == 200
    for words in ("Outbox lag", "io-overflow", "Workers"):
        assert words in shown.text
    part = await administrator.get(
        settings_of(space, "system"), headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    assert part.text.strip().startswith('<div id="live"')
    assert "Outbox lag" in part.text
    menu = (await administrator.get(settings_of(space))).text
    assert all(settings_of(space, section) in menu for section in SECTIONS)


async def test_an_experiment_and_its_results(administrator: Visitor, space: Space) -> None:
    flag = f"flag_{uuid4().hex}"
    async with space.database.transaction() as work:
        made = await create_experiment(work, space.actor.principal, uuid4(), a_draft(HOSTILE, flag))
    page = settings_of(space, "experiments")
    here = settings_of(space, "experiments", made.id)
    assert_inert(await administrator.get(page))
    shown = await administrator.get(here)
    assert_inert(shown)
    assert flag in shown.text
    for status in ("scheduled", "running", "paused"):
        target = await sent(administrator, here, f"{here}/status", status=status)
        assert target == f"{here}?notice=saved"
    answer = await posted(administrator, here, f"{here}/status", {"status": "draft"})
    assert answer.status_code in {400, 409}
    assert 'role="alert"' in answer.text
    await sent(administrator, here, f"{here}/status", status="completed", winner="short")
    assert "winner" in (await administrator.get(here)).text
    unknown = settings_of(space, "experiments", uuid4())
    assert (await administrator.get(unknown)).status_code == 404


async def test_a_release_notice_is_published(
    administrator: Visitor, space: Space, client: Client
) -> None:
    page, title = settings_of(space, "release-notices"), f"Timers {uuid4().hex}"
    fields = {"channel": "web", "title": title, "body": HOSTILE}
    wrong = await posted(administrator, page, page, {**fields, "url": "javascript:alert(1)"})
    assert wrong.status_code == 400
    assert f'value="{title}"' in wrong.text
    assert 'href="javascript' not in wrong.text
    target = await sent(administrator, page, page, **fields, url="https://example.test/news")
    assert target == f"{page}?notice=added"
    assert_inert(await administrator.get(page))
    assert title in (await administrator.get(page, params={"channel": "web"})).text
    assert title not in (await administrator.get(page, params={"channel": "mobile"})).text
    news = await client.get("/v1/me/whats-new/state/web")
    assert title in [one["title"] for one in news.json()["data"]["releases"]]
