"""What a workspace may have open at once, and the refusal of what is over it."""

import asyncio

import pytest
from sqlalchemy import func, select

from models.messages.jobs.tables import job
from runtime.families import Family
from tests.support.client import Client
from tests.support.related import make_database
from tests.support.spaces import Space


async def test_no_more_than_the_bound_is_open_however_many_ask_at_once(
    client: Client, space: Space, foreign: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.core.work_bounds.OPEN", {Family.EXPORT: 3})
    export = f"/v1/databases/{await make_database(client, space, 'Mine')}/export"
    answers = await asyncio.gather(*(client.post(export, json={"format": "csv"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["Retry-After"] == "10"
    assert refused.json()["_tag"] == "ApiRateLimited"
    assert "3 of this kind (export) are open" in refused.json()["message"]
    async with space.database.reading() as work:
        of_space = select(func.count()).where(job.c.workspace_id == space.id)
        assert await work.scalar(of_space) == 3
    others = client.with_token(foreign.token)
    theirs = f"/v1/databases/{await make_database(others, foreign, 'Theirs')}/export"
    assert (await others.post(theirs, json={"format": "csv"})).status_code == 200
