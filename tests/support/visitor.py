"""A person's browser without scripts: it keeps cookies, and sends forms as browsers do."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx2

from models.people.credentials import begin_session, make_sign_in_link, new_token
from tests.support.spaces import Space

ORIGIN = "https://platform.test"
COOKIE = "__Host-session"
HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
_TOKEN = re.compile(r'name="csrfToken" value="([^"]+)"')
_KEY = re.compile(r'name="idempotencyKey" value="([^"]+)"')


class Visitor(httpx2.AsyncClient):
    """A user of the console of an application, signed in or not."""

    def __init__(self, app: Any, cookie: str | None = None) -> None:
        super().__init__(
            transport=httpx2.ASGITransport(app=app),
            base_url=ORIGIN,
            headers={**HTML, "Sec-Fetch-Site": "same-origin"},
        )
        if cookie is not None:
            self.cookies.set(COOKIE, cookie, domain=urlsplit(ORIGIN).hostname or "", path="/")
        self.app = app

    @property
    def cookie(self) -> str | None:
        return self.cookies.get(COOKIE)

    async def token(self, path: str = "/") -> str:
        """The token that the forms of a page carry."""
        return form_token(await self.get(path, follow_redirects=True))

    async def send_form(
        self, path: str, page: str = "/", headers: dict[str, str] | None = None, **fields: str
    ) -> httpx2.Response:
        """Send a form that is on another page of ours."""
        given = {"csrfToken": await self.token(page), **fields}
        return await self.post(path, data=given, headers=headers)


def form_token(page: httpx2.Response) -> str:
    found = _TOKEN.search(page.text)
    assert found is not None, page.text
    return unescape(found[1])


def form_key(page: httpx2.Response) -> str:
    """The first idempotency key on a page."""
    found = _KEY.search(page.text)
    assert found is not None, page.text
    return unescape(found[1])


async def signed_in(app: Any, space: Space, user_id: UUID | None = None) -> Visitor:
    """A member of a workspace, by default its owner, in a session of their own."""
    async with space.database.transaction() as work:
        session = await begin_session(work, user_id or space.user_id)
    return Visitor(app, session.token)


async def link_for(space: Space, user_id: UUID | None = None) -> str:
    """The path of a link that signs a member in."""
    async with space.database.transaction() as work:
        token = await make_sign_in_link(work, user_id or space.user_id)
    return f"/sign-in/{token}"


def unknown_link() -> str:
    return f"/sign-in/{new_token()}"
