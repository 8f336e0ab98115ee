"""`Prefer: propose`: a request is kept with its changes, and applied as it was sent or refused."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import func, select, text, update

from models.core.access.rules import Role, Scope
from models.messages.notifications.queries import notification
from models.workspace.changes import requests
from models.workspace.changes.commands import expire_changes
from models.workspace.changes.queries import change_set, dry_run_change
from tests.api.kernel.test_dry_runs import make, titles
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.triggers import Listening
from tests.support.watched import WatchedDatabase

PROPOSE = {"Prefer": "propose"}
READS = [scope for scope in Scope if scope.endswith(":read")]


@pytest.fixture
async def agent(client: Client, space: Space) -> Client:
    """A key of the owner that reads and proposes."""
    return client.with_token(await space.key([*READS, Scope.WORKSPACE_CHANGES_PROPOSE]))


def kept(answer: httpx2.Response) -> Any:
    assert answer.status_code == 202, answer.text
    assert answer.headers["Preference-Applied"] == "propose"
    return answer.json()


async def applied(client: Client, space: Space, proposal: Any, **body: Any) -> httpx2.Response:
    return await client.post(f"{space.path}/changes/{proposal['proposal']['id']}/apply", json=body)


async def shown(client: Client, space: Space, proposal: Any) -> Any:
    answer = await client.get(f"{space.path}/changes/{proposal['proposal']['id']}")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_request_is_kept_and_applied_as_it_was_sent(
    client: Client, agent: Client, space: Space
) -> None:
    records = await make(client, space)
    body = {"title": "Bolt", "data": {"part": 7}}
    assert (await agent.post(records, json=body)).status_code == 403
    proposal = kept(await agent.post(records, json=body, headers=PROPOSE))
    assert proposal["proposal"]["status"] == "planned"
    assert proposal["proposal"]["source"] == "request"
    assert proposal["changes"]["counts"][0]["created"] == 1
    assert await titles(client, records) == []
    detail = await shown(client, space, proposal)
    assert detail["request"] == {"method": "POST", "path": records, "body": body, "status": 201}
    assert detail["changes"]["resources"][0]["after"]["title"] == "Bolt"
    answer = await applied(client, space, proposal)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["status"] == "applied"
    assert answer.json()["data"]["response"]["status"] == 201
    assert answer.json()["data"]["response"]["data"]["title"] == "Bolt"
    assert await titles(client, records) == ["Bolt"]
    assert (await applied(client, space, proposal)).status_code == 409
    assert await titles(client, records) == ["Bolt"]


async def test_a_change_of_the_same_rows_refuses_a_proposal(
    client: Client, agent: Client, space: Space
) -> None:
    records = await make(client, space)
    made = (await client.post(records, json={"title": "Bolt"})).json()["data"]
    path = f"/v1/records/{made['id']}"
    other = kept(await agent.patch(path, json={"title": "Nut"}, headers=PROPOSE))
    outdated = kept(await agent.delete(path, headers=PROPOSE))
    assert (await client.post(records, json={"title": "A neighbour"})).status_code == 201
    assert (await applied(client, space, other)).status_code == 200
    refused = await applied(client, space, outdated)
    assert (refused.status_code, refused.json()["error"]) == (409, "outdated_proposal")
    assert sorted(await titles(client, records)) == ["A neighbour", "Nut"]
    assert (await shown(client, space, outdated))["status"] == "planned"


async def test_an_automation_that_would_start_since_refuses_it(
    client: Client, agent: Client, space: Space
) -> None:
    listening = await Listening.within(space.database, space.actor, keys=space.keys)
    path = f"/v1/databases/{listening.table}/records"
    proposal = kept(await agent.post(path, json={"title": "Bolt"}, headers=PROPOSE))
    await listening.automation("record_created")
    refused = await applied(client, space, proposal)
    assert (refused.status_code, refused.json()["error"]) == (409, "outdated_proposal")
    proposal = kept(await agent.post(path, json={"title": "Bolt"}, headers=PROPOSE))
    assert len(proposal["changes"]["automations"]) == 1
    assert (await applied(client, space, proposal)).status_code == 200


async def test_the_rights_of_who_applies_decide(
    client: Client, agent: Client, space: Space, foreign: Space
) -> None:
    records = await make(client, space)
    proposal = kept(await agent.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    assert (await applied(agent, space, proposal)).status_code == 403
    scopes = [*READS, Scope.WORKSPACE_CHANGES_APPLY]
    lacking = client.with_token(await space.key(scopes))
    refused = await applied(lacking, space, proposal)
    assert (refused.status_code, "records:write" in refused.json()["message"]) == (403, True)
    able = client.with_token(await space.key([*scopes, Scope.RECORDS_WRITE]))
    stranger = client.with_token(foreign.token)
    assert (await applied(stranger, space, proposal)).status_code == 404
    assert (await applied(stranger, foreign, proposal)).status_code == 404
    assert (await applied(able, space, proposal)).status_code == 200


async def test_an_author_sees_only_what_they_may_read(client: Client, space: Space) -> None:
    records = await make(client, space)
    _, token = await space.member(Role.EDITOR)
    blind = client.with_token(await space.key([Scope.WORKSPACE_CHANGES_PROPOSE]))
    proposal = kept(await blind.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    assert proposal["changes"]["resources"] == []
    assert len((await shown(client, space, proposal))["changes"]["resources"]) == 1
    path = f"{space.path}/changes/{proposal['proposal']['id']}"
    assert (await client.with_token(token).get(path)).status_code == 404


async def test_a_person_proposes_what_their_role_may_not(client: Client, space: Space) -> None:
    editor, token = await space.member(Role.EDITOR)
    path = f"{space.path}/members/{editor}"
    author = client.with_token(token)
    assert (await author.patch(path, json={"role": "admin"})).status_code == 403
    refused = await author.patch(path, json={"role": "owner"}, headers=PROPOSE)
    assert refused.status_code == 403, "what the command itself refuses to the role stays refused"


async def test_closed_items_do_not_exist_for_a_proposal(
    client: Client, space: Space, foreign: Space
) -> None:
    records = await make(client, space)
    scopes = [*READS, Scope.WORKSPACE_CHANGES_PROPOSE]
    stranger = client.with_token(await foreign.key(scopes))
    answer = await stranger.post(records, json={"title": "Bolt"}, headers=PROPOSE)
    assert answer.status_code == 404
    without = client.with_token(await space.key(READS))
    answer = await without.post(records, json={"title": "Bolt"}, headers=PROPOSE)
    assert answer.status_code == 403
    assert "workspace_changes:propose" in answer.json()["message"]


async def test_secrets_are_sealed_and_not_shown(
    client: Client, agent: Client, space: Space, database: WatchedDatabase
) -> None:
    path = f"{space.path}/secrets/crm"
    proposal = kept(await agent.put(path, json={"value": "hush-hush-hush"}, headers=PROPOSE))
    detail = await shown(client, space, proposal)
    assert detail["request"]["body"] is None
    async with database.transaction() as work:
        row = await work.scalar(
            select(func.row_to_json(text("change_set")))
            .select_from(change_set)
            .where(change_set.c.id == UUID(proposal["proposal"]["id"]))
        )
    assert "hush" not in str(row)
    assert (await applied(client, space, proposal)).status_code == 200
    async with database.transaction() as work:
        sealed = select(change_set.c.sealed_request, change_set.c.completed_at).where(
            change_set.c.id == UUID(proposal["proposal"]["id"])
        )
        (row,) = await work.rows(sealed)
    assert (row.sealed_request, row.completed_at is None) == (None, False)


async def test_a_proposal_is_repeated_under_its_key(
    client: Client, agent: Client, space: Space
) -> None:
    records = await make(client, space)
    headers = {**PROPOSE, "Idempotency-Key": "k"}
    first = kept(await agent.post(records, json={"title": "Bolt"}, headers=headers))
    again = await agent.post(records, json={"title": "Bolt"}, headers=headers)
    assert (kept(again), again.headers["Idempotency-Replayed"]) == (first, "true")
    other = await agent.post(records, json={"title": "Nut"}, headers=headers)
    assert other.status_code == 422
    listed = (await client.get(f"{space.path}/changes")).json()["data"]["changes"]
    assert len(listed) == 1
    # The request itself, under the same key, is another one.
    sent = await client.post(records, json={"title": "Bolt"}, headers={"Idempotency-Key": "k"})
    assert sent.status_code == 201


async def test_a_refused_dry_run_and_a_large_body_are_not_kept(
    client: Client, agent: Client, space: Space
) -> None:
    records = await make(client, space)
    wrong = await agent.post(records, json={"data": {"part": "many"}}, headers=PROPOSE)
    assert wrong.status_code == 400
    large = {"title": "Bolt", "data": {"part": 7}, "clientMutationId": "x" * requests.MAX_BODY}
    assert (await agent.post(records, json=large, headers=PROPOSE)).status_code == 413
    listed = (await client.get(f"{space.path}/changes")).json()["data"]["changes"]
    assert listed == []


async def test_proposals_of_a_workspace_are_bounded(
    client: Client, agent: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = await make(client, space)
    monkeypatch.setattr(requests, "PROPOSED", replace(requests.PROPOSED, most=1))
    kept(await agent.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    refused = await agent.post(records, json={"title": "Nut"}, headers=PROPOSE)
    assert refused.status_code == 409


async def test_an_expired_proposal_loses_its_request(
    client: Client, agent: Client, space: Space, database: WatchedDatabase
) -> None:
    records = await make(client, space)
    proposal = kept(await agent.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    async with database.transaction() as work:
        await work.execute(update(change_set).values(expires_at=work.now))
        assert await expire_changes(work) >= 1
        sealed = select(change_set.c.sealed_request).where(
            change_set.c.id == UUID(proposal["proposal"]["id"])
        )
        assert await work.scalar(sealed) is None
    assert (await applied(client, space, proposal)).status_code == 409
    assert (await shown(client, space, proposal))["request"]["path"] == records


@pytest.mark.parametrize("path", ["changes/{}/apply", "files"])
async def test_some_operations_cannot_be_proposed(agent: Client, space: Space, path: str) -> None:
    answer = await agent.post(f"{space.path}/{path}".format(space.id), json={}, headers=PROPOSE)
    assert (answer.status_code, answer.json()["error"]) == (422, "proposal_unsupported")


async def test_managers_are_notified_once_an_hour(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    records = await make(client, space)
    _, token = await space.member(Role.EDITOR)
    author = client.with_token(token)
    first = kept(await author.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    kept(await author.post(records, json={"title": "Nut"}, headers=PROPOSE))
    async with database.transaction() as work:
        rows = await work.rows(select(notification).where(notification.c.user_id == space.user_id))
    (row,) = [one for one in rows if "changeId" in one.data]
    assert row.data["changeId"] == first["proposal"]["id"]
    listed = (await client.get("/v1/notifications")).json()["data"]["notifications"]
    pages = [one["pageUrl"] for one in listed if "changeId" in one["data"]]
    assert pages[0].endswith(f"/workspaces/{space.id}/changes/{first['proposal']['id']}")


async def test_an_applied_request_is_captured_nowhere_and_numbered_in_the_log(
    client: Client, agent: Client, space: Space, database: WatchedDatabase
) -> None:
    records = await make(client, space)
    proposal = kept(await agent.post(records, json={"title": "Bolt"}, headers=PROPOSE))
    tried = await applied(client, space, proposal, dryRun=True)
    assert tried.status_code == 200, tried.text
    assert tried.json()["data"]["status"] == proposal["proposal"]["status"]
    assert await titles(client, records) == []
    tried = await client.post(
        f"{space.path}/changes/{proposal['proposal']['id']}/apply",
        json={},
        headers={"Prefer": "dry-run"},
    )
    assert tried.json()["changes"]["counts"], tried.text
    assert await titles(client, records) == []
    assert (await applied(client, space, proposal)).status_code == 200
    async with database.transaction() as work:
        assert await work.scalar(select(func.count()).select_from(dry_run_change)) == 0
        lowest = text("SELECT min(seq) FROM workspace_event")
        assert await work.scalar(lowest) > 0
