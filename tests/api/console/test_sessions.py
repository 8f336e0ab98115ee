"""Sessions of a browser: how they begin and end, and what an attacker gets out of them."""

import asyncio
import base64
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, update

from api.console.rendering import local_path
from models.messages.realtime import realtime_ticket
from models.people.credentials import (
    IDLE,
    LIFETIME,
    LINK_LIFETIME,
    MOST_LINKS,
    browser_session,
    new_token,
    purge_sessions,
    sign_in_link,
)
from runtime.crypto import fingerprint
from runtime.database import Database
from tests.support.client import Client
from tests.support.spaces import Space, add_person
from tests.support.visitor import (
    COOKIE,
    HTML,
    Visitor,
    form_key,
    form_token,
    link_for,
    signed_in,
    unknown_link,
)


async def sessions_of(space: Space) -> int:
    async with space.database.reading() as work:
        mine = select(func.count()).where(browser_session.c.user_id == space.user_id)
        return int(await work.scalar(mine))


async def age(space: Space, visitor: Visitor, **columns: timedelta) -> None:
    """Move moments of a session into the past."""
    values = {name: browser_session.c[name] - by for name, by in columns.items()}
    this = browser_session.c.digest == fingerprint(str(visitor.cookie).encode())
    async with space.database.transaction() as work:
        await work.execute(update(browser_session).where(this).values(values))


async def is_in(visitor: Visitor) -> bool:
    answer = await visitor.get("/")
    assert answer.status_code == 303
    return answer.headers["location"].startswith("/workspaces/")


