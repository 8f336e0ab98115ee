"""Which values are credentials, how they are shown, and how what was shown is given back."""

import pytest

from models.core.http_requests import (
    HIDDEN,
    credentials_in,
    hidden,
    hidden_url,
    is_credential,
    left_hidden,
    restored,
)


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "cookie", "Proxy-Authorization", "X-Api-Key", "apikey", "api_key"),
        *("X-Goog-Api-Key", "DD-API-KEY", "Private-Token", "X-Auth-Token", "X-Amz-Signature"),
        *("accessToken", "client_secret", "X-Vault-Token", "PASSWORD", "X-Auth", "key", "sig"),
        *("Ocp-Apim-Subscription-Key", "X-Shopify-Access-Token"),
    ],
)
def test_names_of_credentials(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize(
    "name",
    [
        *("Accept", "Idempotency-Key", "X-Request-Id", "Content-Type", "pageToken", "next_token"),
        *("keys", "author", "X-Monkey", "sort-key", "surrogate-key", "filter", "limit", ""),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_credential(name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:pw@example.test/a", f"https://{HIDDEN}@example.test/a"),
        (
            "https://example.test/a?b=1&api_key=x#c",
            f"https://example.test/a?b=1&api_key={HIDDEN}#c",
        ),
        ("https://example.test/?api%5Fkey=x", f"https://example.test/?api%5Fkey={HIDDEN}"),
        ("https://example.test/a@b?mail=a@b.test", None),
        ("https://example.test/?token={{ vars.token }}", None),
    ],
)
def test_the_credentials_of_a_url_are_hidden(url: str, shown: str | None) -> None:
    assert hidden_url(url) == (shown or url)


def test_a_hidden_value_sent_back_keeps_the_stored_one() -> None:
    stored = {
        "steps": [
            {"id": "a", "config": {"headers": {"Cookie": "one", "Accept": "*/*"}}},
            {"id": "b", "config": {"url": "https://example.test/?key=two&n=1"}},
            {"id": "c", "config": {"query": {"api_key": "three"}, "auth": {"token": "four"}}},
        ]
    }
    shown = hidden(stored)
    assert sum(text in str(shown) for text in ("one", "two", "three", "four")) == 0
    assert len(left_hidden(shown)) == len(credentials_in(stored)) == 4
    assert restored(shown, stored) == stored
    # Another order, and a new step: each is found by its id.
    mixed = {"steps": [{"id": "new", "config": {}}, *reversed(shown["steps"])]}
    assert restored(mixed, stored)["steps"][1:] == stored["steps"][::-1]
    # What is stored nowhere stays hidden, and so does what stands elsewhere or is changed.
    moved = {"steps": [{**shown["steps"][0], "id": "d"}]}
    assert left_hidden(restored(moved, stored)) == [("steps", 0, "config", "headers", "Cookie")]
    other_url = {"url": f"https://other.test/?key={HIDDEN}&n=1"}
    assert left_hidden(restored({"steps": [{"id": "b", "config": other_url}]}, stored))
