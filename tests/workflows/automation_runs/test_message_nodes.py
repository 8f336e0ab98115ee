"""Nodes that send messages: notifications, mails, webhooks."""

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import select

from models.core.access.rules import Role
from models.core.base import Id
from models.messages.notifications.queries import notification
from models.messages.webhook_signing import show_signing_secret, signing_secret
from models.people.users import sync_profile
from models.people.workspaces import add_member
from runtime.configuration.sections import DEVELOPMENT_ISSUER
from tests.support.actions import make
from tests.support.endpoint import Endpoint, Serve, after, never, reply
from tests.support.engine import KEYS, Engine, by_node, graph, node
from tests.support.patience import ENOUGH
from tests.support.post_office import SENDER, PostOffice
from tests.support.run_rows import attempts, error_codes
from tests.support.spaces import make_space

pytestmark = pytest.mark.takes(seconds=20)

AT_ONCE = {"maxAttempts": 3, "initialDelaySeconds": 0}


async def person(engine: Engine, role: Role | None = None) -> Id:
    """A user, and a member with this role if one is given."""
    email = f"{uuid4().hex}@example.test"
    async with engine.database.transaction() as work:
        user_id = await sync_profile(
            work,
            issuer=DEVELOPMENT_ISSUER,
            subject=email,
            email=email,
            name="P",
            platform_admin=None,
        )
        if role is not None:
            await add_member(work, engine.actor.workspace_id, user_id, role)
    return user_id


async def told(engine: Engine, user_id: Id) -> list[Any]:
    async with engine.database.transaction() as work:
        statement = select(notification).where(notification.c.user_id == user_id)
        return list(await work.rows(statement.order_by(notification.c.created_at)))


# ---- notify


async def test_members_are_notified_by_id(engine: Engine) -> None:
    users = sorted([await person(engine, Role.VIEWER), await person(engine, Role.GUEST)])
    ids = [str(user) for user in users]
    title = {"type": "template", "value": "Hi {{ trigger.name }}"}
    run = await engine.run(
        graph(node("tell", "notify", userIds=ids, title=title, body="Words")), {"name": "Ada"}
    )
    assert run.output == {"tell": {"notified": ids}}, run.error
    for user in users:
        (row,) = await told(engine, user)
        assert (row.kind, row.title, row.body) == ("system", "Hi Ada", "Words")
        assert (row.run_id, row.actor_user_id) == (run.id, engine.actor.user_id)
        assert row.data == {"automationId": str(run.automation_id)}
        assert (row.read_at, row.archived_at) == (None, None)


async def test_members_are_notified_by_role(engine: Engine) -> None:
    commenters = {str(await person(engine, Role.COMMENTER)) for _ in range(2)}
    run = await engine.run(graph(node("tell", "notify", role="commenter", title="Hi")))
    assert run.output is not None
    assert set(run.output["tell"]["notified"]) >= commenters


@pytest.mark.long
async def test_a_role_without_members_notifies_no_one(engine: Engine) -> None:
    alone = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    run = await alone.run(graph(node("tell", "notify", role="admin", title="Hi")))
    assert run.output == {"tell": {"notified": []}}


async def test_a_recipient_who_is_not_a_member_fails_the_node_and_no_one_is_notified(
    engine: Engine,
) -> None:
    member, stranger = await person(engine, Role.VIEWER), await person(engine)
    ids = [str(member), str(stranger)]
    run = await engine.run(
        graph(
            node("tell", "notify", userIds={"type": "trigger", "value": "ids"}, title="Hi"),
            node("then", "transform", output={}),
            edges=[("tell", "then", "failure")],
        ),
        {"ids": ids},
    )
    assert (run.output, await error_codes(engine, run)) == ({"then": {}}, {"tell": "not_found"})
    assert await told(engine, member) == await told(engine, stranger) == []


