"""Generated calls of webhooks: each outcome is the cause that was planted, in their order."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.automations import create, path_of, read
from tests.support.client import Client
from tests.support.hooks import Json, make_hook, send
from tests.support.spaces import Space

HOOKS: Mapping[str, Json] = {
    "filtered": {"filter": "trigger.body.n > 5"},
    "header": {"auth": "header", "methods": ["POST"]},
    "open": {"auth": "none"},
    "skip": {"concurrency": {"limit": 1, "policy": "skip"}},
    "queue": {"concurrency": {"limit": 1, "policy": "queue"}},
    "paused": {},
    "disabled": {},
}
TOO_LARGE = b"x" * (1024 * 1024 + 1)
CALLS = 130
OUTCOMES = {
    *("run", "filtered", "wrong_method", "unverified", "invalid", "too_large", "duplicate"),
    *("skipped", "queued", "paused", "disabled", "no_published_version"),
}
"""The outcomes that this file plants."""


async def made_hooks(client: Client, space: Space) -> dict[str, Json]:
    hooks = {name: await make_hook(client, space, **config) for name, config in HOOKS.items()}
    read(await client.post(f"{path_of(hooks['paused'])}/pause", json={"reason": "Stocktaking"}))
    read(await client.patch(path_of(hooks["disabled"]), json={"enabled": False}))
    trigger = {"kind": "webhook"}
    hooks["draft"] = await create(client, space, enabled=True, triggerConfig=trigger)
    return hooks


async def call(
    stranger: Client, hook: str, made: Json, chance: random.Random, earlier: Sequence[str]
) -> str:
    """Call a hook in a way that has one outcome, which is returned."""
    path, right = made["webhookPath"], {"X-Webhook-Secret": made["webhookSecret"] or ""}
    if hook == "filtered":
        number = chance.randrange(12)
        await send(stranger, made, {"n": number})
        return "run" if number > 5 else "filtered"
    if hook == "header":
        cause = chance.choice(["run", "wrong_method", "unverified", "invalid"])
        if cause == "wrong_method":
            await stranger.put(path, json={}, headers=right)
        elif cause == "unverified":
            wrong = chance.choice([{}, {"X-Webhook-Secret": "guessed"}])
            await stranger.post(path, json={}, headers=wrong)
        else:
            content = b"{" if cause == "invalid" else b"{}"
            headers = {**right, "Content-Type": "application/json"}
            await stranger.post(path, content=content, headers=headers)
        return cause
    if hook == "open":
        cause = chance.choice(["run", "too_large", "duplicate"])
        if cause == "too_large":
            await stranger.post(path, content=TOO_LARGE)
            return cause
        message = "once" if cause == "duplicate" else f"msg-{len(earlier)}"
        await stranger.post(path, json={}, headers={"webhook-id": message})
        return cause if cause == "run" or "once" in earlier else "once"
    await send(stranger, made)
    if hook in ("skip", "queue"):
        return {"skip": "skipped", "queue": "queued"}[hook] if earlier else "run"
    return {"draft": "no_published_version"}.get(hook, hook)


async def told(client: Client, space: Space, made: Json) -> list[str]:
    """The outcomes of the events of an automation, the first call first."""
    path, found, cursor = f"{space.path}/trigger-events", [], None
    while True:
        query: dict[str, Any] = {"automationId": made["id"], "limit": 100}
        page = read(await client.get(path, params=query | ({"cursor": cursor} if cursor else {})))
        found += [one["outcome"] for event in page["events"] for one in event["outcomes"]]
        cursor = page["cursor"]
        if cursor is None:
            return found[::-1]


@pytest.mark.takes(seconds=30)
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))]
)
async def test_the_outcome_of_every_call_is_its_planted_cause(
    client: Client, space: Space, seed: int
) -> None:
    """A thousand calls in all."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    hooks, stranger = await made_hooks(client, space), client.with_token(None)
    planted: dict[str, list[str]] = {name: [] for name in hooks}
    for number in range(CALLS):
        name = list(hooks)[number] if number < len(hooks) else chance.choice(list(hooks))
        planted[name].append(await call(stranger, name, hooks[name], chance, planted[name]))
    for name, made in hooks.items():
        expected = ["run" if cause == "once" else cause for cause in planted[name]]
        assert await told(client, space, made) == expected, name
    causes = {cause for listed in planted.values() for cause in listed}
    # By chance some numbers have not all of them.
    assert seed > 0 or causes >= OUTCOMES
