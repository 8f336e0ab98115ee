"""Token buckets: an average, a burst, one bucket per name, and bounded memory."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI

from api.kernel.limits import Quota, RateLimit, RateLimits, TooOftenError, client_address, networks
from cli.supervisor.development import DevelopmentIssuer
from runtime.configuration.settings import Settings
from tests.support.automations import path_of, publish
from tests.support.client import Client
from tests.support.spaces import Space


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def allowed(limit: RateLimit, name: str, times: int) -> int:
    """The number of calls that are let through."""
    count = 0
    for _ in range(times):
        try:
            limit.take(name)
        except TooOftenError:
            continue
        count += 1
    return count


def test_a_burst_is_followed_by_the_average() -> None:
    clock = Clock()
    limit = RateLimit(50, 200, clock=clock)
    assert allowed(limit, "a", 300) == 200
    clock.now += 1
    assert allowed(limit, "a", 300) == 50
    clock.now += 1000
    assert allowed(limit, "a", 300) == 200


def test_every_name_has_its_own() -> None:
    limit = RateLimit(1, 2, clock=Clock())
    assert [allowed(limit, name, 5) for name in ("a", "b", "a")] == [2, 2, 0]


def test_a_refusal_says_when_to_come_again() -> None:
    clock = Clock()
    limit = RateLimit(0.1, 1, clock=clock)
    limit.take("a")
    with pytest.raises(TooOftenError) as refused:
        limit.take("a")
    assert refused.value.headers["Retry-After"] == "10"
    clock.now += 9.5
    with pytest.raises(TooOftenError) as refused:
        limit.take("a")
    assert refused.value.headers["Retry-After"] == "1"
    clock.now += 0.5
    limit.take("a")


def test_zero_is_no_limit() -> None:
    assert allowed(RateLimit(0, 1), "a", 1000) == 1000


def test_names_do_not_pile_up() -> None:
    limit = RateLimit(1, 1, names=10, clock=Clock())
    for number in range(1000):
        limit.take(str(number))
    assert len(limit._buckets) == 10
    assert allowed(limit, "999", 1) == 0


def test_a_call_says_what_is_left() -> None:
    clock = Clock()
    limit = RateLimit(2, 5, clock=clock)
    assert [limit.take("a") for _ in range(3)] == [Quota(5, 4, 1), Quota(5, 3, 1), Quota(5, 2, 2)]
    clock.now += 10
    assert limit.take("a") == Quota(5, 4, 1)
    assert RateLimit(0, 5).take("a") is None


def test_a_call_that_counts_as_several_leaves_a_debt() -> None:
    clock = Clock()
    limit = RateLimit(2, 5, clock=clock)
    limit.take("a")
    assert limit.owe("a", 9) == Quota(5, 0, 5)
    with pytest.raises(TooOftenError) as refused:
        limit.take("a")
    assert refused.value.headers["Retry-After"] == "3"
    clock.now += 3
    assert limit.take("a") == Quota(5, 0, 3)
    assert RateLimit(0, 5).owe("a", 9) is None


def test_only_the_names_used_last_are_kept() -> None:
    limit = RateLimit(1, 1, names=2, clock=Clock())
    assert [allowed(limit, name, 1) for name in ("a", "b", "c", "c", "b", "a")] == [
        1,
        1,
        1,
        0,
        0,
        1,
    ]


@pytest.fixture
def limited(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application lets a caller through four times, and lets it start two runs."""
    few = {"rate_limit_key_burst": 4, "rate_limit_run_start_burst": 2}
    slow = {"rate_limit_key": 0.01, "rate_limit_run_start": 0.01}
    limits = RateLimits(settings.model_copy(update=few | slow))
    monkeypatch.setattr(app.state.services, "limits", limits)


@pytest.mark.usefixtures("limited")
async def test_every_caller_is_limited(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    answers = [await client.get("/v1/me") for _ in range(5)]
    assert [one.status_code for one in answers] == [200, 200, 200, 200, 429]
    shown = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
    assert [answers[0].headers[name] for name in shown] == ["4", "3", "100"]
    assert [answers[4].headers[name] for name in shown] == ["4", "0", "400"]
    assert answers[4].headers["retry-after"] == "100"
    assert answers[4].json()["_tag"] == "ApiRateLimited"
    assert (await client.with_token(await space.key()).get("/v1/me")).status_code == 200
    for minutes, status in ((1, 200), (2, 200), (3, 200), (4, 200), (5, 429)):
        session = client.with_token(issuer.mint(space.email, "Test", lifetime_seconds=minutes * 60))
        assert (await session.get("/v1/me")).status_code == status
    assert "x-ratelimit-limit" not in (await client.get("/healthz")).headers


@pytest.mark.usefixtures("limited")
async def test_starts_of_runs_are_limited_more(client: Client, space: Space) -> None:
    path = f"{space.path}/automations/{uuid4()}/run"
    answers = [await client.post(path, json={}) for _ in range(3)]
    assert [one.status_code for one in answers] == [404, 404, 429]
    assert [one.headers["x-ratelimit-limit"] for one in answers] == ["2"] * 3
    other = await client.get("/v1/me")
    assert (other.status_code, other.headers["x-ratelimit-remaining"]) == (200, "0")


@pytest.mark.usefixtures("limited")
async def test_each_run_of_a_batch_counts_as_a_start(client: Client, space: Space) -> None:
    made = await publish(client, space)
    batch = f"{path_of(made)}/runs/batch"
    answer = await client.post(batch, json={"payloads": [{}] * 5})
    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-remaining"] == "0"
    refused = await client.post(batch, json={"payloads": [{}]})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "400")