async def test_a_link_begins_a_session_once(nobody: Visitor, app: FastAPI, space: Space) -> None:
    link = await link_for(space)
    for _ in range(2):  # what reads links ahead does not use them up
        page = await nobody.get(link)
        assert page.status_code == 200
        assert "Sign in as Test?" in page.text
    assert nobody.cookie is None
    answer = await nobody.post(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    for word in (f"{COOKIE}=", "HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert word in cookie
    assert "domain" not in cookie.lower()
    assert await is_in(nobody)
    async with Visitor(app) as second:
        for answer in (await second.get(link), await second.post(link)):
            assert answer.status_code == 401
            assert "workspace sign-in" in answer.text
        assert second.cookie is None


async def test_only_digests_are_stored(owner: Visitor, space: Space) -> None:
    token = str(owner.cookie).encode()
    async with space.database.reading() as work:
        stored = list(await work.rows(select(browser_session.c.digest)))
    assert fingerprint(token) in [bytes(row.digest) for row in stored]
    assert not any(token in bytes(row.digest) for row in stored)


@pytest.mark.parametrize("word", ["", "short", "x" * 44, "ä" * 43, "../" * 10])
async def test_a_link_that_was_never_made_does_not_sign_in(nobody: Visitor, word: str) -> None:
    link = f"/sign-in/{word}" if word else unknown_link()
    assert (await nobody.post(link)).status_code in {401, 404}
    assert nobody.cookie is None


async def test_links_of_one_person_work_beside_each_other(
    app: FastAPI, nobody: Visitor, space: Space, foreign: Space
) -> None:
    """A new link ends no other up to a bound; then the oldest of the same person ends."""
    theirs = await link_for(foreign)
    links = [await link_for(space) for _ in range(MOST_LINKS + 1)]
    assert (await nobody.post(links[0])).status_code == 401
    for link in (*links[1:], theirs):
        async with Visitor(app) as visitor:
            assert (await visitor.post(link)).status_code == 303
            assert (await nobody.post(link)).status_code == 401, "it works once"


async def test_links_made_at_once_stay_within_the_bound(space: Space) -> None:
    links = await asyncio.gather(*(link_for(space) for _ in range(2 * MOST_LINKS)))
    assert len(set(links)) == 2 * MOST_LINKS
    async with space.database.reading() as work:
        own = sign_in_link.c.user_id == space.user_id
        left = list(await work.rows(select(sign_in_link.c.digest).where(own)))
    assert len(left) == MOST_LINKS


async def test_an_old_link_is_void(nobody: Visitor, space: Space) -> None:
    link = await link_for(space)
    async with space.database.transaction() as work:
        earlier = sign_in_link.c.expires_at - LINK_LIFETIME
        await work.execute(update(sign_in_link).values(expires_at=earlier))
    assert (await nobody.get(link)).status_code == 401
    assert (await nobody.post(link)).status_code == 401
    assert nobody.cookie is None


async def test_a_planted_session_is_not_the_one_that_begins(
    app: FastAPI, space: Space, foreign: Space
) -> None:
    """An attacker who knows the cookie from before the sign-in knows nothing after it."""
    for planted in (new_token(), (await signed_in(app, foreign)).cookie):
        async with Visitor(app, planted) as victim:
            await victim.post(await link_for(space))
            assert victim.cookie not in {None, planted}
        async with Visitor(app, planted) as attacker:
            assert not await is_in(attacker)
    assert await sessions_of(foreign) == 0


async def test_signing_out_ends_the_session_at_once(
    app: FastAPI, owner: Visitor, space: Space
) -> None:
    kept = owner.cookie
    token = await owner.token(space.path.removeprefix("/v1"))
    answer = await owner.post("/sign-out", data={"csrfToken": token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert owner.cookie is None
    async with Visitor(app, kept) as thief:
        assert not await is_in(thief)
    assert await sessions_of(space) == 0


async def test_sessions_end_by_themselves(app: FastAPI, space: Space) -> None:
    for column, by in (("last_used_at", IDLE), ("expires_at", LIFETIME)):
        async with await signed_in(app, space) as visitor:
            assert await is_in(visitor)
            await age(space, visitor, **{column: by})
            assert not await is_in(visitor)
    assert await sessions_of(space) == 2
    async with space.database.transaction() as work:
        assert await purge_sessions(work) >= 2
    assert await sessions_of(space) == 0


async def test_use_is_written_once_a_minute(app: FastAPI, owner: Visitor, space: Space) -> None:
    await age(space, owner, last_used_at=timedelta(hours=2))
    this = browser_session.c.digest == fingerprint(str(owner.cookie).encode())

    async def idle() -> timedelta:
        await app.state.services.request_log.flush()
        async with space.database.reading() as work:
            past = await work.scalar(
                select(func.now() - browser_session.c.last_used_at).where(this)
            )
        assert isinstance(past, timedelta)
        return past

    assert await idle() > timedelta(hours=1)
    # A page that is left open refreshes itself, and does not keep its session.
    page = space.path.removeprefix("/v1")
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert (await owner.get(page, headers=part)).status_code == 200
    assert await idle() > timedelta(hours=1)
    await owner.get("/")
    assert await idle() < timedelta(hours=1)


# ---- forms of others


async def test_a_form_of_another_site_changes_nothing(owner: Visitor, space: Space) -> None:
    token = await owner.token(space.path.removeprefix("/v1"))
    for site in ("cross-site", "same-site", "none", "", "same-origin, cross-site"):
        answer = await owner.post(
            "/sign-out", data={"csrfToken": token}, headers={"Sec-Fetch-Site": site}
        )
        assert answer.status_code == 403, site
    del owner.headers["Sec-Fetch-Site"]
    assert (await owner.post("/sign-out", data={"csrfToken": token})).status_code == 403
    assert await sessions_of(space) == 1


async def test_a_link_is_not_used_by_a_form_of_another_site(nobody: Visitor, space: Space) -> None:
    """A page of an attacker does not sign a visitor in as the attacker."""
    link = await link_for(space)
    answer = await nobody.post(link, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert nobody.cookie is None
    assert (await nobody.post(link)).status_code == 303


async def test_a_form_needs_the_token_of_its_own_session(
    app: FastAPI, owner: Visitor, space: Space
) -> None:
    page = space.path.removeprefix("/v1")
    async with await signed_in(app, space) as other_session:
        stolen = await other_session.token(page)
    own = await owner.token(page)
    for token in ("", "x", stolen, own[:-1], own + "A", str(owner.cookie)):
        assert (await owner.post("/sign-out", data={"csrfToken": token})).status_code == 403
    assert (await owner.post("/sign-out")).status_code == 403
    assert await sessions_of(space) == 2
    answer = await owner.post("/sign-out", headers={"X-CSRF-Token": own})
    assert answer.status_code == 303


async def test_only_forms_are_taken(owner: Visitor, space: Space) -> None:
    token = await owner.token(space.path.removeprefix("/v1"))
    header = {"X-CSRF-Token": token}
    assert (await owner.post("/sign-out", json={}, headers=header)).status_code == 415
    twice = f"csrfToken={token}&csrfToken={token}"
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await owner.post("/sign-out", content=twice, headers=kind)).status_code == 403


async def test_a_cookie_beside_another_of_its_name_counts_for_nothing(
    app: FastAPI, owner: Visitor
) -> None:
    async with Visitor(app) as visitor:
        doubled = f"{COOKIE}={owner.cookie}; {COOKIE}={new_token()}"
        answer = await visitor.get("/", headers={"Cookie": doubled})
    assert answer.headers["location"] == "/sign-in"


# ---- where people are led


@pytest.mark.parametrize(
    ("wanted", "led"),
    [
        ("/runs/1?x=2", "/runs/1?x=2"),
        ("https://evil.test/", "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("\\\\evil.test", "/"),
        ("/ok\\..", "/"),
        ("/\t/evil.test", "/"),
        ("javascript:alert(1)", "/"),
        ("runs", "/"),
        ("/ä", "/"),
        ("", "/"),
    ],
)
async def test_a_sign_in_does_not_redirect_elsewhere(owner: Visitor, wanted: str, led: str) -> None:
    assert local_path(wanted) == led
    answer = await owner.get("/sign-in", params={"next": wanted})
    assert (answer.status_code, answer.headers["location"]) == (303, led)


async def test_a_visitor_is_led_to_sign_in_and_back(nobody: Visitor, space: Space) -> None:
    path = f"{space.path.removeprefix('/v1')}?x=1&y=2"
    answer = await nobody.get(path)
    assert answer.status_code == 303
    url = urlsplit(answer.headers["location"])
    assert url.path == "/sign-in"
    await nobody.post(await link_for(space))
    answer = await nobody.get(f"{url.path}?{url.query}")
    assert answer.headers["location"] == path


@pytest.mark.parametrize("address", ["http://[", "http://[::1", "//[x]/", "\xe9://[", "a" * 9_000])
async def test_the_address_of_a_page_may_be_any_text(
    nobody: Visitor, space: Space, address: str
) -> None:
    headers = {b"HX-Request": b"true", b"HX-Current-URL": address.encode("latin-1")}
    answer = await nobody.get(space.path.removeprefix("/v1"), headers=headers)
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"] == "/sign-in"


async def test_a_refused_part_of_a_page_leads_to_sign_in(nobody: Visitor, space: Space) -> None:
    path = space.path.removeprefix("/v1")
    headers = {"HX-Request": "true", "HX-Current-URL": f"https://evil.test{path}?a=b"}
    answer = await nobody.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"] == f"/sign-in?next={path}%3Fa%3Db"


# ---- clients of the API


async def test_clients_of_the_api_see_nothing_of_pages(client: Client, owner: Visitor) -> None:
    for path in ("/", "/sign-in", "/sign-out", "/workspaces/x"):
        answer = await client.get(path)
        assert answer.status_code == 404
        assert "This path does not exist." in answer.json()["message"]
        assert (await client.with_token(None).get(path)).status_code == 401
        assert (await client.post(path)).status_code == 404
    # The same for a browser that asks for anything but a page.
    answer = await owner.get("/", headers={"Accept": "application/json, */*"})
    assert answer.status_code == 401
    assert answer.json()["error"] == "unauthorized"


async def test_a_script_of_a_page_writes_with_the_token_of_its_session(
    app: FastAPI, owner: Visitor, space: Space, client: Client
) -> None:
    body = {
        "label": "Goods", "kind": "inline", "format": "csv", "fields": [],
        "content": base64.b64encode(b"code\n1\n").decode(),
    }  # fmt: skip
    made = (await client.post(f"{space.path}/imports", json=body)).json()["data"]
    path = f"{space.path}/imports/{made['id']}/cancel"
    page = space.path.removeprefix("/v1")
    async with await signed_in(app, space) as other_session:
        stolen = await other_session.token(page)
    own = {"X-CSRF-Token": await owner.token(page), "Accept": "application/json"}
    for headers, status in (
        ({**own, "X-CSRF-Token": stolen}, 403),
        ({**own, "X-CSRF-Token": ""}, 403),
        ({**own, "Sec-Fetch-Site": "cross-site"}, 401),
        ({**own, "Sec-Fetch-Site": "same-site"}, 401),
    ):
        assert (await owner.post(path, json={}, headers=headers)).status_code == status
    owner.cookies.clear()
    assert (await owner.post(path, json={}, headers=own)).status_code == 401
    read = await client.get(f"{space.path}/imports/{made['id']}")
    assert read.json()["data"]["status"] == "queued"
    async with await signed_in(app, space) as person:
        mine = {"X-CSRF-Token": await person.token(page), "Accept": "application/json"}
        answer = await person.post(path, json={}, headers=mine)
    assert answer.json()["data"]["status"] == "cancelled"


async def test_a_session_of_a_browser_is_no_credential_of_the_api(
    owner: Visitor, space: Space
) -> None:
    for method, path in (("GET", "/v1/me"), ("POST", f"{space.path}/automations")):
        assert (await owner.request(method, path, json={})).status_code == 401
        assert (await owner.request(method, path, json={}, headers=HTML)).status_code == 401
    bearer = {"Authorization": f"Bearer {owner.cookie}"}
    assert (await owner.get("/v1/me", headers=bearer)).status_code == 401


async def test_an_unknown_address_is_answered_with_a_page(
    space: Space, owner: Visitor, nobody: Visitor
) -> None:
    for path in ("/nowhere", f"/workspaces/{space.id}/nowhere", "/workspaces/x", "/runs/x/y"):
        answer = await owner.get(path)
        assert (answer.status_code, "<h1>" in answer.text) == (404, True), path
        asked = await nobody.get(path)
        assert (asked.status_code, asked.headers["location"][:9]) == (303, "/sign-in?"), path
    operation = await owner.get("/v1/nowhere")
    assert operation.headers["content-type"] == "application/json"
    plain = await owner.get("/nowhere", headers={"Accept": "application/json"})
    assert (plain.status_code, plain.headers["content-type"]) == (401, "application/json")


async def test_a_person_without_a_workspace_creates_one(
    app: FastAPI, database: Database, space: Space
) -> None:
    async with database.transaction() as work:
        user_id = await add_person(work, "bo@example.com")
    async with await signed_in(app, space, user_id) as person:
        page = await person.get("/")
        assert 'action="/workspaces"' in page.text
        assert "invite you at <b>bo@example.com</b>" in page.text
        assert "curl" not in page.text.lower()
        fields = {"csrfToken": form_token(page), "idempotencyKey": form_key(page)}
        for name in ("", "x" * 300):
            refused = await person.post("/workspaces", data={**fields, "name": name})
            assert refused.status_code == 400
            assert 'aria-invalid="true"' in refused.text
        made = [
            await person.post("/workspaces", data={**fields, "name": "Bo & Co <b>"})
            for _ in range(2)
        ]
        homes = {answer.headers["location"] for answer in made}
        assert ({answer.status_code for answer in made}, len(homes)) == ({303}, 1)
        (home,) = homes
        assert "Bo &amp; Co &lt;b&gt;" in (await person.get(home)).text
        assert (await person.get("/")).headers["location"] == home
        forged = await person.post("/workspaces", data={"name": "Forged"})
        assert forged.status_code == 403
    async with Visitor(app) as nobody:
        assert (await nobody.post("/workspaces", data={"name": "Mine"})).status_code in {303, 403}


async def test_a_page_follows_the_workspace_for_a_quarter_of_an_hour(
    owner: Visitor, space: Space
) -> None:
    path = f"{space.path}/realtime/ticket"
    any_type = {"Accept": "*/*"}
    token = {"X-CSRF-Token": await owner.token(), **any_type}
    assert (await owner.post(path, headers=any_type)).status_code == 403
    answer = await owner.post(path, headers=token)
    assert answer.status_code in {200, 201}, answer.text
    async with space.database.reading() as work:
        mine = realtime_ticket.c.user_id == space.user_id
        statement = select(realtime_ticket.c.session_expires_at - func.now()).where(mine)
        left = await work.scalar(statement)
    assert timedelta() < left <= timedelta(minutes=15)
    # A session that is signed out gets no other ticket.
    await owner.post("/sign-out", headers={"X-CSRF-Token": token["X-CSRF-Token"]})
    assert (await owner.post(path, headers=token)).status_code == 401
