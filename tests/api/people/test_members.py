"""Members and invitations (interface.md#roles)."""

import asyncio
import uuid
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from sqlalchemy import select

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role, Scope
from models.people.request_logs import request_log
from tests.support.client import Client
from tests.support.spaces import Space

Session = Callable[[str], Client]


@pytest.fixture
def session(client: Client, issuer: DevelopmentIssuer) -> Session:
    """A client in the session of the user with this e-mail address."""
    return lambda email: client.with_token(issuer.mint(email, "Somebody"))


async def invite(client: Client, space: Space, email: str, role: str = "editor") -> str:
    body = {"email": email, "role": role}
    answer = await client.post(f"{space.path}/invitations", json=body)
    assert answer.status_code == 201, answer.text
    token: str = answer.json()["data"]["token"]
    return token


def somebody() -> str:
    return f"new-{uuid.uuid4().hex}@example.test"


async def test_members_are_listed_page_by_page(client: Client, space: Space) -> None:
    added = [(await space.member(role))[0] for role in (Role.EDITOR, Role.VIEWER, Role.GUEST)]
    seen: list[str] = []
    cursor = None
    while True:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await client.get(f"{space.path}/members", params=query)).json()["data"]
        seen += [member["userId"] for member in page["members"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(str(one) for one in [space.user_id, *added])
    assert seen[0] == str(space.user_id)


async def test_an_invited_person_joins(client: Client, space: Space, session: Session) -> None:
    email = somebody()
    token = await invite(client, space, email.upper())
    newcomer = session(email)
    entry = (await newcomer.post(f"/v1/invitations/{token}/accept")).json()["data"]
    assert (entry["workspace"]["id"], entry["role"]) == (str(space.id), "editor")
    assert (await newcomer.get(space.path)).status_code == 200
    again = await newcomer.post(f"/v1/invitations/{token}/accept")
    assert again.status_code == 404
    listed = (await client.get(f"{space.path}/invitations")).json()["data"]["invitations"]
    assert [one["acceptedAt"] is not None for one in listed] == [True]
    assert token not in str(listed)


async def test_an_invitation_is_for_one_person(
    client: Client, space: Space, session: Session
) -> None:
    token = await invite(client, space, somebody())
    refused = await session(somebody()).post(f"/v1/invitations/{token}/accept")
    unknown = await session(somebody()).post(f"/v1/invitations/{'x' * 43}/accept")
    assert refused.status_code == unknown.status_code == 404
    assert refused.content == unknown.content
    by_key = await client.post(f"/v1/invitations/{token}/accept")
    assert by_key.status_code == 403


async def test_a_newer_invitation_replaces_the_open_one(
    client: Client, space: Space, session: Session
) -> None:
    email = somebody()
    first = await invite(client, space, email, "viewer")
    second = await invite(client, space, email, "commenter")
    newcomer = session(email)
    assert (await newcomer.post(f"/v1/invitations/{first}/accept")).status_code == 404
    assert (await newcomer.post(f"/v1/invitations/{second}/accept")).status_code == 200
    body = {"email": email, "role": "viewer"}
    member = await client.post(f"{space.path}/invitations", json=body)
    assert member.status_code == 409


async def test_a_revoked_invitation_admits_no_one(
    client: Client, space: Space, session: Session
) -> None:
    email = somebody()
    token = await invite(client, space, email)
    listed = (await client.get(f"{space.path}/invitations")).json()["data"]["invitations"]
    path = f"{space.path}/invitations/{listed[0]['id']}"
    revoked = (await client.delete(path)).json()["data"]
    assert revoked["revokedAt"] is not None
    assert (await client.delete(path)).json()["data"] == revoked
    assert (await session(email).post(f"/v1/invitations/{token}/accept")).status_code == 404


async def test_one_invitation_lets_one_caller_in_once(
    client: Client, space: Space, session: Session
) -> None:
    email = somebody()
    token = await invite(client, space, email)
    newcomer = session(email)
    await newcomer.get("/v1/me")
    answers = await asyncio.gather(
        *(newcomer.post(f"/v1/invitations/{token}/accept") for _ in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 9


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"email": "nobody", "role": "editor"}, "email"),
        ({"email": "a@b.test", "role": "king"}, "role"),
        ({"email": "a@b.test"}, "role"),
        ({"email": "a@b.test", "role": "editor", "workspaceId": "x"}, "workspaceId"),
        ({"email": 5, "role": "editor"}, "email"),
    ],
)
async def test_a_bad_invitation_says_where(
    client: Client, space: Space, body: dict[str, object], path: str
) -> None:
    answer = await client.post(f"{space.path}/invitations", json=body)
    assert answer.status_code == 400
    assert [detail["path"] for detail in answer.json()["details"]] == [path]


