"""Answers that a job gives: after the commit, once per key, and freed by a refusal (ADR 0007)."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import select

from models.core.base import Id
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import close_job, hold_job, job
from runtime import errors
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.spaces import Space


async def jobs(space: Space) -> list[Id]:
    async with space.database.transaction() as work:
        mine = select(job.c.id).where(job.c.workspace_id == space.id).order_by(job.c.id)
        return [row.id for row in await work.rows(mine)]


async def end(space: Space, status: JobStatus) -> Id:
    """End the newest job as a worker would."""
    job_id = (await jobs(space))[-1]
    async with space.database.transaction() as work:
        await hold_job(work, job_id)
        assert await close_job(work, job_id, status)
    return job_id


async def accepted(space: Space, count: int) -> None:
    async def there() -> bool:
        return len(await jobs(space)) == count

    await eventually(there, what=f"{count} jobs")


def asked(probes: Client, space: Space, **options: Any) -> "asyncio.Task[httpx2.Response]":
    body = options.pop("body", {})
    return asyncio.create_task(probes.post(f"{space.path}/errands", json=body, **options))


async def test_the_answer_comes_when_the_job_has_ended(probes: Client, space: Space) -> None:
    waiting = asked(probes, space)
    await accepted(space, 1)
    assert not waiting.done()
    job_id = await end(space, JobStatus.SUCCEEDED)
    answer = await waiting
    assert (answer.status_code, answer.json()) == (200, {"data": {"value": str(job_id)}})


async def test_one_key_is_one_job_and_one_answer(probes: Client, space: Space) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    first = asked(probes, space, headers=headers)
    await accepted(space, 1)
    others = [asked(probes, space, headers=headers) for _ in range(5)]
    await asyncio.sleep(0.2)
    await end(space, JobStatus.SUCCEEDED)
    answers = [await one for one in [first, *others]]
    bodies = {one.content for one in answers if one.is_success}
    assert len(bodies) == 1
    # A request during the transaction of another is asked to try again.
    refused = [one.json()["error"] for one in answers if not one.is_success]
    assert set(refused) <= {"in_progress"}
    replayed = await asked(probes, space, headers=headers)
    assert replayed.headers["idempotency-replayed"] == "true"
    assert {replayed.content} == bodies
    assert len(await jobs(space)) == 1


async def test_a_key_is_for_one_request_while_its_job_runs(probes: Client, space: Space) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    hurried = await asked(probes, space, headers=headers, body={"text": "hurry"})
    assert (hurried.status_code, hurried.json()["error"]) == (409, "in_progress")
    assert hurried.headers["retry-after"] == "2"
    other = await asked(probes, space, headers=headers, body={"text": "slowly"})
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    job_id = await end(space, JobStatus.SUCCEEDED)
    again = await asked(probes, space, headers=headers, body={"text": "hurry"})
    assert (again.status_code, again.json()["data"]["value"]) == (200, str(job_id))


async def test_a_refusal_after_the_commit_is_the_answer(probes: Client, space: Space) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    first = asked(probes, space, headers=headers)
    await accepted(space, 1)
    await end(space, JobStatus.FAILED)
    refused = await first
    assert refused.status_code == 409
    again = await asked(probes, space, headers=headers)
    assert again.headers["idempotency-replayed"] == "true"
    assert (again.status_code, again.content) == (409, refused.content)
    assert len(await jobs(space)) == 1


async def test_a_failure_of_ours_after_the_commit_frees_the_key(
    probes: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    first = asked(probes, space, headers=headers)
    await accepted(space, 1)
    monkeypatch.setattr(errors, "ConflictError", errors.UpstreamError)
    await end(space, JobStatus.FAILED)
    assert (await first).status_code == 502
    second = asked(probes, space, headers=headers)
    await accepted(space, 2)
    await end(space, JobStatus.SUCCEEDED)
    assert (await second).status_code == 200
