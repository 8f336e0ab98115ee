"""Comments on surfaces over HTTP: threads, their end, and whose words they are."""

from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from models.core.access.rules import Level, Role
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.surfaces import Placed, grant, make_surface


@pytest_asyncio.fixture
async def page(space: Space) -> Placed:
    return await make_surface(space, "page", {"blocks": [{"kind": "divider"}]})


async def say(client: Client, page: Placed, text: str, **more: Any) -> Any:
    answer = await client.post(f"{page.path}/comments", json={"body": text, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def texts(client: Client, page: Placed, **query: str) -> list[str]:
    answer = await client.get(f"{page.path}/comments", params=query)
    assert answer.status_code == 200
    return [comment["body"] for comment in answer.json()["data"]["comments"]]


async def block_of(client: Client, page: Placed) -> str:
    block: str = (await client.get(page.path)).json()["data"]["blocks"][0]["id"]
    return block


async def test_comments_form_threads(client: Client, space: Space, page: Placed) -> None:
    block = await block_of(client, page)
    first = await say(client, page, "first")
    on_block = await say(client, page, "on the block", blockId=block)
    answer = await say(client, page, "answer", parentCommentId=on_block["id"])
    assert first == {
        **first,
        "surfaceId": str(page.id),
        "authorUserId": str(space.user_id),
    }
    assert (answer["blockId"], answer["parentCommentId"]) == (block, on_block["id"])
    assert await texts(client, page) == ["first", "on the block", "answer"]
    assert await texts(client, page, blockId=block) == ["on the block", "answer"]
    assert await texts(client, page, parentCommentId=on_block["id"]) == ["on the block", "answer"]
    assert await texts(client, page, parentCommentId=str(uuid4())) == []
    part = await client.get(f"{page.path}/comments", params={"limit": "2"})
    cursor = part.json()["data"]["cursor"]
    assert await texts(client, page, cursor=cursor) == ["answer"]


async def test_a_thread_outlives_its_block(client: Client, page: Placed) -> None:
    block = await block_of(client, page)
    await say(client, page, "about it", blockId=block)
    assert (await client.delete(f"{page.path}/blocks/{block}")).status_code == 200
    assert await texts(client, page, blockId=block) == ["about it"]


async def test_a_thread_is_resolved_and_opened_again(
    client: Client, space: Space, page: Placed
) -> None:
    thread = await say(client, page, "question")
    reply = await say(client, page, "answer", parentCommentId=thread["id"])
    user_id, token = await space.member(Role.COMMENTER)
    path = f"{page.path}/comments/{thread['id']}"
    other = client.with_token(token)
    resolved = (await other.patch(path, json={"resolved": True})).json()["data"]
    assert resolved["resolvedByUserId"] == str(user_id)
    assert resolved["resolvedAt"] is not None
    again = (await client.patch(path, json={"resolved": True})).json()["data"]
    assert again == resolved
    opened = (await client.patch(path, json={"resolved": False})).json()["data"]
    assert opened.keys().isdisjoint({"resolvedAt", "resolvedByUserId"})
    refused = await client.patch(f"{page.path}/comments/{reply['id']}", json={"resolved": True})
    assert refused.status_code == 400
    assert refused.json()["details"][0]["path"] == "resolved"


async def test_words_are_their_authors(client: Client, space: Space, page: Placed) -> None:
    _, token = await space.member(Role.COMMENTER)
    commenter = client.with_token(token)
    theirs = await say(commenter, page, "theirs")
    owners = await say(client, page, "the owner's")
    at = f"{page.path}/comments"
    denied = await client.patch(f"{at}/{theirs['id']}", json={"body": "changed"})
    assert denied.status_code == 403
    changed = await commenter.patch(f"{at}/{theirs['id']}", json={"body": "changed"})
    assert changed.json()["data"]["body"] == "changed"
    assert changed.json()["data"]["updatedAt"] > theirs["updatedAt"]
    assert (await commenter.delete(f"{at}/{owners['id']}")).status_code == 403
    # An owner manages every item, and so every comment.
    assert (await client.delete(f"{at}/{theirs['id']}")).status_code == 200
    assert (await client.delete(f"{at}/{owners['id']}")).json()["data"] == {"id": owners["id"]}
    assert await texts(client, page) == []
    assert (await client.delete(f"{at}/{owners['id']}")).status_code == 404


async def test_managing_the_page_is_enough_to_delete(
    client: Client, space: Space, page: Placed
) -> None:
    made = await say(client, page, "words")
    at = f"{page.path}/comments/{made['id']}"
    for level, status in [(Level.EDIT, 403), (Level.MANAGE, 200)]:
        user_id, token = await space.member(Role.GUEST)
        await grant(space, page.item_id, user_id, level)
        assert (await client.with_token(token).delete(at)).status_code == status


async def test_the_first_comment_takes_its_thread_with_it(client: Client, page: Placed) -> None:
    thread = await say(client, page, "thread")
    reply = await say(client, page, "reply", parentCommentId=thread["id"])
    await say(client, page, "second reply", parentCommentId=thread["id"])
    await say(client, page, "another")
    await client.delete(f"{page.path}/comments/{reply['id']}")
    assert await texts(client, page) == ["thread", "second reply", "another"]
    await client.delete(f"{page.path}/comments/{thread['id']}")
    assert await texts(client, page) == ["another"]


async def test_comments_and_blocks_of_another_surface_are_not_found(
    client: Client, space: Space, page: Placed
) -> None:
    other = await make_surface(space, "page", {"blocks": [{"kind": "divider"}]})
    theirs = await say(client, other, "theirs")
    block = await block_of(client, other)
    for body in (
        {"body": "x", "parentCommentId": theirs["id"]},
        {"body": "x", "parentCommentId": str(uuid4())},
        {"body": "x", "blockId": block},
        {"body": "x", "blockId": str(uuid4())},
    ):
        assert (await client.post(f"{page.path}/comments", json=body)).status_code == 404
    for method, body in [("PATCH", {"body": "x"}), ("DELETE", None)]:
        at = f"{page.path}/comments"
        elsewhere = await client.request(method, f"{at}/{theirs['id']}", json=body)
        unknown = await client.request(method, f"{at}/{uuid4()}", json=body)
        assert elsewhere.status_code == 404
        assert elsewhere.content == unknown.content


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"body": ""},
        {"body": 5},
        {"body": "x" * 10_001},
        {"body": "x", "author": "me"},
        {"body": "x", "blockId": 1},
    ],
    ids=["empty", "blank", "number", "long", "unknown", "id"],
)
async def test_a_bad_comment_is_refused(client: Client, page: Placed, body: dict[str, Any]) -> None:
    answer = await client.post(f"{page.path}/comments", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] in {"body", "author", "blockId"}


async def test_an_answer_answers_a_thread(client: Client, page: Placed) -> None:
    thread = await say(client, page, "thread")
    reply = await say(client, page, "reply", parentCommentId=thread["id"])
    nested = await client.post(
        f"{page.path}/comments", json={"body": "x", "parentCommentId": reply["id"]}
    )
    assert nested.status_code == 400
    block = await block_of(client, page)
    astray = await client.post(
        f"{page.path}/comments",
        json={"body": "x", "parentCommentId": thread["id"], "blockId": block},
    )
    assert astray.status_code == 400
