"""Approvals decided by the link of a mail, and what is tried with such links (ADR 0087)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from fastapi import FastAPI

from models.automation.waits.links import (
    LINK_LIFETIME,
    DecisionLink,
    NodeAddress,
    decision_link_to,
    decision_path,
    read_decision_link,
    resume_path,
)
from models.core.access.rules import Role
from models.people.request_logs import request_log
from runtime import base64url
from runtime.clock import utc_now
from runtime.crypto import KeyRing
from tests.support.client import Client
from tests.support.items import read
from tests.support.parked import approval, run_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = '"><script>alert(1)</script>'
APPROVE = {"decision": "approved"}
FORM = [
    {"key": "amount", "label": f"Amount {HOSTILE}", "kind": "number", "required": True},
    {"key": "sure", "label": "Sure", "kind": "checkbox"},
]


@dataclass(frozen=True)
class Mailed:
    """A run whose one node asks a person, and the link that the person was sent."""

    run: str
    """The path of the run in the API."""
    link: DecisionLink
    path: str

    async def wait(self, client: Client) -> Any:
        """What the node has heard."""
        (node,) = read(await client.get(self.run))["nodeRuns"]
        return node["metadata"]["wait"]


async def mailed(client: Client, space: Space, user_id: UUID, **config: Any) -> Mailed:
    """A node that asks, and the link of the mail to this person."""
    wanted = {"title": f"Refund? {HOSTILE}", "message": f"Of 12 {HOSTILE}", **config}
    run = await run_of(client, space, approval(**wanted))
    address = NodeAddress(UUID(run.rpartition("/")[2]), "ask")
    async with space.database.reading() as work:
        link = await decision_link_to(work, space.id, address, user_id, work.now)
    return Mailed(run, link, decision_path(space.keys, link))


@pytest_asyncio.fixture
async def person(space: Space) -> UUID:
    """A guest of the workspace, who sees nothing of it but what they are asked."""
    user_id, _ = await space.member(Role.GUEST)
    return user_id


@pytest_asyncio.fixture
async def sent(client: Client, space: Space, person: UUID) -> AsyncIterator[Mailed]:
    yield await mailed(client, space, person, assignees=[str(person)])


async def test_opening_a_link_asks_and_decides_nothing(
    client: Client, nobody: Visitor, space: Space, person: UUID
) -> None:
    sent = await mailed(client, space, person, assignees=[str(person)], form=FORM)
    for _ in range(3):
        page = await nobody.get(sent.path, headers={"Sec-Fetch-Site": "cross-site"})
        assert page.status_code == 200
    assert "Refund?" in page.text
    assert "Of 12" in page.text
    assert HOSTILE not in page.text
    assert page.text.count("&#34;&gt;&lt;script&gt;") >= 3
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in page.headers
    await nobody.head(sent.path)
    await nobody.request("OPTIONS", sent.path)
    assert (await sent.wait(client))["decisions"] == []


async def test_a_decision_needs_no_session_and_begins_none(
    client: Client, nobody: Visitor, space: Space, person: UUID
) -> None:
    sent = await mailed(client, space, person, assignees=[str(person)], form=FORM)
    answers = {**APPROVE, "comment": "Fine", "answer.number.amount": "12.5"}
    answers["answer.checkbox.sure"] = "true"
    done = await nobody.post(sent.path, data=answers)
    assert (done.status_code, "Approved" in done.text) == (200, True)
    assert (nobody.cookie, "set-cookie" in done.headers) == (None, False)
    wait = await sent.wait(client)
    assert wait["resolution"] == "approved"
    (decision,) = wait["decisions"]
    assert (decision["userId"], decision["comment"]) == (str(person), "Fine")
    signed_in_page = await nobody.get("/", follow_redirects=False)
    assert signed_in_page.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("text", ["", "much", "1e999"])
async def test_a_wrong_answer_is_reported_and_the_link_stays(
    client: Client, nobody: Visitor, space: Space, person: UUID, text: str
) -> None:
    sent = await mailed(client, space, person, assignees=[str(person)], form=FORM)
    typed = {**APPROVE, "answer.number.amount": text, "comment": "So far"}
    answer = await nobody.post(sent.path, data=typed)
    assert answer.status_code == 400
    assert 'class="problem"' in answer.text
    assert "So far</textarea>" in answer.text
    assert (await sent.wait(client))["decisions"] == []
    rejected = await nobody.post(sent.path, data={"decision": "rejected"})
    assert "Rejected" in rejected.text
    assert (await sent.wait(client))["resolution"] == "rejected"


async def test_a_link_is_used_once(client: Client, nobody: Visitor, sent: Mailed) -> None:
    assert (await nobody.post(sent.path, data=APPROVE)).status_code == 200
    for again in (APPROVE, {"decision": "rejected"}):
        answer = await nobody.post(sent.path, data=again)
        assert (answer.status_code, "no longer valid" in answer.text) == (409, True)
    assert (await nobody.get(sent.path)).status_code == 409
    assert len((await sent.wait(client))["decisions"]) == 1


async def test_of_many_presses_at_once_one_counts(
    client: Client, nobody: Visitor, sent: Mailed
) -> None:
    words = ["approved", "rejected"] * 4
    answers = await asyncio.gather(
        *(nobody.post(sent.path, data={"decision": word}) for word in words)
    )
    assert {answer.status_code for answer in answers} <= {200, 409}
    wait = await sent.wait(client)
    assert len(wait["decisions"]) == 1
    assert any(answer.status_code == 200 for answer in answers)


async def test_each_of_several_people_decides_once(
    client: Client, nobody: Visitor, space: Space, person: UUID
) -> None:
    other, _ = await space.member(Role.VIEWER)
    people = [str(person), str(other)]
    sent = await mailed(client, space, person, assignees=people, required=2)
    assert (await nobody.post(sent.path, data=APPROVE)).status_code == 200
    assert (await nobody.post(sent.path, data=APPROVE)).status_code == 409
    assert "resolution" not in await sent.wait(client)
    theirs = decision_path(space.keys, replace(sent.link, user_id=other))
    assert (await nobody.post(theirs, data=APPROVE)).status_code == 200
    assert (await sent.wait(client))["resolution"] == "approved"


async def test_an_altered_link_is_none(
    client: Client, nobody: Visitor, space: Space, sent: Mailed
) -> None:
    start, _, token = sent.path.partition("decision_")
    start = f"{start}decision_"
    raw = base64url.decode(token)
    assert raw is not None
    places = [0, 31, 32, 48, 64, 80, 87, 88, len(raw) - 1]
    altered = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in places]
    altered += [raw[:-1], raw + b"x", raw[32:], raw[:88], b""]
    others = KeyRing(["another master secret, that is long enough as well"])
    foreign_key = decision_path(others, sent.link).removeprefix(start)
    # A signature of ours for another purpose: the URL that resumes the same node.
    resuming = resume_path(space.keys, sent.link.address).rpartition("/")[2]
    tokens = [*map(base64url.encode, altered), foreign_key, resuming, token + "=", "x" * 5_000]
    for wrong in tokens:
        for answer in (
            await nobody.get(f"{start}{wrong}"),
            await nobody.post(f"{start}{wrong}", data=APPROVE),
        ):
            assert answer.status_code == 404, wrong
    assert (await sent.wait(client))["decisions"] == []


async def test_a_link_is_over_at_its_end(
    client: Client, nobody: Visitor, space: Space, sent: Mailed
) -> None:
    over = replace(sent.link, expires_at=utc_now() - timedelta(seconds=1))
    path = decision_path(space.keys, over)
    assert (await nobody.get(path)).status_code == 409
    assert (await nobody.post(path, data=APPROVE)).status_code == 409
    assert (await sent.wait(client))["decisions"] == []


async def test_a_link_ends_with_the_wait_and_after_seven_days_at_most(
    client: Client, space: Space, person: UUID
) -> None:
    people = [str(person)]
    short = await mailed(client, space, person, assignees=people, timeoutSeconds=3600)
    long = await mailed(client, space, person, assignees=people, timeoutSeconds=30 * 86_400)
    now = utc_now()
    assert short.link.expires_at <= now + timedelta(hours=1)
    assert long.link.expires_at <= now + LINK_LIFETIME
    assert long.link.expires_at > short.link.expires_at
    token = short.path.rpartition("/")[2]
    kept = replace(short.link, expires_at=short.link.expires_at.replace(microsecond=0))
    assert read_decision_link(space.keys, token) == kept


async def test_a_person_who_is_not_asked_has_no_say(
    client: Client, nobody: Visitor, space: Space, foreign: Space, sent: Mailed
) -> None:
    editor, _ = await space.member(Role.EDITOR)
    links = [
        replace(sent.link, user_id=editor),
        replace(sent.link, user_id=space.user_id),
        replace(sent.link, user_id=foreign.user_id),
        replace(sent.link, workspace_id=foreign.id, user_id=foreign.user_id),
        replace(sent.link, workspace_id=foreign.id),
    ]
    for link in links:
        path = decision_path(space.keys, link)
        assert (await nobody.get(path)).status_code == 409
        assert (await nobody.post(path, data=APPROVE)).status_code == 409
    assert (await sent.wait(client))["decisions"] == []


async def test_a_member_who_left_or_lost_the_role_decides_no_more(
    client: Client, nobody: Visitor, space: Space, sent: Mailed, person: UUID
) -> None:
    await space.remove(person)
    assert (await nobody.post(sent.path, data=APPROVE)).status_code == 409
    admin, _ = await space.member(Role.ADMIN)
    by_role = await mailed(client, space, admin, role="admin")
    assert (await nobody.get(by_role.path)).status_code == 200
    read(await client.patch(f"{space.path}/members/{admin}", json={"role": "editor"}))
    assert (await nobody.get(by_role.path)).status_code == 409
    assert (await nobody.post(by_role.path, data=APPROVE)).status_code == 409
    assert (await by_role.wait(client))["decisions"] == []


async def test_an_earlier_decision_or_cancel_stays(
    app: FastAPI, client: Client, nobody: Visitor, space: Space, person: UUID
) -> None:
    owner = str(space.user_id)
    people = {"assignees": [str(person), owner], "allowSelf": True}
    decided = await mailed(client, space, person, **people)
    assert (await nobody.get(decided.path)).status_code == 200
    read(await client.post(f"{decided.run}/nodes/ask/resume", json={"decision": "rejected"}))
    assert (await nobody.post(decided.path, data=APPROVE)).status_code == 409
    assert (await decided.wait(client))["resolution"] == "rejected"
    cancelled = await mailed(client, space, person, **people)
    read(await client.post(f"{cancelled.run}/cancel"))
    assert (await nobody.post(cancelled.path, data=APPROVE)).status_code == 409
    # In a session the same person gets the same answer: a link gives nothing beside it.
    async with await signed_in(app, space, person) as visitor:
        assert (await visitor.get(decided.path)).status_code == 409


async def test_a_link_ends_with_its_automation(
    client: Client, nobody: Visitor, sent: Mailed
) -> None:
    automation = sent.run.partition("/runs/")[0]
    read(await client.delete(automation))
    assert (await nobody.get(sent.path)).status_code == 409
    assert (await nobody.post(sent.path, data=APPROVE)).status_code == 409


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
async def test_another_site_sends_no_decision(
    client: Client, nobody: Visitor, sent: Mailed, site: str | None
) -> None:
    del nobody.headers["Sec-Fetch-Site"]
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    answer = await nobody.post(sent.path, data=APPROVE, headers=headers)
    assert answer.status_code == 403
    assert (await sent.wait(client))["decisions"] == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"decision": "maybe"},
        {**APPROVE, "scopeKey": "loop:1"},
        {**APPROVE, "next": "//evil.test"},
        {**APPROVE, "answer.text.other": "x"},
        {**APPROVE, "comment": "x" * 10_001},
    ],
)
async def test_fields_that_the_form_does_not_have_are_refused(
    client: Client, space: Space, nobody: Visitor, person: UUID, fields: dict[str, str]
) -> None:
    form = [{"key": "why", "label": "Why"}]
    sent = await mailed(client, space, person, assignees=[str(person)], form=form)
    assert (await nobody.post(sent.path, data=fields)).status_code == 400
    assert (await sent.wait(client))["decisions"] == []


async def test_no_log_has_the_token(
    app: FastAPI,
    client: Client,
    nobody: Visitor,
    sent: Mailed,
    space: Space,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    token = sent.path.rpartition("/")[2]
    await nobody.get(sent.path)
    await nobody.post(sent.path, data=APPROVE)
    await client.get(sent.path)
    await app.state.services.request_log.flush()
    async with space.database.reading() as work:
        rows = await work.rows(request_log.select())
    assert not [row for row in rows if token in row.path]
    assert token not in caplog.text
    assert token not in "".join(capsys.readouterr())
