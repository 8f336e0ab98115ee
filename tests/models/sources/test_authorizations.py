"""The client that is registered at a provider, and what the answer with a token says."""

from datetime import UTC, datetime
from typing import Any

import pytest

from models.sources.authorizations.rules import OAUTH_PROVIDERS, credentials_of, oauth_client
from runtime.configuration.sections import ProviderSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME, PROVIDER = next(iter(OAUTH_PROVIDERS.items()))


def registered(**more: Any) -> Any:
    settings = {"clientId": "ours", **more}
    return oauth_client(NAME, {NAME.value: ProviderSettings.model_validate(settings)})


def test_a_client_has_what_its_operator_registered_and_else_what_the_provider_says() -> None:
    plain = registered()
    assert plain.scopes == PROVIDER.scopes
    assert (plain.token_url, plain.revocation_url) == (PROVIDER.token_url, PROVIDER.revocation_url)
    own = registered(
        scopes=("read",), tokenUrl="https://t.example/", revocationUrl="https://r.example/"
    )
    assert list(own.scopes) == ["read"]
    assert (own.token_url, own.revocation_url) == ("https://t.example/", "https://r.example/")
    assert oauth_client(NAME, {}) is None


@pytest.mark.parametrize(
    ("seconds", "expires"),
    [
        (1, "2026-01-01T00:00:01+00:00"),
        (3600, "2026-01-01T01:00:00+00:00"),
        (0, None),
        (315_360_000, None),
        ("soon", None),
    ],
)
def test_a_token_expires_when_its_answer_says(seconds: Any, expires: str | None) -> None:
    found = credentials_of({"access_token": "a", "expires_in": seconds}, {}, NOW)
    assert found is not None
    assert found.get("expiresAt") == expires


@pytest.mark.parametrize(
    ("given", "before", "kept"),
    [
        ({"refresh_token": "new"}, {"refreshToken": "old"}, "new"),
        ({"refresh_token": "new"}, {}, "new"),
        ({}, {"refreshToken": "old"}, "old"),
        ({"refresh_token": ""}, {"refreshToken": "old"}, "old"),
        ({"refresh_token": 7}, {"refreshToken": "old"}, "old"),
        ({}, {}, None),
    ],
)
def test_a_refresh_token_stays_until_there_is_another(
    given: dict[str, Any], before: dict[str, str], kept: str | None
) -> None:
    found = credentials_of({"access_token": "a", **given}, before, NOW)
    assert found is not None
    assert found.get("refreshToken") == kept


@pytest.mark.parametrize("token", [None, "", 7])
def test_an_answer_without_a_token_gives_nothing(token: Any) -> None:
    assert credentials_of({"access_token": token}, {"refreshToken": "old"}, NOW) is None
