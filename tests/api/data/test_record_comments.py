"""Comments on records over HTTP: threads, mentions, and whose words may be changed by whom."""

from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.spaces import Space


@pytest_asyncio.fixture
async def record(client: Client, space: Space) -> str:
    """The path of a record."""
    return await make(client, space)


async def make(client: Client, space: Space) -> str:
    database = await client.post(f"{space.path}/databases", json={"label": "Things"})
    records = f"/v1/databases/{database.json()['data']['id']}/records"
    answer = await client.post(records, json={"title": "A"})
    return f"/v1/records/{answer.json()['data']['id']}"


async def say(client: Client, record: str, body: str, **more: Any) -> Any:
    answer = await client.post(f"{record}/comments", json={"body": body, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def comments(client: Client, record: str) -> list[Any]:
    answer = await client.get(f"{record}/comments")
    found: list[Any] = answer.json()["data"]["comments"]
    return found


async def test_a_comment_is_written_answered_and_resolved(
    client: Client, space: Space, record: str
) -> None:
    member, token = await space.member(Role.COMMENTER)
    first = await say(client, record, "Is this right?", mentions=[str(member)] * 2)
    assert first == {
        "id": first["id"],
        "recordId": record.rpartition("/")[2],
        "authorUserId": str(space.user_id),
        "body": "Is this right?",
        "mentions": [str(member)],
        "createdAt": first["createdAt"],
        "updatedAt": first["createdAt"],
    }
    commenter = client.with_token(token)
    answer = await say(commenter, record, "It is.", parentCommentId=first["id"])
    assert await comments(client, record) == [first, answer]
    path = f"{record}/comments/{first['id']}"
    resolved = (await commenter.patch(path, json={"resolved": True})).json()["data"]
    assert resolved["resolvedAt"] is not None
    again = (await client.patch(path, json={"resolved": True})).json()["data"]
    assert again == resolved
    opened = (await client.patch(path, json={"resolved": False, "body": "Is it?"})).json()["data"]
    assert ("resolvedAt" in opened, opened["body"]) == (False, "Is it?")


async def test_words_belong_to_their_author_and_to_managers(
    client: Client, space: Space, record: str
) -> None:
    _, one = await space.member(Role.COMMENTER)
    _, other = await space.member(Role.EDITOR)
    said = await say(client.with_token(one), record, "mine")
    path = f"{record}/comments/{said['id']}"
    stranger = client.with_token(other)
    assert (await stranger.patch(path, json={"body": "yours"})).status_code == 403
    assert (await stranger.patch(path, json={"mentions": []})).status_code == 403
    assert (await stranger.delete(path)).status_code == 403
    assert await comments(client, record) == [said]
    assert (await client.patch(path, json={"body": "managed"})).status_code == 200
    assert (await client.with_token(one).delete(path)).status_code == 200


async def test_a_deleted_comment_leaves_its_answers(
    client: Client, space: Space, record: str
) -> None:
    first = await say(client, record, "first", mentions=[str(space.user_id)])
    answer = await say(client, record, "answer", parentCommentId=first["id"])
    path = f"{record}/comments/{first['id']}"
    gone = (await client.delete(path)).json()["data"]
    assert (gone["body"], gone["mentions"], gone["deletedAt"] is not None) == ("", [], True)
    assert await comments(client, record) == [gone, answer]
    assert (await client.delete(path)).status_code == 404
    assert (await client.patch(path, json={"body": "back"})).status_code == 404
    late = {"body": "late", "parentCommentId": first["id"]}
    assert (await client.post(f"{record}/comments", json=late)).status_code == 404
    await client.delete(f"{record}/comments/{answer['id']}")
    assert await comments(client, record) == []


async def test_the_list_is_paged_oldest_first(client: Client, record: str) -> None:
    said = [(await say(client, record, f"{n}"))["id"] for n in range(7)]
    found: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = (await client.get(f"{record}/comments", params=query)).json()["data"]
        found += [one["id"] for one in page["comments"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == said


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "body"),
    ({"body": ""}, "body"),
    ({"body": "x" * 10_001}, "body"),
    ({"body": 5}, "body"),
    ({"body": "x", "mentions": "me"}, "mentions"),
    ({"body": "x", "mentions": ["me"]}, "mentions.0"),
    ({"body": "x", "mentions": [str(uuid4())] * 51}, "mentions"),
    ({"body": "x", "authorUserId": str(uuid4())}, "authorUserId"),
    ({"body": "x", "recordId": str(uuid4())}, "recordId"),
]


@pytest.mark.parametrize(("body", "path"), BAD, ids=range(len(BAD)))
async def test_bad_comments_are_refused_where_they_are_wrong(
    client: Client, record: str, body: dict[str, Any], path: str
) -> None:
    answer = await client.post(f"{record}/comments", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert await comments(client, record) == []


async def test_only_members_are_mentioned_and_only_threads_answered(
    client: Client, space: Space, foreign: Space, record: str
) -> None:
    messages = []
    for stranger in (str(foreign.user_id), str(uuid4())):
        body = {"body": "x", "mentions": [str(space.user_id), stranger]}
        answer = await client.post(f"{record}/comments", json=body)
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "mentions.1")
        messages.append(answer.text.replace(stranger, "…"))
    assert messages[0] == messages[1]
    first = await say(client, record, "first")
    answer = await say(client, record, "answer", parentCommentId=first["id"])
    body = {"body": "x", "parentCommentId": answer["id"]}
    refused = await client.post(f"{record}/comments", json=body)
    assert refused.json()["details"][0]["path"] == "parentCommentId"
    path = f"{record}/comments/{answer['id']}"
    refused = await client.patch(path, json={"resolved": True})
    assert refused.json()["details"][0]["path"] == "resolved"


async def test_comments_are_reached_by_their_own_record_alone(
    client: Client, space: Space, foreign: Space, record: str
) -> None:
    said = await say(client, record, "here")
    neighbour = await make(client, space)
    other = client.with_token(foreign.token)
    theirs = await make(other, foreign)
    their_comment = await say(other, theirs, "theirs")
    for comment_id in (said["id"], their_comment["id"], "x"):
        path, unknown = (f"{neighbour}/comments/{one}" for one in (comment_id, uuid4()))
        for method, body in (("PATCH", {"body": "x"}), ("DELETE", None)):
            found = await client.request(method, path, json=body)
            missing = await client.request(method, unknown, json=body)
            assert (found.status_code, found.content) == (404, missing.content)
    for parent in (said["id"], their_comment["id"], str(uuid4())):
        body = {"body": "x", "parentCommentId": parent}
        assert (await client.post(f"{neighbour}/comments", json=body)).status_code == 404
    for method, path in (
        ("GET", f"{record}/comments"),
        ("POST", f"{record}/comments"),
        ("PATCH", f"{record}/comments/{said['id']}"),
        ("DELETE", f"{record}/comments/{said['id']}"),
    ):
        body = {"body": "x"} if method in {"POST", "PATCH"} else None
        assert (await other.request(method, path, json=body)).status_code == 404
    assert await comments(client, record) == [said]


async def test_commenting_needs_its_scope_and_level(
    client: Client, space: Space, record: str
) -> None:
    _, viewer = await space.member(Role.VIEWER)
    unscoped = await space.key([scope for scope in Scope if scope != Scope.RECORDS_COMMENT])
    said = await say(client, record, "here")
    for token in (viewer, unscoped):
        caller = client.with_token(token)
        assert (await caller.get(f"{record}/comments")).status_code == 200
        assert (await caller.post(f"{record}/comments", json={"body": "x"})).status_code == 403
        path = f"{record}/comments/{said['id']}"
        assert (await caller.patch(path, json={"resolved": True})).status_code == 403
        assert (await caller.delete(path)).status_code == 403
    assert await comments(client, record) == [said]


async def test_a_repeated_call_says_it_once(client: Client, record: str) -> None:
    key = {"Idempotency-Key": "say-1"}
    for _ in range(2):
        await client.post(f"{record}/comments", json={"body": "once"}, headers=key)
    assert len(await comments(client, record)) == 1