@pytest.mark.parametrize(
    "given",
    [{"title": None}, {"title": "x" * 501}, {"ids": "all"}, {"ids": []}],
    ids=["no title", "long title", "text for ids", "no ids"],
)
async def test_nonsense_is_a_binding_error(engine: Engine, given: dict[str, Any]) -> None:
    ids = {"type": "trigger", "value": "ids"}
    title = {"type": "trigger", "value": "title"}
    payload = {"ids": [str(engine.actor.user_id)], "title": "Hi", **given}
    run = await engine.run(graph(node("tell", "notify", userIds=ids, title=title)), payload)
    assert await error_codes(engine, run) == {"tell": "binding_error"}


# ---- send_email


def mail(*to: str, **fields: Any) -> dict[str, Any]:
    given = {"subject": "News", "body": "Words", **fields}
    return graph(node("mail", "send_email", to=list(to), **given))


def new(kind: str = "somebody") -> str:
    return f"{kind}-{uuid4().hex}@receiver.test"


async def test_a_mail_is_delivered(engine: Engine, post_office: PostOffice) -> None:
    to = [new(), new()]
    run = await engine.run(mail(*to, subject="Grüße, Ada", body="Erste Zeile\n.\nЖ" + "x" * 2_000))
    assert run.output is not None, run.error
    output = run.output["mail"]
    assert (output["accepted"], output["refused"]) == (to, [])
    (got,) = post_office.to(to[0])
    message = got.message
    assert (message["From"], message["To"]) == (f"Us <{SENDER}>", ", ".join(to))
    assert (message["Subject"], message["Message-ID"]) == ("Grüße, Ada", output["messageId"])
    assert message.get_content().replace("\r\n", "\n") == "Erste Zeile\n.\nЖ" + "x" * 2_000 + "\n"
    assert message["Auto-Submitted"] == "auto-generated"
    assert got.content.isascii()


async def test_a_header_cannot_be_smuggled_in(engine: Engine, post_office: PostOffice) -> None:
    to, evil = new(), new("evil")
    subject = {"type": "trigger", "value": "subject"}
    run = await engine.run(
        mail(to, subject=subject), {"subject": f"Hi\r\nBcc: {evil}\r\n\r\nBody\x07 \u2028end"}
    )
    assert run.status == "succeeded", run.error
    (got,) = post_office.to(to)
    assert (got.to, got.message["Bcc"]) == ([to], None)
    assert got.message["Subject"] == f"Hi Bcc: {evil} Body end"
    assert post_office.to(evil) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("to", "code"),
    [
        ("a@b.test\r\nRCPT TO:<evil@b.test>", "binding_error"),
        ("a@b.test>", "binding_error"),
        ("nobody", "binding_error"),
        ('a"b@c.test', "invalid_mail"),
        ("bü@c.test", "invalid_mail"),
        (7, "binding_error"),
    ],
    ids=["second command", "bracket", "no address", "quote", "beyond ASCII", "number"],
)
async def test_an_invalid_address_is_refused(engine: Engine, to: Any, code: str) -> None:
    binding = {"type": "trigger", "value": "to"}
    body = graph(node("mail", "send_email", to=[binding], subject="x", retry=AT_ONCE))
    run = await engine.run(body, {"to": to})
    assert await error_codes(engine, run) == {"mail": code}
    assert await attempts(engine, run.id) == []


async def test_recipients_refused_for_good_are_reported(
    engine: Engine, post_office: PostOffice
) -> None:
    good, bad = new(), new("refused")
    run = await engine.run(mail(good, bad, retry=AT_ONCE))
    assert run.output is not None, run.error
    output = run.output["mail"]
    assert (output["accepted"], output["refused"]) == ([good], [{"address": bad, "status": 550}])
    assert len(post_office.to(good)) == 1


async def test_a_mail_without_accepted_recipients_fails_for_good(engine: Engine) -> None:
    bad = new("refused")
    run = await engine.run(mail(bad, retry=AT_ONCE))
    assert await error_codes(engine, run) == {"mail": "smtp_550"}
    assert run.error == f"mail: The mail server rejected {bad} (550)."
    assert await attempts(engine, run.id) == []


