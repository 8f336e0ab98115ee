"""Nodes and actions that send to an endpoint of their workspace, signed with its own secret."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from models.automation.actions.rules import ActionKind
from models.core.access.rules import Scope
from models.core.base import Id
from models.messages.webhook_endpoints import store
from models.messages.webhook_endpoints.store import CreateWebhookEndpoint, UpdateWebhookEndpoint
from models.messages.webhook_signing import show_signing_secret
from runtime.errors import NotFoundError, ValidationError
from tests.support.actions import act, ended, make, start
from tests.support.endpoint import Endpoint, Serve, reply
from tests.support.engine import KEYS, Engine, by_node, graph, node
from tests.support.run_rows import error_codes
from tests.support.spaces import make_space

Json = dict[str, Any]


async def endpoint_at(engine: Engine, url: str) -> tuple[Id, str]:
    """A new endpoint, with its secret."""
    body = CreateWebhookEndpoint.model_validate({"url": url, "eventTypes": ["data_source.run"]})
    async with engine.database.transaction() as work:
        made = await store.create_endpoint(work, engine.actor, KEYS, body)
    return made.id, made.secret


async def rotate(engine: Engine, endpoint_id: Id) -> str:
    async with engine.database.transaction() as work:
        return (await store.rotate_secret(work, engine.actor, KEYS, endpoint_id)).secret


async def disable(engine: Engine, endpoint_id: Id) -> None:
    body = UpdateWebhookEndpoint(enabled=False)
    async with engine.database.transaction() as work:
        await store.update_endpoint(work, engine.actor, endpoint_id, body)


async def remove(engine: Engine, endpoint_id: Id) -> None:
    async with engine.database.transaction() as work:
        await store.delete_endpoint(work, engine.actor, endpoint_id)


def hook(endpoint_id: Any, **fields: Any) -> Json:
    return node("hook", "send_webhook", endpointId=endpoint_id, type="order.paid", **fields)


def verified(receiver: Endpoint, secret: str) -> Json:
    """What the library for receivers reads in the last call."""
    call = receiver.requests[-1]
    read: Json = Webhook(secret).verify(call.content, call.headers)
    return read


async def elsewhere(engine: Engine) -> Engine:
    """The same workers for another workspace."""
    return replace(engine, actor=(await make_space(engine.database, KEYS)).actor)


async def test_an_endpoint_verifies_what_a_node_sends(engine: Engine, serve: Serve) -> None:
    receiver = await serve(reply(204, b""))
    endpoint_id, old = await endpoint_at(engine, receiver.url)
    body = graph(hook(str(endpoint_id), data={"n": {"type": "trigger", "value": "n"}}))
    automation = await engine.publish(body)
    run = await engine.ended(automation.id, await engine.start(automation.id, {"n": 7}))
    assert run.output is not None, run.error
    webhook_id = receiver.requests[0].headers["webhook-id"]
    assert run.output["hook"] == {"webhookId": webhook_id, "status": 204}
    assert (verified(receiver, old)["type"], verified(receiver, old)["data"]) == (
        "order.paid",
        {"n": 7},
    )
    async with engine.database.transaction() as work:
        other = (await show_signing_secret(work, KEYS, engine.actor)).secret
    with pytest.raises(WebhookVerificationError):
        verified(receiver, other)

    new = await rotate(engine, endpoint_id)
    run = await engine.ended(automation.id, await engine.start(automation.id, {"n": 8}))
    assert verified(receiver, old) == verified(receiver, new)
    assert len(receiver.requests) == 2
    shown = run.model_dump_json()
    assert not any(secret.removeprefix("whsec_") in shown for secret in (old, new))


async def test_an_endpoint_verifies_what_an_action_sends(engine: Engine, serve: Serve) -> None:
    receiver = await serve(reply(204, b""))
    endpoint_id, secret = await endpoint_at(engine, receiver.url)
    run = await act(engine, ActionKind.SEND_WEBHOOK, endpointId=str(endpoint_id), type="done")
    assert run.status == "succeeded", run
    assert verified(receiver, secret)["type"] == "done"
    assert secret.removeprefix("whsec_") not in run.model_dump_json()


@pytest.mark.parametrize(
    ("end", "code", "why"),
    [
        (disable, "endpoint_disabled", "The webhook endpoint is disabled."),
        (remove, "endpoint_deleted", "The webhook endpoint was deleted."),
    ],
)
async def test_an_endpoint_that_takes_nothing_fails_who_sends(
    engine: Engine, serve: Serve, end: Any, code: str, why: str
) -> None:
    receiver = await serve(reply())
    endpoint_id, _ = await endpoint_at(engine, receiver.url)
    automation = await engine.publish(graph(hook(str(endpoint_id), retry={"maxAttempts": 3})))
    action_id = await make(
        engine, ActionKind.SEND_WEBHOOK, endpointId=str(endpoint_id), type="done"
    )
    await end(engine, endpoint_id)
    run = await engine.ended(automation.id, await engine.start(automation.id))
    assert await error_codes(engine, run) == {"hook": code}
    assert by_node(run)["hook"].attempt == 1
    assert (await ended(engine, action_id, await start(engine, action_id))).error == why
    assert receiver.requests == []


async def test_a_binding_names_no_endpoint(engine: Engine, serve: Serve) -> None:
    receiver = await serve(reply())
    named = str((await endpoint_at(engine, receiver.url))[0])
    for value in ({"type": "literal", "value": named}, {"type": "trigger", "value": "id"}):
        overlaid = {**hook(named), "input": {"endpointId": value}}
        for bound in (hook(value), overlaid):
            with pytest.raises(ValidationError, match="Must be an id, not a binding"):
                await engine.publish(graph(bound))
    bound = {"type": "expression", "value": f"'{named}'"}
    with pytest.raises(ValidationError) as refused:
        await make(engine, ActionKind.SEND_WEBHOOK, endpointId=bound, type="done")
    assert [one.path for one in refused.value.details] == ["config.endpointId"]
    assert receiver.requests == []


async def test_a_member_who_names_an_endpoint_has_access_to_it(engine: Engine) -> None:
    foreign, _ = await endpoint_at(await elsewhere(engine), "https://hooks.example.com/")
    own, _ = await endpoint_at(engine, "https://hooks.example.com/")
    blind = replace(engine.actor, scopes=engine.actor.scopes - {Scope.WEBHOOKS_READ})
    for author, named in (
        (engine, foreign),
        (engine, uuid4()),
        (replace(engine, actor=blind), own),
    ):
        with pytest.raises(NotFoundError):
            await author.publish(graph(hook(str(named))))
        with pytest.raises(NotFoundError):
            await make(author, ActionKind.SEND_WEBHOOK, endpointId=str(named), type="done")


async def test_a_graph_that_names_a_deleted_endpoint_says_so(engine: Engine) -> None:
    endpoint_id, _ = await endpoint_at(engine, "https://hooks.example.com/")
    automation_id = await engine.draft(graph(hook(str(endpoint_id))))
    await remove(engine, endpoint_id)
    with pytest.raises(ValidationError, match=r"Webhook endpoint .* not found"):
        await engine.test(automation_id, simulate=True)
