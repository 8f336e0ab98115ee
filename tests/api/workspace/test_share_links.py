"""Share links: who makes them, how often they open, and all they show."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from sqlalchemy import func, insert, select, text, update

from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from models.workspace.share_links.visitors import new_session, share_link
from runtime.clock import utc_now, wire_timestamp
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.files import Json, stored
from tests.support.spaces import Space


@pytest.fixture
def anybody(client: Client) -> Client:
    return client.with_token(None)


async def make_item(space: Space, kind: str = "folder", **values: Any) -> UUID:
    """An item with nothing behind it."""
    item_id = new_id()
    row = {
        "id": item_id,
        "workspace_id": space.id,
        "kind": kind,
        "title": f"A {kind}",
        "position": 0,
        "metadata": {},
        "created_at": utc_now(),
        "updated_at": utc_now(),
        **values,
    }
    async with space.database.transaction() as work:
        await work.execute(insert(item).values(row))
    return item_id


async def change(space: Space, item_id: UUID, **values: Any) -> None:
    async with space.database.transaction() as work:
        await work.execute(update(item).where(item.c.id == item_id).values(**values))


async def change_link(space: Space, link: Json, **values: Any) -> None:
    async with space.database.transaction() as work:
        this = share_link.c.id == link["id"]
        await work.execute(update(share_link).where(this).values(**values))


def links_of(space: Space, item_id: object) -> str:
    return f"{space.path}/items/{item_id}/share-links"


async def share(client: Client, space: Space, item_id: object, **body: Any) -> tuple[Json, str]:
    """A new link and its token."""
    answer = await client.post(links_of(space, item_id), json=body)
    assert answer.status_code == 201, answer.text
    link = answer.json()["data"]
    return link, link.pop("token")


def by(token: str) -> dict[str, str]:
    return {"X-Share-Token": token}


def in_session(session: str) -> dict[str, str]:
    return {"X-Share-Session": session}


def public(link: Json, rest: str = "") -> str:
    return f"/v1/share/{link['id']}{rest}"


async def uses(space: Space, link: Json) -> int:
    async with space.database.transaction() as work:
        counted = select(share_link.c.use_count).where(share_link.c.id == link["id"])
        return int(await work.scalar(counted))


async def test_a_link_from_making_to_revoking(
    client: Client, space: Space, anybody: Client
) -> None:
    item_id = await make_item(space)
    link, token = await share(client, space, item_id)
    assert link == {
        "id": link["id"],
        "workspaceItemId": str(item_id),
        "workspaceId": str(space.id),
        "kind": "folder",
        "url": f"/v1/share/{link['id']}",
        "shareUrl": f"/v1/share/{link['id']}#{token}",
        "allowDownload": False,
        "useCount": 0,
        "open": True,
        "createdAt": link["createdAt"],
    }
    listed = (await client.get(links_of(space, item_id))).json()["data"]
    del link["shareUrl"]
    assert listed == {"shareLinks": [link], "cursor": None}
    opened = await anybody.get(public(link), headers=by(token))
    assert opened.status_code == 200, opened.text
    visit = opened.json()["data"]
    shown = {
        "id": str(item_id),
        "kind": "folder",
        "title": "A folder",
    }
    assert visit["item"] == shown
    assert visit["content"] == {"children": [], "cursor": None}

    path = f"{links_of(space, item_id)}/{link['id']}"
    revoked = (await client.delete(path)).json()["data"]
    assert revoked["revokedAt"] is not None
    assert revoked["useCount"] == 1
    assert (await client.delete(path)).json()["data"] == revoked
    for headers in (by(token), in_session(visit["session"])):
        assert (await anybody.get(public(link), headers=headers)).status_code == 404


async def test_the_token_may_stand_in_the_query(
    client: Client, space: Space, anybody: Client
) -> None:
    link, token = await share(client, space, await make_item(space))
    answer = await anybody.get(public(link), params={"token": token})
    assert answer.status_code == 200
    session = answer.json()["data"]["session"]
    assert (await anybody.get(public(link), params={"session": session})).status_code == 200
    assert await uses(space, link) == 1


async def test_a_wrong_token_or_session_answers_as_an_unknown_link(
    client: Client, space: Space, anybody: Client
) -> None:
    item_id = await make_item(space)
    good, token = await share(client, space, item_id)
    other, other_token = await share(client, space, item_id)
    over = new_session(space.keys, UUID(good["id"]), utc_now() - timedelta(seconds=1))
    foreign_session = new_session(space.keys, UUID(other["id"]), utc_now() + timedelta(hours=1))
    wrong: list[dict[str, str]] = [
        {},
        by(""),
        by("x" * 43),
        by(token[:-1]),
        by(token.swapcase()),
        by("\u00fc"),
        by(other_token),
        in_session("x"),
        in_session(over),
        in_session(foreign_session),
    ]
    others = [({"id": id_}, by(token)) for id_ in (str(new_id()), "nonsense")]
    await answer_as_unknown(anybody, [*((good, headers) for headers in wrong), *others])
    assert await uses(space, good) == 0


async def test_a_link_that_is_over_answers_as_an_unknown_one(
    client: Client, space: Space, anybody: Client
) -> None:
    item_id = await make_item(space)
    used, used_token = await share(client, space, item_id, maxUses=1)
    await anybody.get(public(used), headers=by(used_token))
    expired, expired_token = await share(client, space, item_id)
    await change_link(space, expired, expires_at=utc_now() - timedelta(seconds=1))
    revoked, revoked_token = await share(client, space, item_id)
    await client.delete(f"{links_of(space, item_id)}/{revoked['id']}")
    trashed_item = await make_item(space)
    trashed, trashed_token = await share(client, space, trashed_item)
    await change(space, trashed_item, deleted_at=utc_now())
    cases = [
        (used, by(used_token)),
        (expired, by(expired_token)),
        (revoked, by(revoked_token)),
        (trashed, by(trashed_token)),
    ]
    await answer_as_unknown(anybody, cases)
    assert await uses(space, used) == 1
    assert await uses(space, trashed) == 0


async def answer_as_unknown(anybody: Client, cases: list[tuple[Json, dict[str, str]]]) -> None:
    """Check that visits and downloads of these links look like those of a missing link."""
    bodies = set()
    for link, headers in [({"id": str(new_id())}, by("x" * 43)), *cases]:
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        for rest in ("", "/download"):
            answer = await anybody.get(public(link, rest), headers=encoded)  # type: ignore[arg-type]
            assert answer.status_code == 404, (link, headers)
            bodies.add(answer.content)
    assert len(bodies) == 1


@pytest.mark.parametrize("most", [1, 5, 100])
async def test_a_link_opens_no_more_often_than_it_may(
    client: Client, space: Space, anybody: Client, most: int
) -> None:
    link, token = await share(client, space, await make_item(space), maxUses=most)
    answers = []
    for _ in range(10):  # more at once might wait too long for a connection of the pool
        answers += await asyncio.gather(
            *(anybody.get(public(link), headers=by(token)) for _ in range(20))
        )
    granted = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} == {200, 404}
    assert len(granted) == await uses(space, link) == most


async def test_only_opening_takes_a_use(client: Client, space: Space, anybody: Client) -> None:
    link, token = await share(client, space, await make_item(space), maxUses=2)
    assert (await anybody.head(public(link), headers=by(token))).status_code == 405
    for name, value in (
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
        ("X-Purpose", "preview"),
        ("X-Moz", "prefetch"),
    ):
        answer = await anybody.get(public(link), headers={**by(token), name: value})
        assert answer.status_code == 503
    assert (
        await anybody.get(public(link), headers=by(token), params={"x": "1"})
    ).status_code == 400
    assert await uses(space, link) == 0
    session = (await anybody.get(public(link), headers=by(token))).json()["data"]["session"]
    for _ in range(5):
        headers = {**by(token), **in_session(session)}
        again = await anybody.get(public(link), headers=headers)
        assert again.json()["data"]["session"] == session
    assert await uses(space, link) == 1
    over = new_session(space.keys, UUID(link["id"]), utc_now() - timedelta(seconds=1))
    await anybody.get(public(link), headers={**by(token), **in_session(over)})
    assert await uses(space, link) == 2


async def test_a_session_ends_with_its_link(client: Client, space: Space, anybody: Client) -> None:
    item_id = await make_item(space)
    ends = utc_now() + timedelta(minutes=30)
    link, token = await share(client, space, item_id, expiresAt=wire_timestamp(ends))
    visit = (await anybody.get(public(link), headers=by(token))).json()["data"]
    assert datetime.fromisoformat(visit["sessionExpiresAt"]) <= ends
    link, token = await share(client, space, item_id)
    visit = (await anybody.get(public(link), headers=by(token))).json()["data"]
    lasts = datetime.fromisoformat(visit["sessionExpiresAt"]) - utc_now()
    assert timedelta(minutes=59) < lasts <= timedelta(hours=1)


async def test_rights_to_create_see_and_revoke_links(client: Client, space: Space) -> None:
    item_id = await make_item(space)
    link, _ = await share(client, space, item_id)
    path, one = links_of(space, item_id), f"{links_of(space, item_id)}/{link['id']}"
    for role in (Role.EDITOR, Role.VIEWER):
        _, token = await space.member(role)
        member = client.with_token(token)
        assert (await member.post(path, json={})).status_code == 403
        assert (await member.delete(one)).status_code == 403
        seen = await member.get(path)
        assert [entry["id"] for entry in seen.json()["data"]["shareLinks"]] == [link["id"]]
    _, token = await space.member(Role.GUEST)
    guest = client.with_token(token)
    for answer in (await guest.get(path), await guest.post(path, json={}), await guest.delete(one)):
        assert answer.status_code in {403, 404}
    other = await make_item(space)
    assert (await client.delete(f"{links_of(space, other)}/{link['id']}")).status_code == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt"),
        ({"expiresAt": "soon"}, "expiresAt"),
        ({"expiresAt": 4_000_000_000}, "expiresAt"),
        ({"maxUses": 0}, "maxUses"),
        ({"maxUses": -1}, "maxUses"),
        ({"maxUses": 1.5}, "maxUses"),
        ({"maxUses": "1"}, "maxUses"),
        ({"maxUses": 10**30}, "maxUses"),
        ({"allowDownload": "true"}, "allowDownload"),
        ({"allowDownload": None}, "allowDownload"),
        ({"token": "mine"}, "token"),
        ({"useCount": 0}, "useCount"),
    ],
)
async def test_bad_share_links_are_refused(
    client: Client, space: Space, body: dict[str, object], path: str
) -> None:
    answer = await client.post(links_of(space, await make_item(space)), json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == path


@pytest.mark.parametrize("kind", ["automation", "action", "data_source", "external_resource"])
async def test_kinds_that_cannot_be_shared(client: Client, space: Space, kind: str) -> None:
    answer = await client.post(links_of(space, await make_item(space, kind)), json={})
    assert (answer.status_code, answer.json()["error"]) == (422, "unsupported")


async def test_a_link_ends_when_its_creator_lost_access_to_the_item(
    client: Client, space: Space, anybody: Client
) -> None:
    folder = await make_item(space)
    user_id, key = await space.member(Role.EDITOR)
    access, manager = f"/v1/items/{folder}/access", {"userId": str(user_id), "level": "manage"}
    await client.put(access, json={"accessMode": "open", "grants": [manager]})
    editors, editors_token = await share(client.with_token(key), space, folder)
    owners, owners_token = await share(client, space, folder)
    shown = {editors["id"]: editors_token, owners["id"]: owners_token}

    async def opened() -> set[str]:
        """The links that open, as their visitors see it and as the list says."""
        listed = (await client.get(links_of(space, folder))).json()["data"]["shareLinks"]
        visits = {
            one: (await anybody.get(f"/v1/share/{one}", headers=by(token))).status_code
            for one, token in shown.items()
        }
        found = {one for one, status in visits.items() if status == 200}
        assert {link["id"] for link in listed if link["open"]} == found
        return found

    both = {editors["id"], owners["id"]}
    assert await opened() == both
    await client.put(access, json={"accessMode": "restricted", "grants": [manager]})
    assert await opened() == both
    await client.put(access, json={"accessMode": "restricted", "grants": []})
    assert await opened() == {owners["id"]}
    await client.put(access, json={"accessMode": "open", "grants": []})
    assert await opened() == both
    await space.remove(user_id)
    assert await opened() == {owners["id"]}
    await client.delete(f"{links_of(space, folder)}/{owners['id']}")
    await change_link(space, editors, expires_at=utc_now())
    assert await opened() == set()


async def test_a_link_repeated_under_its_key_is_one_link(client: Client, space: Space) -> None:
    item_id = await make_item(space)
    key = {"Idempotency-Key": "k"}
    answers = [await client.post(links_of(space, item_id), json={}, headers=key) for _ in "ab"]
    assert answers[0].content == answers[1].content
    async with space.database.transaction() as work:
        counted = select(func.count()).where(share_link.c.workspace_item_id == item_id)
        assert await work.scalar(counted) == 1


async def test_a_folder_shows_what_is_open_and_directly_in_it(
    client: Client, space: Space, anybody: Client
) -> None:
    folder = await make_item(space)
    below = {"parent_item_id": folder}
    first = await make_item(space, "page", **below, position=1, title="First")
    second = await make_item(space, "folder", **below, position=2, title="Second")
    await make_item(space, "page", **below, access_mode="restricted", title="Secret")
    await make_item(space, "page", **below, deleted_at=utc_now(), title="Gone")
    await make_item(space, "page", **below, archived=True, title="Old")
    await make_item(space, "page", parent_item_id=second, title="Deeper")
    await make_item(space, "page", title="Beside")
    link, token = await share(client, space, folder)
    answer = await anybody.get(public(link), headers=by(token), params={"limit": "1"})
    visit = answer.json()["data"]
    seen = visit["content"]["children"]
    params = {"limit": "1", "cursor": visit["content"]["cursor"]}
    rest = await anybody.get(public(link), headers=in_session(visit["session"]), params=params)
    seen += rest.json()["data"]["content"]["children"]
    assert [one["id"] for one in seen] == [str(first), str(second)]
    assert rest.json()["data"]["content"]["cursor"] is None
    for hidden in (str(space.id), str(space.user_id), "Secret", "Gone", "Deeper", "restricted"):
        assert hidden not in answer.text + rest.text


async def _shared_file(client: Client, space: Space, **body: Any) -> tuple[Json, str, Json, UUID]:
    made = await stored(client, space, b"shared bytes", params={"name": "s.txt"})
    item_id = await make_item(space, "file", target_id=made["fileId"])
    link, token = await share(client, space, item_id, **body)
    return link, token, made, item_id


async def test_a_file_that_may_be_taken_along(
    client: Client, space: Space, anybody: Client
) -> None:
    link, token, made, item_id = await _shared_file(client, space, allowDownload=True)
    visit = (await anybody.get(public(link), headers=by(token))).json()["data"]
    url = visit["content"]["downloadUrl"]
    assert (visit["content"]["name"], visit["content"]["byteSize"]) == ("s.txt", 12)
    assert url != made["downloadUrl"]
    assert (await anybody.get(url)).content == b"shared bytes"
    path, session = public(link, "/download"), in_session(visit["session"])
    assert (await anybody.get(path, headers=session)).content == b"shared bytes"
    part = await anybody.get(path, headers={**session, "Range": "bytes=0-5"})
    assert (part.status_code, part.content) == (206, b"shared")
    assert await uses(space, link) == 1
    assert (await anybody.get(path, headers=by(token))).content == b"shared bytes"
    assert await uses(space, link) == 2
    assert space.email not in str(visit)
    assert made["downloadUrl"] not in str(visit)

    await change_link(space, link, allow_download=False)
    assert (await anybody.get(url)).status_code == 404
    assert (await anybody.get(path, headers=session)).status_code == 403
    await change_link(space, link, allow_download=True)
    assert (await anybody.get(url)).status_code == 200
    await client.delete(f"{links_of(space, item_id)}/{link['id']}")
    assert (await anybody.get(url)).status_code == 404
    assert (await anybody.get(made["downloadUrl"])).status_code == 200


async def test_a_file_that_may_only_be_looked_at(
    client: Client, space: Space, anybody: Client
) -> None:
    link, token, _, _ = await _shared_file(client, space)
    visit = (await anybody.get(public(link), headers=by(token))).json()["data"]
    assert "downloadUrl" not in visit["content"]
    for shown in (in_session(visit["session"]), by(token)):
        refused = await anybody.get(public(link, "/download"), headers=shown)
        assert (refused.status_code, refused.json()["error"]) == (403, "denied")
    assert await uses(space, link) == 1


async def test_an_item_without_a_download_says_so(
    client: Client, space: Space, anybody: Client
) -> None:
    link, token = await share(client, space, await make_item(space), allowDownload=True)
    refused = await anybody.get(public(link, "/download"), headers=by(token))
    assert (refused.status_code, refused.json()["error"]) == (422, "unsupported")
    assert "no file to download" in refused.json()["message"]
    wrong = await anybody.get(public(link, "/download"), headers=by(f"{token}x"))
    assert wrong.status_code == 404
    assert await uses(space, link) == 0


async def test_the_url_of_a_link_opens_in_a_browser(
    client: Client, space: Space, anybody: Client
) -> None:
    link, token = await share(client, space, await make_item(space, title="Secret plans"))
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    page = await anybody.get(link["url"], headers=browser, params={"token": token})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert "Secret" not in page.text
    assert await uses(space, link) == 0
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5"):
        opened = await anybody.get(link["url"], headers={**by(token), "Accept": accept})
        assert opened.json()["data"]["item"]["title"] == "Secret plans"


async def test_a_database_shows_its_records_and_no_people(
    client: Client, space: Space, anybody: Client
) -> None:
    fields = [
        {"label": "Price", "kind": "number"},
        {"label": "Owner", "kind": "person"},
        {"label": "Files", "kind": "file"},
        {"label": "By", "kind": "created_by"},
        {"label": "Stage", "kind": "select", "options": [{"name": "Open"}]},
    ]
    answer = await client.post(f"{space.path}/databases", json={"label": "Goods", "fields": fields})
    assert answer.status_code == 201, answer.text
    database = answer.json()["data"]
    for number in range(3):
        data = {"price": number, "owner": [str(space.user_id)], "stage": "open"}
        body = {"title": f"Good {number}", "data": data}
        made = await client.post(f"/v1/databases/{database['id']}/records", json=body)
        assert made.status_code == 201, made.text
    link, token = await share(client, space, database["itemId"])
    opened = await anybody.get(public(link), headers=by(token), params={"limit": "2"})
    assert opened.status_code == 200, opened.text
    visit = opened.json()["data"]
    content = visit["content"]
    assert [one["key"] for one in content["fields"]] == ["title", "price", "stage"]
    params = {"limit": "2", "cursor": content["cursor"]}
    rest = await anybody.get(public(link), headers=in_session(visit["session"]), params=params)
    records = content["records"] + rest.json()["data"]["content"]["records"]
    assert sorted(one["title"] for one in records) == ["Good 0", "Good 1", "Good 2"]
    assert records[0]["data"].keys() <= {"title", "price", "stage"}
    for hidden in (str(space.user_id), str(space.id), "owner", "relations", "createdBy"):
        assert hidden not in opened.text + rest.text
    bad = await anybody.get(
        public(link), headers=in_session(visit["session"]), params={"cursor": "x"}
    )
    assert bad.status_code == 400


async def test_a_page_shows_its_blocks_and_names_nothing(
    client: Client, space: Space, anybody: Client
) -> None:
    made = await client.post("/v1/items", json={"kind": "page", "title": "Plan"})
    assert made.status_code == 201, made.text
    page = made.json()["data"]["item"]
    picture = await stored(client, space, b"picture", headers={"Content-Type": "image/png"})
    hidden = await stored(client, space, b"hidden", headers={"Content-Type": "image/png"})
    await make_item(space, "file", target_id=hidden["fileId"], access_mode="restricted")
    blocks = [
        {"kind": "image", "content": {"fileId": picture["fileId"]}},
        {"kind": "image", "content": {"fileId": hidden["fileId"]}},
    ]
    written = await client.put(f"/v1/surfaces/{page['targetId']}", json={"blocks": blocks})
    assert written.status_code == 200, written.text
    link, token = await share(client, space, page["id"], allowDownload=True)
    opened = await anybody.get(public(link), headers=by(token))
    assert opened.status_code == 200, opened.text
    shown = opened.json()["data"]["content"]["blocks"]
    assert [one["kind"] for one in shown] == ["image", "image"]
    assert (await anybody.get(shown[0]["content"]["downloadUrl"])).content == b"picture"
    assert "downloadUrl" not in shown[1]["content"]
    for name in (str(space.id), str(space.user_id), hidden["fileId"], page["targetId"]):
        assert name not in opened.text


async def test_visits_are_logged_under_their_link(
    client: Client, space: Space, anybody: Client, app: FastAPI
) -> None:
    link, token = await share(client, space, await make_item(space))
    await anybody.get(public(link), params={"token": token})
    await anybody.get(public(link), params={"token": "wrong"})
    await app.state.services.request_log.flush()
    logs = (await client.get(f"{space.path}/api-keys/request-logs")).json()["data"]
    visits = [one for one in logs if one["principalType"] == "share_link"]
    assert [(one["principalId"], one["path"]) for one in visits] == [(link["id"], public(link))]


async def test_no_secret_is_kept_or_logged(
    client: Client,
    space: Space,
    anybody: Client,
    app: FastAPI,
    capsys: pytest.CaptureFixture[str],
) -> None:
    item_id = await make_item(space)
    answer = await client.post(
        links_of(space, item_id), json={}, headers={"Idempotency-Key": "canary"}
    )
    made = answer.json()["data"]
    link, token = made, made["token"]
    visit = (await anybody.get(public(link), params={"token": token})).json()["data"]
    assert token not in (await client.get(links_of(space, item_id))).text
    await app.state.services.request_log.flush()
    async with space.database.transaction() as work:
        for table in ("share_link", "idempotency_reply", "request_log", "item", "outbox"):
            dump = await work.rows(text(f'SELECT CAST(t AS text) FROM "{table}" t'))  # noqa: S608
            assert not any(token in row[0] or visit["session"] in row[0] for row in dump)
    printed = capsys.readouterr().out
    for secret in (token, visit["session"]):
        assert secret not in printed


async def test_a_member_with_access_to_an_item_lists_its_links(
    client: Client, space: Space
) -> None:
    item_id = await make_item(space)
    await share(client, space, item_id)
    path = links_of(space, item_id)
    poor = await client.with_token(await space.key([Scope.WORKSPACE_READ])).get(path)
    assert poor.content == (await client.get(path)).content
    _, guest = await space.member(Role.GUEST)
    assert (await client.with_token(guest).get(path)).status_code == 404


async def deals(client: Client, space: Space) -> Json:
    """A database of three records with an amount, and a person."""
    kinds = {"amount": "number", "owner": "person"}
    fields = [{"key": key, "label": key.title(), "kind": kind} for key, kind in kinds.items()]
    body = {"label": "Deals", "fields": fields}
    database: Json = (await client.post(f"{space.path}/databases", json=body)).json()["data"]
    for amount in (1, 2, 2):
        record = {"title": "A deal", "data": {"amount": amount}}
        await client.post(f"/v1/databases/{database['id']}/records", json=record)
    return database


async def test_a_dashboard_shows_figures_that_its_creator_sees(
    client: Client, anybody: Client, space: Space
) -> None:
    database = await deals(client, space)
    named = {"databaseId": database["id"]}
    bars = {**named, "type": "bar", "aggregate": {"op": "count"}}
    contents = [
        ("number", {**named, "aggregate": {"op": "sum", "field": "amount"}}),
        ("chart", {**bars, "xFieldKey": "amount"}),
        ("chart", {**bars, "xFieldKey": "owner"}),
        ("number", {**named, "aggregate": {"op": "count"}, "filter": {"field": "gone"}}),
    ]
    blocks = [
        {"kind": kind, "content": content, "x": 0, "y": 4 * place, "w": 6, "h": 4}
        for place, (kind, content) in enumerate(contents)
    ]
    item = {"workspaceId": str(space.id), "kind": "dashboard", "title": "Sales"}
    made = await client.post("/v1/items", json={**item, "content": {"blocks": blocks}})
    link, token = await share(client, space, made.json()["data"]["item"]["id"])

    async def figures() -> list[Any]:
        visit = await anybody.get(public(link), headers=by(token))
        assert visit.status_code == 200, visit.text
        return [block.get("figures") for block in visit.json()["data"]["content"]["blocks"]]

    points = [{"name": "1", "value": 1}, {"name": "2", "value": 2}]
    assert await figures() == [
        {"label": "Sum: Amount", "total": 5, "points": []},
        {"label": "Number of records", "xLabel": "Amount", "total": 3, "points": points},
        # People are not shared, and a filter names a field that was deleted.
        *(None, None),
    ]
    # Its creator no longer sees the database.
    await client.delete(f"/v1/items/{database['itemId']}")
    assert await figures() == [None] * 4