async def test_content_refused_for_good_is_a_final_failure(
    engine: Engine, post_office: PostOffice
) -> None:
    to = new("spam")
    run = await engine.run(mail(to, retry=AT_ONCE))
    assert await error_codes(engine, run) == {"mail": "smtp_554"}
    assert (post_office.seen[to], await attempts(engine, run.id)) == (1, [])


@pytest.mark.long
async def test_a_deferred_recipient_gets_the_mail_once_with_the_others(
    engine: Engine, post_office: PostOffice
) -> None:
    good, later = new(), new("later")
    run = await engine.run(mail(good, later, retry=AT_ONCE))
    assert run.output is not None, run.error
    assert run.output["mail"]["accepted"] == [good, later]
    assert len(post_office.to(good)) == len(post_office.to(later)) == 1
    assert await attempts(engine, run.id) == [("mail", 1, "smtp_451")]


@pytest.mark.long
async def test_the_last_attempt_sends_to_whom_it_can(
    engine: Engine, post_office: PostOffice
) -> None:
    good, never_ = new(), new("never")
    run = await engine.run(mail(good, never_, retry={"maxAttempts": 2, "initialDelaySeconds": 0}))
    assert run.output is not None, run.error
    assert run.output["mail"]["refused"] == [{"address": never_, "status": 451}]
    assert (len(post_office.to(good)), post_office.seen[good]) == (1, 2)


async def test_without_retry_the_mail_does_not_wait_for_deferred_recipients(
    engine: Engine, post_office: PostOffice
) -> None:
    good, never_ = new(), new("never")
    run = await engine.run(mail(good, never_))
    assert run.output is not None, run.error
    assert len(post_office.to(good)) == 1


@pytest.mark.long
async def test_a_mail_whose_answer_was_lost_comes_again_as_the_same_mail(
    engine: Engine, post_office: PostOffice
) -> None:
    to = new("lost")
    run = await engine.run(mail(to, retry=AT_ONCE))
    assert run.output is not None, run.error
    assert await attempts(engine, run.id) == [("mail", 1, "connection_failed")]
    ids = [got.message["Message-ID"] for got in post_office.to(to)]
    assert ids == [run.output["mail"]["messageId"]] * 2


@pytest.mark.long
async def test_a_silent_server_is_a_timeout(engine: Engine) -> None:
    run = await engine.run(mail(new("silent"), timeoutSeconds=2))
    assert await error_codes(engine, run) == {"mail": "timeout"}


@pytest.mark.long
async def test_without_a_mail_server_a_mail_fails_at_once_and_says_what_to_set(
    skipping_engine: Engine,
) -> None:
    run = await skipping_engine.run(mail(new("nobody"), retry=AT_ONCE))
    assert await error_codes(skipping_engine, run) == {"mail": "email_not_configured"}
    assert run.error is not None
    assert "WORKSPACE_SMTP_URL" in run.error
    assert await attempts(skipping_engine, run.id) == []


async def test_two_nodes_and_two_runs_send_different_mails(
    engine: Engine, post_office: PostOffice
) -> None:
    to = new()
    content = {"subject": "x", "to": [to]}
    automation = await engine.publish(
        graph(node("a", "send_email", **content), node("b", "send_email", **content))
    )
    for _ in range(2):
        await engine.ended(automation.id, await engine.start(automation.id))
    assert len({got.message["Message-ID"] for got in post_office.to(to)}) == 4


# ---- send_webhook


def hook(endpoint: Endpoint, **fields: Any) -> dict[str, Any]:
    given = {"type": "order.paid", "data": {"id": 7}, **fields}
    return graph(node("hook", "send_webhook", url=endpoint.url, **given))