@pytest.mark.long
async def test_a_busy_client_stays_within_the_limits_of_production(
    app: FastAPI, client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    production = {name: field.default for name, field in Settings.model_fields.items()}
    named = {name: value for name, value in production.items() if name.startswith("rate_limit")}
    limits = RateLimits(app.state.services.settings.model_copy(update=named))
    monkeypatch.setattr(app.state.services, "limits", limits)
    made = await client.post(f"{space.path}/databases/from-template", json={"templateId": "tasks"})
    records = f"/v1/databases/{made.json()['data']['id']}/records"
    node = {"id": "n", "kind": "transform", "config": {"output": {}}}
    created = await client.post(
        f"{space.path}/automations",
        json={"label": "Busy", "enabled": True, "graph": {"nodes": [node], "edges": []}},
    )
    automation = f"{space.path}/automations/{created.json()['data']['id']}"
    answers = [made, created, await client.post(f"{automation}/publish", json={})]
    for _ in range(20):
        answers += await asyncio.gather(
            client.post(records, json={"title": "Write it down"}),
            client.post(f"{records}/query", json={}),
            client.post(f"{automation}/run", json={}),
        )
    assert {answer.status_code for answer in answers} == {200, 201}
    assert {answer.headers["x-ratelimit-limit"] for answer in answers} == {"200", "100"}


def _scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return {"client": None if client is None else (client, 1), "headers": headers}


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("203.0.113.9", (), "203.0.113.9"),
        ("203.0.113.9", ("198.51.100.1",), "203.0.113.9"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("198.51.100.1",), "198.51.100.1"),
        ("10.0.0.1", ("1.1.1.1, 198.51.100.1",), "198.51.100.1"),
        ("10.0.0.1", ("1.1.1.1, 198.51.100.1, 10.0.0.2",), "198.51.100.1"),
        ("10.0.0.1", ("1.1.1.1", "198.51.100.1:4711"), "198.51.100.1"),
        ("10.0.0.1", ("forged",), "10.0.0.1"),
        ("10.0.0.1", ("1.1.1.1, forged",), "10.0.0.1"),
        ("::ffff:10.0.0.1", ("::ffff:198.51.100.1",), "198.51.100.1"),
        ("2001:db8:1:2:3::4", (), "2001:db8:1:2::/64"),
        ("fd00::1", ("[2001:db8:1:2:ffff::1]:443",), "2001:db8:1:2::/64"),
        (None, ("198.51.100.1",), ""),
        ("a socket", (), ""),
    ],
)
def test_only_trusted_proxies_say_where_a_caller_is(
    client: str | None, forwarded: tuple[str, ...], address: str
) -> None:
    proxies = networks(("10.0.0.0/8", "fd00::/64"))
    assert client_address(_scope(client, *forwarded), proxies) == address


def test_a_form_is_limited_by_address_and_in_all(settings: Settings) -> None:
    limits = RateLimits(
        settings.model_copy(
            update={
                "rate_limit_form": 1,
                "rate_limit_form_burst": 5,
                "rate_limit_form_address": 1,
                "rate_limit_form_address_burst": 2,
            }
        )
    )

    messages = set()

    def taken(form: str, address: str) -> bool:
        try:
            limits.take_submission(form, _scope(address))
        except TooOftenError as refusal:
            messages.add(refusal.message)
            return False
        return True

    assert [taken("a", "192.0.2.1") for _ in range(4)] == [True, True, False, False]
    assert taken("b", "192.0.2.1")
    others = [taken("a", f"2001:db8:0:{number // 2}::{number}") for number in range(8)]
    assert others == [True, True, True, False, False, False, False, False]
    assert messages == {"Too many submissions. Try again in 60 seconds."}


@pytest.mark.parametrize(("seconds", "said"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.2, 2), (2.0, 2)])
def test_a_refusal_names_whole_seconds_and_at_least_one(seconds: float, said: int) -> None:
    refused = TooOftenError(Quota(10, 0, 60), seconds)
    assert refused.headers["Retry-After"] == str(said)
    unit = "second" if said == 1 else "seconds"
    assert refused.message == f"Too many requests. Try again in {said} {unit}."
