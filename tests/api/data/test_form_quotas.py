"""Limits of public forms: they hold whichever process takes a submission."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from sqlalchemy import func, select, update

from api.kernel.limits import RateLimits
from models.core.base import Id
from models.data.forms.commands import (
    Quota,
    Submitter,
    TooManySubmissionsError,
    check_quotas,
    take_quotas,
)
from models.data.forms.queries import form_quota, purge_quotas
from models.data.records.tables import record
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor

Renew = Callable[[], None]
FIELDS = [{"label": "Age", "kind": "number", "settings": {"min": 18}}]
GOOD, WRONG = {"data": {"title": "Ada", "age": 36}}, {"data": {"title": "Ada", "age": 3}}


@pytest.fixture
async def asked(client: Client, space: Space) -> Any:
    """A public form of a database."""
    body = {"label": "Answers", "fields": FIELDS}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    form = {"label": "Ask", "databaseId": database["id"], "public": True}
    return read(await client.post(f"{space.path}/forms", json=form), 201)


@pytest_asyncio.fixture
async def public(client: Client) -> AsyncIterator[Client]:
    async with client.with_token(None) as anybody:
        yield anybody


@pytest.fixture
def another_process(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Renew:
    """Give the next request to a process that has counted nothing yet: three of an address."""
    few = settings.model_copy(
        update={
            "rate_limit_form": 6,
            "rate_limit_form_burst": 5,
            "rate_limit_form_address": 2,
            "rate_limit_form_address_burst": 3,
        }
    )
    monkeypatch.setattr(app.state.services, "settings", few)

    def renew() -> None:
        monkeypatch.setattr(app.state.services, "limits", RateLimits(few))

    renew()
    return renew


async def _submit(public: Client, asked: Any, body: Any = GOOD, **headers: str) -> Any:
    path = f"/v1/forms/{asked['itemId']}/submissions"
    return await public.post(path, json=body, headers=headers)


async def _count(space: Space, table: Any) -> int:
    async with space.database.reading() as work:
        statement = select(func.count()).where(table.c.workspace_id == space.id)
        return int(await work.scalar(statement) or 0)


async def test_processes_count_together(
    public: Client, space: Space, asked: Any, another_process: Renew
) -> None:
    statuses = []
    for _ in range(5):
        another_process()
        answer = await _submit(public, asked)
        statuses.append(answer.status_code)
    assert statuses == [201, 201, 201, 429, 429]
    assert answer.json()["_tag"] == "ApiRateLimited"
    assert 0 < int(answer.headers["Retry-After"]) <= 30
    assert answer.headers["X-RateLimit-Limit"] == "3"
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert (await _count(space, record), await _count(space, form_quota)) == (3, 2)


async def test_submissions_at_once_are_let_through_as_far_as_the_limit(
    public: Client, space: Space, asked: Any, another_process: Renew
) -> None:
    async def one() -> int:
        another_process()
        return int((await _submit(public, asked)).status_code)

    statuses = await asyncio.gather(*(one() for _ in range(8)))
    assert sorted(statuses) == [201] * 3 + [429] * 5
    assert await _count(space, record) == 3


async def test_an_invalid_submission_is_not_counted(
    public: Client, space: Space, asked: Any, another_process: Renew
) -> None:
    for _ in range(4):
        another_process()
        assert (await _submit(public, asked, WRONG)).status_code == 400
    assert await _count(space, form_quota) == 0


async def test_a_submission_that_is_sent_again_is_answered_beyond_the_limit(
    public: Client, asked: Any, another_process: Renew
) -> None:
    first = await _submit(public, asked, **{"Idempotency-Key": "mine"})
    for _ in range(3):
        another_process()
        last = await _submit(public, asked)
    assert last.status_code == 429
    again = await _submit(public, asked, **{"Idempotency-Key": "mine"})
    assert (again.status_code, again.json()) == (201, first.json())


async def test_the_page_of_a_form_counts_as_its_operation_does(
    app: FastAPI, public: Client, asked: Any, another_process: Renew
) -> None:
    for _ in range(3):
        another_process()
        assert (await _submit(public, asked)).status_code == 201
    another_process()
    async with Visitor(app) as visitor:
        answers = {"field.title": "Ada", "field.age": "36"}
        page = await visitor.post(f"/forms/{asked['itemId']}", data=answers)
    assert (page.status_code, "Too many submissions" in page.text) == (429, True)


async def test_a_limit_fills_up_again(space: Space, asked: Any) -> None:
    submitter = Submitter(b"here", Quota.of(2, 2), Quota.of(0, 1))
    form_id = Id(asked["id"])

    async def take() -> bool:
        try:
            async with space.database.transaction() as work:
                await check_quotas(work, form_id, submitter)
                await take_quotas(work, space.id, form_id, submitter)
        except TooManySubmissionsError:
            return False
        return True

    async def later(seconds: int) -> None:
        async with space.database.transaction() as work:
            earlier = form_quota.c.full_at - timedelta(seconds=seconds)
            own = update(form_quota).where(form_quota.c.workspace_id == space.id)
            await work.execute(own.values(full_at=earlier))

    assert [await take() for _ in range(4)] == [True, True, False, False]
    await later(31)
    assert [await take() for _ in range(2)] == [True, False]
    await later(600)
    assert [await take() for _ in range(3)] == [True, True, False]
    await later(600)
    async with space.database.transaction() as work:
        await purge_quotas(work)
    assert await _count(space, form_quota) == 0


@pytest.mark.parametrize("which", ["by_address", "by_form"])
async def test_other_addresses_and_forms_have_limits_of_their_own(
    space: Space, asked: Any, which: str
) -> None:
    quotas = {"by_address": Quota.of(0, 1), "by_form": Quota.of(0, 1), which: Quota.of(1, 1)}
    form_id = Id(asked["id"])
    taken = []
    for address in (b"here", b"there"):
        try:
            async with space.database.transaction() as work:
                await take_quotas(work, space.id, form_id, Submitter(address, **quotas))
            taken.append(True)
        except TooManySubmissionsError:
            taken.append(False)
    assert taken == [True, which == "by_address"]
