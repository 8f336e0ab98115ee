"""Signing in at an identity provider, and refused attempts to sign in."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from fastapi import FastAPI
from joserfc.jwk import ECKey
from sqlalchemy import func, select

from api.app import create_app
from models.people.credentials import browser_session
from models.people.users import app_user
from runtime.configuration.settings import Settings, SettingsError, load_settings
from tests.support.identity_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    Claims,
    Provider,
    identity_provider,
)
from tests.support.visitor import ORIGIN, Visitor
from tests.support.watched import WatchedDatabase


@pytest.fixture
def provider() -> Iterator[Provider]:
    with identity_provider() as provider:
        yield provider


@pytest_asyncio.fixture
async def platform(
    settings: Settings, provider: Provider, database: WatchedDatabase
) -> AsyncIterator[FastAPI]:
    """The application of a platform that has this provider."""
    own = settings.model_copy(
        update={
            "oidc_issuer": provider.issuer,
            "oidc_jwks": f"{provider.issuer}/jwks",
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": type(settings.secret_key)(CLIENT_SECRET),
        }
    )
    app = create_app(own, database=database, background=())
    async with app.router.lifespan_context(app):
        yield app


@pytest_asyncio.fixture
async def person(platform: FastAPI) -> AsyncIterator[Visitor]:
    async with Visitor(platform) as visitor:
        yield visitor


@pytest_asyncio.fixture(autouse=True)
async def _nobody_yet(database: WatchedDatabase) -> None:
    async with database.transaction() as work:
        await work.execute(browser_session.delete())


async def asked(person: Visitor, target: str = "/") -> str:
    """The address of the provider to which a person is led."""
    answer = await person.get("/sign-in/start", params={"next": target})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def sessions(database: WatchedDatabase) -> int:
    async with database.reading() as work:
        return int(await work.scalar(select(func.count()).select_from(browser_session)))


async def back(person: Visitor, url: str, status: int) -> str:
    """Come back from the provider, which is another site; the text of the answer."""
    answer = await person.get(url.removeprefix(ORIGIN), headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == status, answer.text
    return answer.text if status != 303 else str(answer.headers["location"])


async def test_a_person_signs_in_and_is_led_on(
    person: Visitor, provider: Provider, database: WatchedDatabase
) -> None:
    page = await person.get("/sign-in", params={"next": "/runs/1"})
    assert 'href="/sign-in/start?next=%2Fruns%2F1"' in page.text
    url = provider.consent(await asked(person, "/runs/1"))
    assert await back(person, url, 303) == "/runs/1"
    assert person.cookie is not None
    start = (await person.get("/")).text
    assert "Create a workspace" in start
    assert "invite you at <b>ann@example.test</b>" in start
    async with database.reading() as work:
        known = app_user.c.issuer == provider.issuer, app_user.c.subject == "ann"
        (row,) = await work.rows(select(app_user.c.email, app_user.c.name).where(*known))
    assert tuple(row) == ("ann@example.test", "Ann")
    await back(person, url, 401)  # the same answer once more
    assert await sessions(database) == 1


async def test_a_sign_in_does_not_redirect_elsewhere(person: Visitor, provider: Provider) -> None:
    url = provider.consent(await asked(person, "https://evil.test/"))
    assert await back(person, url, 303) == "/"


@pytest.mark.parametrize(
    "changes",
    [{"state": "forged"}, {"state": ""}, {"code": "forged"}, {"iss": "https://evil.test"}],
    ids=str,
)
async def test_a_forged_answer_does_not_sign_in(
    person: Visitor, provider: Provider, database: WatchedDatabase, changes: dict[str, str]
) -> None:
    await back(person, provider.consent(await asked(person), **changes), 401)
    assert person.cookie is None
    assert await sessions(database) == 0


async def test_an_answer_for_another_browser_does_not_sign_in(
    platform: FastAPI, person: Visitor, provider: Provider, database: WatchedDatabase
) -> None:
    """An attacker's answer, sent to a victim, does not sign the victim in as the attacker."""
    url = provider.consent(await asked(person))
    async with Visitor(platform) as victim:
        assert "Sign-in failed" in await back(victim, url, 401)
        await asked(victim)
        await back(victim, url, 401)
    assert await sessions(database) == 0


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another sign-in"}, {"nonce": None}, {"aud": "another"}, {"exp": 1},
        {"iss": "https://evil.test"}, {"sub": ""},
    ],
    ids=str,
)  # fmt: skip
async def test_an_invalid_token_does_not_sign_in(
    person: Visitor, provider: Provider, database: WatchedDatabase, claims: Claims
) -> None:
    provider.claims = claims
    await back(person, provider.consent(await asked(person)), 401)
    assert await sessions(database) == 0


async def test_a_token_of_another_key_does_not_sign_in(
    person: Visitor, provider: Provider, database: WatchedDatabase
) -> None:
    await back(person, provider.consent(await asked(person)), 303)
    assert await sessions(database) == 1
    provider.key = ECKey.import_key(
        {**ECKey.generate_key("P-256").as_dict(private=True), "kid": provider.key.kid}
    )
    await back(person, provider.consent(await asked(person)), 401)
    assert await sessions(database) == 1


async def test_a_refusal_of_the_provider_is_reported(person: Visitor, provider: Provider) -> None:
    url = provider.consent(await asked(person))
    refused = url.replace("code=", "error=access_denied&x=")
    assert "denied it" in await back(person, refused, 401)


async def test_a_provider_that_is_away_is_reported(person: Visitor, provider: Provider) -> None:
    url = provider.consent(await asked(person))
    provider.down = True
    assert "is unavailable" in await back(person, url, 502)
    assert person.cookie is None


async def test_the_attempt_is_sealed_and_kept_from_scripts(person: Visitor) -> None:
    answer = await person.get("/sign-in/start")
    cookie = answer.headers["set-cookie"]
    for word in ("__Host-sign-in=", "HttpOnly", "Secure", "SameSite=lax", "Max-Age=600"):
        assert word in cookie
    state = answer.headers["location"].partition("state=")[2].partition("&")[0]
    assert state
    assert state not in cookie


async def test_without_a_provider_there_is_no_way_to_one(nobody: Visitor) -> None:
    assert (await nobody.get("/sign-in/start")).status_code == 404
    assert (await nobody.get("/sign-in/callback")).status_code in {401, 404}
    assert "workspace sign-in" in (await nobody.get("/sign-in")).text


def test_a_client_needs_its_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/x")
    monkeypatch.setenv("WORKSPACE_SECRET_KEY", "x" * 48)
    monkeypatch.setenv("WORKSPACE_OIDC_CLIENT_ID", "console")
    with pytest.raises(SettingsError, match="WORKSPACE_OIDC_ISSUER"):
        load_settings()
