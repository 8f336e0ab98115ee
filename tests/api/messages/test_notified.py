"""Who gets a notification of what others do: mentions, comments, assignments and shares."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import Json, make, make_item, read
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)


@dataclass(frozen=True, slots=True)
class Person:
    """A member and the notifications they get."""

    id: UUID
    client: Client
    space: Space

    async def notifications(self) -> list[Json]:
        """Their notifications, oldest first."""
        listed = read(await self.client.get(f"{self.space.path}/notifications"))
        return list(reversed(listed["notifications"]))

    async def kinds(self) -> list[str]:
        return [one["kind"] for one in await self.notifications()]


@pytest_asyncio.fixture
async def ada(space: Space, client: Client) -> Person:
    user_id, token = await space.member(Role.EDITOR)
    return Person(user_id, client.with_token(token), space)


@pytest_asyncio.fixture
async def bob(space: Space, client: Client) -> Person:
    user_id, token = await space.member(Role.COMMENTER)
    return Person(user_id, client.with_token(token), space)


@pytest.fixture
def owner(space: Space, client: Client) -> Person:
    return Person(space.user_id, client, space)


@pytest_asyncio.fixture
async def tasks(client: Client, space: Space) -> Json:
    fields = [{"label": "Who", "kind": "person"}]
    body = {"label": "Tasks", "fields": fields}
    made: Json = read(await client.post(f"{space.path}/databases", json=body), 201)
    return made


async def record(client: Client, tasks: Json, **body: Any) -> Json:
    path = f"/v1/databases/{tasks['id']}/records"
    made: Json = read(await client.post(path, json={"title": "Tea", **body}), 201)
    return made


async def comment(client: Client, record_id: str, body: str = "Hi", **parts: Any) -> Json:
    answer = await client.post(f"/v1/records/{record_id}/comments", json={"body": body, **parts})
    made: Json = read(answer, 201)
    return made


async def close(client: Client, item_id: str, *granted: UUID) -> None:
    grants = [{"userId": str(one), "level": "comment"} for one in granted]
    body = {"accessMode": "restricted", "grants": grants}
    read(await client.put(f"/v1/items/{item_id}/access", json=body))


# ---- comments on records


async def test_a_comment_notifies_whom_it_mentions_and_who_made_the_record(
    owner: Person, ada: Person, bob: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks)
    said = await comment(ada.client, made["id"], "Look", mentions=[str(bob.id), str(ada.id)])
    (one,) = await bob.notifications()
    assert one["kind"] == "mention"
    assert one["title"] == "Test mentioned you on “Tea”"
    assert one["body"] == "Look"
    assert (one["recordId"], one["itemId"]) == (made["id"], tasks["itemId"])
    assert (one["actorUserId"], one["data"]) == (
        str(ada.id),
        {"commentId": said["id"]},
    )
    assert await owner.kinds() == ["comment"]
    assert await ada.notifications() == [], "they wrote it"


async def test_an_answer_notifies_those_in_the_thread(
    owner: Person, ada: Person, bob: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks)
    thread = await comment(ada.client, made["id"])
    answer = {"parentCommentId": thread["id"]}
    await comment(bob.client, made["id"], "One", **answer)
    await comment(bob.client, made["id"], "Two", **answer, mentions=[str(ada.id)])
    assert await ada.kinds() == ["comment", "mention"]
    assert await bob.kinds() == []
    assert await owner.kinds() == ["comment"], "of the thread, not of its answers"


async def test_a_changed_comment_notifies_who_is_new_in_it(
    owner: Person, ada: Person, bob: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks)
    said = await comment(owner.client, made["id"], mentions=[str(ada.id)])
    path = f"/v1/records/{made['id']}/comments/{said['id']}"
    for _ in range(2):
        both = {"mentions": [str(ada.id), str(bob.id)]}
        read(await owner.client.patch(path, json=both))
        read(await owner.client.patch(path, json={"mentions": []}))
    assert await ada.kinds() == await bob.kinds() == ["mention"]


async def test_a_member_without_access_is_not_notified(
    owner: Person, ada: Person, bob: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks)
    await close(owner.client, tasks["itemId"], bob.id)
    people = [str(ada.id), str(bob.id)]
    await comment(owner.client, made["id"], mentions=people)
    read(await owner.client.patch(f"/v1/records/{made['id']}", json={"data": {"who": people}}))
    assert await ada.notifications() == []
    assert await bob.kinds() == ["share", "mention", "assignment"]


# ---- surfaces


def mention(*people: Person) -> Json:
    spans = [{"text": "@", "mention": {"userId": str(one.id)}} for one in people]
    return {"kind": "paragraph", "content": {"text": [{"text": "Dear "}, *spans]}}


async def test_a_block_notifies_whom_it_mentions(owner: Person, ada: Person, bob: Person) -> None:
    page = (await make(owner.client, "page", "Plan"))["item"]
    path = f"/v1/surfaces/{page['targetId']}"
    body = {"blocks": [mention(ada, owner)]}
    added = read(await owner.client.post(f"{path}/blocks", json=body), 201)
    (block,) = added["blocks"]
    (one,) = await ada.notifications()
    assert (one["kind"], one["title"]) == (
        "mention",
        "Test mentioned you on “Plan”",
    )
    assert one["data"] == {"surfaceId": page["targetId"], "blockId": block["id"]}
    assert one["itemId"] == page["id"]
    content = mention(ada, bob)["content"]
    read(await owner.client.patch(f"{path}/blocks/{block['id']}", json={"content": content}))
    kept = {"id": block["id"], **mention(ada, bob)}
    read(await owner.client.put(path, json={"blocks": [kept]}))
    assert await ada.kinds() == await bob.kinds() == ["mention"]
    read(await owner.client.put(path, json={"blocks": [kept, mention(ada)]}))
    assert await ada.kinds() == ["mention"] * 2
    assert await owner.notifications() == []


async def test_an_item_made_with_content_notifies_whom_that_mentions(
    owner: Person, ada: Person
) -> None:
    content = {"blocks": [mention(ada)]}
    await make(owner.client, "page", "Plan", content=content)
    assert await ada.kinds() == ["mention"]


async def test_a_mention_in_the_content_of_a_record_names_the_record(
    owner: Person, ada: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks)
    opened = read(await owner.client.post(f"/v1/records/{made['id']}/content-surface"))
    blocks = {"blocks": [mention(ada)]}
    read(await owner.client.post(f"/v1/surfaces/{opened['id']}/blocks", json=blocks), 201)
    (one,) = await ada.notifications()
    assert (one["recordId"], one["itemId"]) == (made["id"], tasks["itemId"])


async def test_a_comment_on_a_page_notifies_those_who_commented(
    owner: Person, ada: Person, bob: Person
) -> None:
    page = (await make(owner.client, "page", "Plan"))["item"]
    path = f"/v1/surfaces/{page['targetId']}/comments"

    async def say(who: Person, **parts: Any) -> str:
        id_: str = read(await who.client.post(path, json={"body": "Hm", **parts}), 201)["id"]
        return id_

    thread = await say(ada)
    await say(bob)
    assert await ada.kinds() == ["comment"]
    await say(owner, parentCommentId=thread)
    assert await ada.kinds() == ["comment"] * 2
    assert await bob.kinds() == []
    assert await owner.notifications() == []


# ---- assignments


async def test_a_member_put_into_a_person_field_is_notified(
    owner: Person, ada: Person, bob: Person, tasks: Json
) -> None:
    made = await record(owner.client, tasks, data={"who": [str(ada.id), str(owner.id)]})
    (one,) = await ada.notifications()
    assert (one["kind"], one["title"]) == (
        "assignment",
        "Test assigned “Tea” to you",
    )
    assert (one["recordId"], one["itemId"]) == (made["id"], tasks["itemId"])
    assert one["data"] == {"fieldKey": "who"}
    path = f"/v1/records/{made['id']}"
    read(await owner.client.patch(path, json={"title": "Cake"}))
    both = [str(ada.id), str(bob.id)]
    read(await owner.client.patch(path, json={"data": {"who": both}}))
    assert await ada.kinds() == await bob.kinds() == ["assignment"]
    read(await owner.client.patch(path, json={"data": {"who": None}}))
    read(await owner.client.patch(path, json={"data": {"who": both}}))
    assert await ada.kinds() == ["assignment"] * 2
    read(await owner.client.delete(path))
    assert await ada.kinds() == ["assignment"] * 2
    assert await owner.notifications() == [], "they did it"


async def test_records_written_at_once_notify_of_each(
    owner: Person, ada: Person, tasks: Json
) -> None:
    creation = {"op": "create", "title": "T", "data": {"who": [str(ada.id)]}}
    path = f"/v1/databases/{tasks['id']}/records/batch"
    read(await owner.client.post(path, json={"operations": [creation] * 5}))
    assert await ada.kinds() == ["assignment"] * 5


# ---- shares


async def test_a_member_who_is_granted_access_is_notified(
    owner: Person, ada: Person, bob: Person
) -> None:
    folder = await make_item(owner.client, "Plans")
    await close(owner.client, folder["id"], ada.id, owner.id)
    (one,) = await ada.notifications()
    assert (one["kind"], one["title"]) == (
        "share",
        "Test shared “Plans” with you",
    )
    assert one["itemId"] == folder["id"]
    await close(owner.client, folder["id"], ada.id, bob.id)
    assert await ada.kinds() == await bob.kinds() == ["share"]
    assert await owner.notifications() == []