async def test_a_member_grants_at_most_their_own_role(client: Client, space: Space) -> None:
    admin_id, token = await space.member(Role.ADMIN)
    editor_id, _ = await space.member(Role.EDITOR)
    admin = client.with_token(token)
    owner = {"role": "owner"}
    assert (await admin.patch(f"{space.path}/members/{editor_id}", json=owner)).status_code == 403
    demoted = await admin.patch(f"{space.path}/members/{space.user_id}", json={"role": "viewer"})
    assert demoted.status_code == 403
    invited = {"email": somebody(), "role": "owner"}
    assert (await admin.post(f"{space.path}/invitations", json=invited)).status_code == 403
    promoted = await admin.patch(f"{space.path}/members/{editor_id}", json={"role": "admin"})
    assert promoted.json()["data"]["role"] == "admin"
    assert (await client.patch(f"{space.path}/members/{admin_id}", json=owner)).status_code == 200


async def test_a_workspace_keeps_an_owner(client: Client, space: Space) -> None:
    path = f"{space.path}/members/{space.user_id}"
    assert (await client.patch(path, json={"role": "admin"})).status_code == 409
    assert (await client.delete(path)).status_code == 409
    second, token = await space.member(Role.OWNER)
    other = client.with_token(token)
    answers = await asyncio.gather(
        client.delete(path), other.delete(f"{space.path}/members/{second}")
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


async def test_a_removed_member_is_out_at_once(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.EDITOR)
    member = client.with_token(token)
    assert (await member.get(space.path)).status_code == 200
    removed = await client.delete(f"{space.path}/members/{user_id}")
    assert removed.json()["data"] == {"userId": str(user_id)}
    assert (await member.get(space.path)).status_code == 404
    assert (await client.delete(f"{space.path}/members/{user_id}")).status_code == 404


async def test_any_member_may_leave_but_not_remove_others(client: Client, space: Space) -> None:
    mine, token = await space.member(Role.VIEWER)
    other, _ = await space.member(Role.VIEWER)
    viewer = client.with_token(token)
    refused = await viewer.delete(f"{space.path}/members/{other}")
    assert refused.status_code == 403
    assert "members:manage" in refused.json()["message"]
    assert (await viewer.delete(f"{space.path}/members/{mine}")).status_code == 200


async def test_the_log_keeps_no_token_however_it_is_spelled(
    client: Client, space: Space, session: Session, app: FastAPI
) -> None:
    email = somebody()
    token = await invite(client, space, email)
    newcomer = session(email)
    user_id = uuid.UUID((await newcomer.get("/v1/me")).json()["data"]["user"]["id"])
    assert (await newcomer.post(f"/v1/invitations/{token}/accept")).status_code == 200
    spelled = "".join(f"%{ord(char):02x}" for char in token)
    await newcomer.post(f"/v1/invitations/{spelled}/accept")
    await newcomer.get(f"/v1/members/{space.token}")
    await app.state.services.request_log.flush()
    async with space.database.transaction() as work:
        query = select(request_log.c.path).where(request_log.c.principal_id == user_id)
        paths = {row.path for row in await work.rows(query)}
    assert paths >= {"/v1/me", "/v1/invitations/{token}/accept"}
    assert [path for path in paths if token in path or spelled[:30] in path] == []
    assert [path for path in paths if space.token[7:] in path] == []


async def test_a_guests_permissions_are_what_the_role_says(client: Client, space: Space) -> None:
    _, token = await space.member(Role.GUEST)
    entry = (await client.with_token(token).get("/v1/workspaces")).json()["data"]["workspaces"][0]
    assert entry["permissions"] == [Scope.WORKSPACE_READ]
