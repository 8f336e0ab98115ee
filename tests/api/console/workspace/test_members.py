"""Members and invitations by their pages."""

from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.settings_pages import Visit, commands_of, posted, sent, settings_of
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


async def roles_of(client: Client, space: Space) -> dict[str, str]:
    listed = await client.get(f"{space.path}/members")
    return {one["userId"]: one["role"] for one in listed.json()["data"]["members"]}


def forms_making(role: str) -> list[tuple[str, dict[str, str]]]:
    """The forms about a member, and what is filled in."""
    return [("role", {"role": role}), ("remove", {})]


async def test_a_role_is_changed_and_a_member_removed(
    owner: Visitor, space: Space, client: Client
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    page, member = settings_of(space, "members"), settings_of(space, "members", user_id)
    assert "viewer-" in (await owner.get(page)).text
    assert await sent(owner, page, f"{member}/role", role="editor") == f"{page}?notice=saved"
    assert (await roles_of(client, space))[str(user_id)] == "editor"
    assert await sent(owner, page, f"{member}/remove") == f"{page}?notice=removed"
    assert str(user_id) not in await roles_of(client, space)


async def test_a_member_does_not_raise_their_own_role(visit: Visit, space: Space) -> None:
    admin = await visit(Role.ADMIN)
    page = settings_of(space, "members")
    viewer, _ = await space.member(Role.VIEWER)
    for user_id in (viewer, space.user_id):
        for form, fields in forms_making("owner"):
            if (user_id, form) == (viewer, "remove"):
                continue
            path = settings_of(space, "members", user_id, form)
            assert (await posted(admin, page, path, fields)).status_code == 403
    shown = (await admin.get(page)).text
    assert '<option value="viewer"' in shown
    assert '<option value="owner"' not in shown
    assert settings_of(space, "members", space.user_id, "remove") not in shown


async def test_the_last_owner_stays(owner: Visitor, space: Space) -> None:
    page = settings_of(space, "members")
    for form, fields in forms_making("viewer"):
        path = settings_of(space, "members", space.user_id, form)
        answer = await posted(owner, page, path, fields)
        assert answer.status_code == 409
        assert "A workspace needs an owner" in answer.text


async def test_a_member_leaves(app: FastAPI, space: Space) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = settings_of(space, "members")
        path = settings_of(space, "members", user_id, "remove")
        assert await sent(viewer, page, path) == "/"
        assert (await viewer.get(page)).status_code == 404


async def test_a_role_that_is_taken_away_while_a_page_is_open(
    app: FastAPI, owner: Visitor, space: Space
) -> None:
    user_id, _ = await space.member(Role.ADMIN)
    page = settings_of(space, "members")
    async with await signed_in(app, space, user_id) as admin:
        token = await admin.token(page)
        await sent(owner, page, settings_of(space, "members", user_id, "role"), role="viewer")
        path = settings_of(space, "invitations")
        fields = {"csrfToken": token, "email": "x@example.test", "role": "viewer"}
        assert (await admin.post(path, data=fields)).status_code == 403
        await space.remove(user_id)
        assert (await admin.post(path, data=fields)).status_code == 404


async def test_a_link_is_shown_once_and_makes_a_member(
    owner: Visitor, app: FastAPI, space: Space, foreign: Space, client: Client
) -> None:
    page = settings_of(space, "invitations")
    answer = await owner.send_form(page, page, email=foreign.email.upper(), role="editor")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    (link,) = [one for one in commands_of(answer) if "/invitations/" in one and "curl" not in one]
    path = link.removeprefix("https://platform.test")
    token = path.rpartition("/")[2]
    assert token not in (await owner.get(page)).text
    assert token not in str(answer.request.url)
    # The inviter is not who was invited.
    assert (await owner.get(path)).status_code == 404
    assert (await owner.send_form(path, page)).status_code == 404
    async with await signed_in(app, foreign) as invited:
        asked = (await invited.get(path)).text
        assert "Join Test?" in asked
        assert "You're invited as editor" in asked
        assert await sent(invited, path, path) == space.path.removeprefix("/v1")
        assert (await invited.get(path)).status_code == 404
        assert (await invited.send_form(path, page)).status_code == 404
    assert (await roles_of(client, space))[str(foreign.user_id)] == "editor"
    assert "accepted" in (await owner.get(page)).text
    await app.state.services.request_log.flush()
    log = (await client.get(f"{space.path}/api-keys/request-logs")).text
    assert token not in log


async def test_an_invitation_is_revoked(
    owner: Visitor, app: FastAPI, space: Space, foreign: Space, client: Client
) -> None:
    page = settings_of(space, "invitations")
    answer = await owner.send_form(page, page, email=foreign.email, role="viewer")
    link = next(one for one in commands_of(answer) if one.startswith("https://"))
    listed = await client.get(f"{space.path}/invitations")
    (invitation,) = listed.json()["data"]["invitations"]
    path = settings_of(space, "invitations", invitation["id"], "revoke")
    assert await sent(owner, page, path) == f"{page}?notice=revoked"
    async with await signed_in(app, foreign) as invited:
        assert (await invited.send_form(link, "/")).status_code == 404


async def test_a_form_pressed_twice_invites_once(
    owner: Visitor, space: Space, client: Client
) -> None:
    page = settings_of(space, "invitations")
    fields = {"csrfToken": await owner.token(page), "idempotencyKey": "one press"}
    fields |= {"email": "twice@example.test", "role": "viewer"}
    first, second = [await owner.post(page, data=fields) for _ in range(2)]
    assert second.headers["idempotency-replayed"] == "true"
    assert second.text == first.text
    for name in ("content-type", "content-security-policy", "cache-control"):
        assert second.headers[name] == first.headers[name]
    listed = await client.get(f"{space.path}/invitations")
    assert len(listed.json()["data"]["invitations"]) == 1


async def test_a_wrong_address_stays_in_its_field(owner: Visitor, space: Space) -> None:
    page = settings_of(space, "invitations")
    fields = {"csrfToken": await owner.token(page), "idempotencyKey": "one press"}
    answer = await owner.post(page, data={**fields, "email": "no address", "role": "viewer"})
    assert answer.status_code == 400
    assert 'value="no address"' in answer.text
    # The key of what was refused is free for the next attempt.
    answer = await owner.post(page, data={**fields, "email": "a@example.test", "role": "viewer"})
    assert answer.status_code == 200
    answer = await owner.send_form(page, page, email="a@example.test", role="emperor")
    assert answer.status_code == 400