async def test_a_webhook_is_signed_as_receivers_verify_it(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(204, b"", type_=""))
    run = await engine.run(
        hook(endpoint, data={"name": {"type": "trigger", "value": "n"}}), {"n": "Ж"}
    )
    assert run.output is not None, run.error
    (request,) = endpoint.requests
    headers = request.headers
    assert run.output["hook"] == {"webhookId": headers["webhook-id"], "status": 204}
    assert headers["content-type"] == "application/json"
    event = request.json()
    assert event.keys() == {"type", "timestamp", "data"}
    assert (event["type"], event["data"]) == ("order.paid", {"name": "Ж"})
    async with engine.database.transaction() as work:
        secret = (await show_signing_secret(work, KEYS, engine.actor)).secret
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{request.body}".encode()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.long
async def test_a_repeated_webhook_is_the_same_event(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(500), reply(503, retry_after="1"), reply())
    run = await engine.run(hook(endpoint, retry=AT_ONCE))
    assert run.status == "succeeded", run.error
    assert len({request.headers["webhook-id"] for request in endpoint.requests}) == 1
    assert len({request.body for request in endpoint.requests}) == 1
    assert await attempts(engine, run.id) == [("hook", 1, "http_500"), ("hook", 2, "http_503")]


async def test_a_database_that_is_away_when_a_webhook_is_signed_is_waited_for(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubles = iter([psycopg.OperationalError("gone")])

    async def failing(*given: Any) -> bytes:
        for trouble in troubles:
            raise trouble
        return await signing_secret(*given)

    monkeypatch.setattr("activities.automation_runs.nodes.effects.signing_secret", failing)
    endpoint = await serve(reply())
    run = await engine.run(hook(endpoint))
    assert (run.status, len(endpoint.requests)) == ("succeeded", 1), run.error


async def test_a_webhook_that_is_not_wanted_is_not_repeated(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(410))
    run = await engine.run(hook(endpoint, retry=AT_ONCE))
    assert await error_codes(engine, run) == {"hook": "http_410"}
    assert len(endpoint.requests) == 1


@pytest.mark.long
async def test_a_receiver_has_so_much_time(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.webhook_calls.SECONDS", 3.0)
    endpoint = await serve(never, after(0.01, reply()))
    run = await engine.run(hook(endpoint, retry=AT_ONCE))
    assert run.status == "succeeded", run.error
    assert await attempts(engine, run.id) == [("hook", 1, "timeout")]


async def test_a_webhook_to_a_private_address_is_blocked(engine: Engine) -> None:
    inside = node("inside", "send_webhook", url="http://169.254.169.254/", type="x")
    run = await engine.run(graph(inside))
    assert await error_codes(engine, run) == {"inside": "outbound_blocked"}


# ---- all of them


async def test_a_simulated_test_run_sends_nothing(
    engine: Engine, serve: Serve, post_office: PostOffice
) -> None:
    endpoint, to, user = await serve(reply()), new(), await person(engine, Role.VIEWER)
    action_id = await make(engine, "http_request", url=endpoint.url)
    automation_id = await engine.draft(
        graph(
            node("tell", "notify", userIds=[str(user)], title="Hi"),
            node("mail", "send_email", to=[to], subject="x"),
            node("hook", "send_webhook", url=endpoint.url, type="x"),
            {"id": "act", "kind": "action", "actionId": str(action_id)},
        )
    )
    run = await engine.test(automation_id, simulate=True)
    assert run.output == {name: {"simulated": True} for name in ("tell", "mail", "hook", "act")}
    assert (endpoint.requests, post_office.to(to), await told(engine, user)) == ([], [], [])


async def test_a_sent_message_is_not_in_the_history(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply())
    to = new("canary")
    body = graph(
        node("mail", "send_email", to=[to], subject="canary-subject", body="canary-body"),
        node("hook", "send_webhook", url=endpoint.url, type="x", data={"a": "canary-data"}),
        node("bad", "send_email", to=[new("refused")], subject="x"),
    )
    body["onError"] = "continue"
    run = await engine.run(body)
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    async with asyncio.timeout(ENOUGH):
        history = (await handle.fetch_history()).to_json()
    assert "canary" not in history
    assert "receiver.test" not in history
    assert by_node(run)["bad"].status == "failed"
    assert json.loads(endpoint.requests[0].body)["data"] == {"a": "canary-data"}
