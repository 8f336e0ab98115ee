"""Calls of webhooks over HTTP: authentication, the payload of a run, the answer."""

import base64
import hmac
import json
import time
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.automations.tables import automation
from models.core.access.rules import Role, Scope
from models.people.request_logs import request_log
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import outbox
from tests.support.attacks import COMPARED, REPLACED
from tests.support.automations import create, numbered, path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.hooks import Json, make_hook, send, signed
from tests.support.spaces import Space

BODY = b'{"n": 1}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def stranger(client: Client) -> Client:
    """A client without any credential."""
    return client.with_token(None)


async def payload_of(space: Space, answer: httpx2.Response) -> Json:
    """What the run of an accepted call was told."""
    run_id = read(answer, 202)["runId"]
    async with space.database.transaction() as work:
        payload: Json = await work.scalar(
            select(automation_run.c.trigger_payload).where(automation_run.c.id == run_id)
        )
    return payload


async def runs_of(space: Space, made: Json) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).where(automation_run.c.automation_id == made["id"])
        return int(await work.scalar(statement.select_from(automation_run)))


# ---- accepted calls


async def test_a_signed_call_starts_a_run(client: Client, space: Space, stranger: Client) -> None:
    made = await make_hook(client, space)
    answer = read(await send(stranger, made, message_id="msg_1"), 202)
    assert (answer["status"], answer["duplicate"]) == ("queued", False)
    run = read(await client.get(f"{path_of(made)}/runs/{answer['runId']}"))
    assert (run["source"], run["status"]) == ("webhook", "queued")
    payload = run["triggerPayload"]
    assert payload["method"] == "POST"
    assert payload["body"] == {"n": 1}
    assert (payload["bodyEncoding"], payload["query"]) == ("json", {})
    assert payload["webhookId"] == "msg_1"
    assert payload["headers"]["content-type"] == "application/json"
    async with space.database.transaction() as work:
        started = await work.scalar(
            select(func.count()).where(outbox.c.subject_id == answer["runId"])
        )
    assert started == 1


async def test_no_page_of_this_address_runs_an_answer(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    for part in ("script", "style", "worker"):
        of_a_page = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": part}
        answer = await stranger.get(made["webhookPath"], headers=of_a_page)
        assert answer.status_code == 403
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"}
    answer = await stranger.get(made["webhookPath"], headers=elsewhere)
    assert answer.status_code != 403


async def test_credentials_and_signatures_never_reach_the_run(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="header", header="X-Gitlab-Event-Check")
    secret = made["webhookSecret"]
    headers = {
        "X-Gitlab-Event-Check": secret,
        "Authorization": "Bearer canary",
        "Cookie": "session=canary",
        "X-Api-Key": "canary",
        "X-Hub-Signature-256": "sha256=canary",
        "X-Auth-Token": "canary",
        "X_Api_Key": "canary",
        "X-Access-Key": "canary",
        "X-Goog-Iap-Jwt-Assertion": "canary",
        "X-Shopify-Hmac-Sha256": "canary",
        "X-GitHub-Event": "push",
    }
    answer = await stranger.post(made["webhookPath"], content=BODY, headers={**JSON, **headers})
    payload = await payload_of(space, answer)
    assert payload["headers"]["x-github-event"] == "push"
    assert "canary" not in json.dumps(payload)
    assert secret not in json.dumps(payload)


async def test_the_body_of_every_content_type_is_in_the_payload(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none", methods=["POST", "PUT", "GET"])

    async def told(method: str, content: bytes, type_: str | None) -> tuple[Any, Any]:
        headers = {} if type_ is None else {"Content-Type": type_}
        path = made["webhookPath"]
        answer = await stranger.request(method, path, content=content, headers=headers)
        payload = await payload_of(space, answer)
        return payload["body"], payload["bodyEncoding"]

    assert await told("PUT", b"[1, null]", "application/vnd.api+json") == ([1, None], "json")
    form = "application/x-www-form-urlencoded"
    assert await told("POST", b"a=1&b=%C3%BC&b=&c", form) == (
        {"a": "1", "b": ["ü", ""], "c": ""},
        "form",
    )
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="from"\r\n\r\nAda\r\n'
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n\xff\r\n--x--'
    )
    file = {"name": "a", "mimeType": "application/octet-stream", "byteSize": 1, "base64": "/w=="}
    assert await told("POST", parts, "multipart/form-data; boundary=x") == (
        {"from": "Ada", "f": file},
        "form",
    )
    assert await told("POST", "Grüße".encode(), "text/plain") == ("Grüße", "text")
    assert await told("POST", b"<a/>", None) == ("<a/>", "text")
    latin = "text/plain; charset=iso-8859-1"
    assert await told("POST", "Grüße".encode("latin-1"), latin) == ("Grüße", "text")
    assert await told("POST", b'\xef\xbb\xbf{"a": 1}', "application/json") == ({"a": 1}, "json")
    for binary in (b"\xff\xfe", b"a\x00b"):
        encoded = base64.b64encode(binary).decode()
        assert await told("POST", binary, "application/octet-stream") == (encoded, "base64")
    assert await told("POST", b"", "application/json") == (None, None)
    assert await told("GET", b"", None) == (None, None)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63) - 1, 10**300])
async def test_integers_of_callers_are_passed_on_exactly(
    client: Client, space: Space, stranger: Client, number: int
) -> None:
    made = await make_hook(client, space, auth="none")
    answer = await stranger.post(made["webhookPath"], json={"id": number})
    run = read(await client.get(f"{path_of(made)}/runs/{read(answer, 202)['runId']}"))
    assert run["triggerPayload"]["body"] == {"id": number}


async def test_the_query_of_a_call_is_in_the_payload(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none", methods=["GET"])
    answer = await stranger.get(f"{made['webhookPath']}?a=1&a=2&b=%20x&empty=")
    payload = await payload_of(space, answer)
    assert payload["query"] == {"a": ["1", "2"], "b": " x", "empty": ""}


async def test_a_webhook_takes_the_methods_of_its_trigger(
    client: Client, space: Space, stranger: Client
) -> None:
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    made = await make_hook(client, space, auth="none", methods=methods)
    for method in methods:
        answer = await stranger.request(method, made["webhookPath"])
        assert (await payload_of(space, answer))["method"] == method
    narrow = await make_hook(client, space, auth="none", methods=["PUT", "PATCH"])
    for method in ("GET", "POST", "DELETE"):
        answer = await stranger.request(method, narrow["webhookPath"])
        assert refusal(answer) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "PUT, PATCH"
    for method in ("HEAD", "OPTIONS"):
        answer = await stranger.request(method, made["webhookPath"])
        assert answer.status_code == 405


# ---- refused calls


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        (b"{", "application/json"),
        (b'{"a": NaN}', "application/json"),
        (b'{"a": 1, "a": 2}', "application/json"),
        (b"9" * 400, "application/json"),
        (b'"\xff"', "application/json"),
        (b'"\\u0000"', "application/json"),
        (b"[" * 70 + b"]" * 70, "application/json"),
        (b"a=%FF", "application/x-www-form-urlencoded"),
        (b"a=%00", "application/x-www-form-urlencoded"),
        (b"\xff=1", "application/x-www-form-urlencoded"),
        (b"&".join(b"a=1" for _ in range(1_001)), "application/x-www-form-urlencoded"),
    ],
    ids=[
        "cut",
        "nan",
        "twice",
        "large",
        "utf8",
        "nul",
        "deep",
        "form",
        "form-nul",
        "form-bytes",
        "many",
    ],
)
async def test_a_body_that_is_not_what_it_says_is_refused(
    client: Client, space: Space, stranger: Client, content: bytes, type_: str
) -> None:
    made = await make_hook(client, space, auth="none")
    headers = {"Content-Type": type_}
    answer = await stranger.post(made["webhookPath"], content=content, headers=headers)
    assert refusal(answer) == (400, "validation_error")
    assert await runs_of(space, made) == 0


@pytest.mark.parametrize("query", ["a=%FF", "a=%00", "%ED%A0%80=1"])
async def test_a_query_that_is_no_text_is_refused(
    client: Client, space: Space, stranger: Client, query: str
) -> None:
    made = await make_hook(client, space, auth="none")
    answer = await stranger.post(f"{made['webhookPath']}?{query}")
    assert refusal(answer) == (400, "validation_error")


async def test_a_body_of_one_mebibyte_is_taken_and_no_more(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none")
    largest = b"x" * (1024 * 1024)
    answer = await stranger.post(made["webhookPath"], content=largest)
    assert len((await payload_of(space, answer))["body"]) == len(largest)
    answer = await stranger.post(made["webhookPath"], content=largest + b"x")
    assert refusal(answer) == (413, "payload_too_large")
    encoded = {"Content-Encoding": "gzip"}
    answer = await stranger.post(made["webhookPath"], content=b"x", headers=encoded)
    assert refusal(answer) == (415, "unsupported_media_type")


async def test_an_unverified_call_is_answered_without_details(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    right = signed(made["webhookSecret"], BODY)
    late = signed(made["webhookSecret"], BODY, sent=time.time() - 301)
    # It is judged a while after it is signed, and must be too early even then.
    early = signed(made["webhookSecret"], BODY, sent=time.time() + 400)
    other = signed("whsec_b3RoZXI=", BODY)
    bodies = set()
    for headers, content in (
        ({}, BODY),
        (other, BODY),
        (late, BODY),
        (early, BODY),
        (right, b'{"n":1}'),
        (right, b"not even JSON"),
        ({**right, "webhook-id": "msg_other"}, BODY),
        ({**right, "webhook-timestamp": str(int(right["webhook-timestamp"]) + 1)}, BODY),
        ({**right, "webhook-signature": other["webhook-signature"]}, BODY),
        ({**right, "webhook-signature": "v1,"}, BODY),
    ):
        answer = await stranger.post(made["webhookPath"], content=content, headers=headers)
        assert refusal(answer) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        bodies.add(answer.content)
    assert len(bodies) == 1
    assert await runs_of(space, made) == 0
    accepted = await stranger.post(made["webhookPath"], content=BODY, headers={**JSON, **right})
    assert accepted.status_code == 202


async def test_a_missing_webhook_is_answered_without_a_reason(
    client: Client, space: Space, stranger: Client
) -> None:
    """Unknown, malformed, a draft, disabled, another trigger, archived, in the trash, closed."""
    hook = {"kind": "webhook", "auth": "none"}
    draft = await create(client, space, enabled=True, triggerConfig=hook)
    manual = await publish(client, space, triggerConfig={"kind": "manual"})
    disabled = await make_hook(client, space, auth="none")
    await client.patch(path_of(disabled), json={"enabled": False})
    archived = await make_hook(client, space, auth="none")
    await client.post(f"/v1/items/{archived['itemId']}/archive", json={})
    folder = read(await client.post("/v1/items", json={"kind": "folder", "title": "F"}), 201)
    inside = await publish(client, space, triggerConfig=hook, parentItemId=folder["item"]["id"])
    assert (await stranger.post(inside["webhookPath"])).status_code == 202
    read(await client.delete(f"/v1/items/{folder['item']['id']}"))
    changed = await make_hook(client, space, auth="none")
    await client.patch(path_of(changed), json={"triggerConfig": {"kind": "manual"}})
    assert (await stranger.post(changed["webhookPath"])).status_code == 202
    await client.post(f"{path_of(changed)}/publish", json={})
    paths = [one["webhookPath"] for one in (draft, manual, disabled, archived, inside, changed)]
    paths += [f"/v1/hooks/{token}" for token in ("0" * 32, "x", "%00", "a" * 3000, "%F0%9F%98%80")]
    paths += [f"{(await make_hook(client, space, auth='none'))['webhookPath']}%00"]
    bodies = set()
    for path in paths:
        answer = await stranger.post(path, content=BODY)
        assert refusal(answer) == (404, "not_found"), path
        bodies.add(answer.content)
    assert len(bodies) == 1


async def test_a_closed_workspace_has_no_webhooks(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none")
    await client.delete(space.path)
    assert refusal(await stranger.post(made["webhookPath"])) == (404, "not_found")


async def test_every_unknown_token_costs_one_statement(
    client: Client, space: Space, stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    disabled = await make_hook(client, space, auth="none")
    await client.patch(path_of(disabled), json={"enabled": False})
    run, asked = PreparedStatement._run, []

    async def noted(statement: PreparedStatement, *given: Any) -> Any:
        asked.append(statement)
        return await run(statement, *given)

    monkeypatch.setattr(PreparedStatement, "_run", noted)
    for path in (disabled["webhookPath"], "/v1/hooks/" + "0" * 32, "/v1/hooks/x"):
        await stranger.post(path)
    # The call of a webhook that is closed is kept.
    assert len(asked) == 4
    assert len(set(asked)) == 2


# ---- the other ways to know a caller


async def test_a_digest_of_the_body_is_verified_as_configured(
    client: Client, space: Space, stranger: Client
) -> None:
    signature = {"scheme": "hmac_sha256", "header": "X-Hub-Signature-256"}
    dedupe = {"source": "header", "name": "X-GitHub-Delivery"}
    made = await make_hook(client, space, signature=signature, dedupe=dedupe)
    digest = hmac.digest(made["webhookSecret"].encode(), BODY, "sha256").hex()
    headers = {**JSON, "X-Hub-Signature-256": f"sha256={digest}", "X-GitHub-Delivery": "d-1"}
    first = await stranger.post(made["webhookPath"], content=BODY, headers=headers)
    assert first.status_code == 202
    wrong = await stranger.post(made["webhookPath"], content=BODY + b" ", headers=headers)
    assert refusal(wrong) == (401, "unauthorized")
    again = read(await stranger.post(made["webhookPath"], content=BODY, headers=headers))
    assert (again["runId"], again["duplicate"]) == (read(first, 202)["runId"], True)


async def test_basic_authentication_accepts_the_secret_as_password(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="basic")
    path = made["webhookPath"]
    assert (await stranger.post(path, auth=("me", made["webhookSecret"]))).status_code == 202
    refused = await stranger.post(path, auth=("me", "guess"))
    assert refusal(refused) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == 'Basic realm="webhook"'


async def test_header_authentication_accepts_the_secret(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="header")
    path, secret = made["webhookPath"], made["webhookSecret"]
    assert (await stranger.post(path, headers={"X-Webhook-Secret": secret})).status_code == 202
    refused = await stranger.post(path, headers={"X-Webhook-Secret": secret + "x"})
    assert refusal(refused) == (401, "unauthorized")


async def test_a_secret_of_the_workspace_verifies_what_its_sender_signs(
    client: Client, space: Space, stranger: Client
) -> None:
    theirs = "whsec_dGhlaXIgb3duIHNlY3JldA=="
    await client.put(f"{space.path}/secrets/SENDER", json={"value": theirs})
    made = await make_hook(client, space, secretName="SENDER")
    path = made["webhookPath"]
    headers = {**JSON, **signed(theirs, BODY)}
    assert (await stranger.post(path, content=BODY, headers=headers)).status_code == 202
    assert refusal(await send(stranger, made)) == (401, "unauthorized")
    await client.delete(f"{space.path}/secrets/SENDER", params={"force": "true"})
    headers = {**JSON, **signed(theirs, BODY)}
    refused = await stranger.post(path, content=BODY, headers=headers)
    assert refusal(refused) == (401, "unauthorized")


async def test_a_secret_that_is_not_there_is_an_issue(client: Client, space: Space) -> None:
    made = await create(client, space, triggerConfig={"kind": "webhook", "secretName": "NOWHERE"})
    assert [issue["message"] for issue in made["referenceIssues"]] == [
        'triggerConfig.secretName: Secret "NOWHERE" not found.'
    ]
    assert refusal(await client.post(f"{path_of(made)}/publish", json={})) == (
        400,
        "validation_error",
    )


# ---- the secret


async def age_rotation(space: Space, made: Json, hours: float) -> None:
    """Let this number of hours pass since the last rotation."""
    async with space.database.transaction() as work:
        until = automation.c.previous_webhook_secret_until - timedelta(hours=hours)
        await work.execute(
            update(automation)
            .where(automation.c.id == made["id"])
            .values(previous_webhook_secret_until=until)
        )


async def test_a_rotated_secret_is_good_for_another_day(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space)
    rotated = read(await client.post(f"{path_of(made)}/rotate-webhook-secret", json={}))
    assert rotated["webhookSecret"] != made["webhookSecret"]
    assert rotated["webhookPath"] == made["webhookPath"]
    assert len(base64.b64decode(rotated["webhookSecret"].removeprefix("whsec_"))) == 32
    assert (await send(stranger, made)).status_code == 202
    assert (await send(stranger, rotated)).status_code == 202
    await age_rotation(space, made, 23)
    assert (await send(stranger, made)).status_code == 202
    await age_rotation(space, made, 2)
    assert (await send(stranger, made)).status_code == 401
    assert (await send(stranger, rotated)).status_code == 202


async def test_only_the_secret_before_the_last_rotation_stays_valid(
    client: Client, space: Space, stranger: Client
) -> None:
    first = await make_hook(client, space)
    rotate = f"{path_of(first)}/rotate-webhook-secret"
    second = read(await client.post(rotate, json={}))
    third = read(await client.post(rotate, json={}))
    statuses = [(await send(stranger, one)).status_code for one in (first, second, third)]
    assert statuses == [401, 202, 202]


async def test_a_rotation_repeated_under_its_key_is_one(client: Client, space: Space) -> None:
    made = await make_hook(client, space)
    headers = {"Idempotency-Key": "rotate-once"}
    path = f"{path_of(made)}/rotate-webhook-secret"
    first = read(await client.post(path, json={}, headers=headers))
    again = read(await client.post(path, json={}, headers=headers))
    assert again["webhookSecret"] == first["webhookSecret"] != made["webhookSecret"]


async def test_the_secret_is_shown_to_those_who_may_edit(client: Client, space: Space) -> None:
    made = await make_hook(client, space)

    async def shown(token: str) -> str | None:
        detail = read(await client.with_token(token).get(path_of(made)))
        secret: str | None = detail.get("webhookSecret")
        return secret

    user_id, editor = await space.member(Role.EDITOR)
    _, viewer = await space.member(Role.VIEWER)
    reader = await space.key([Scope.AUTOMATIONS_READ])
    assert await shown(editor) == made["webhookSecret"]
    assert await shown(viewer) is None
    assert await shown(reader) is None
    grants = [{"userId": str(user_id), "level": "view"}]
    access = f"/v1/items/{made['itemId']}/access"
    read(await client.put(access, json={"accessMode": "restricted", "grants": grants}))
    assert await shown(editor) is None
    assert await shown(space.token) == made["webhookSecret"]
    rotate = f"{path_of(made)}/rotate-webhook-secret"
    assert refusal(await client.with_token(editor).post(rotate, json={})) == (403, "denied")


# ---- filter and log


@pytest.mark.parametrize(
    "given",
    [
        'trigger.body.action == "opened" && trigger.method == "POST"',
        {"field": "trigger.body.action", "op": "eq", "value": "opened"},
    ],
    ids=["expression", "tree"],
)
async def test_a_call_the_filter_lets_go_starts_nothing(
    client: Client, space: Space, stranger: Client, given: Any
) -> None:
    made = await make_hook(client, space, filter=given)
    body: Any
    for body in ({"action": "closed"}, {"other": 1}, []):
        answer = read(await send(stranger, made, body), 202)
        assert answer == {"status": "filtered", "duplicate": False}
    assert await runs_of(space, made) == 0
    assert read(await send(stranger, made, {"action": "opened"}), 202)["status"] == "queued"
    assert await runs_of(space, made) == 1


@pytest.mark.long
@pytest.mark.parametrize("text", [COMPARED, f"{REPLACED} == trigger.body.n"])
async def test_a_filter_that_grows_without_end_lets_nothing_through(
    client: Client, space: Space, stranger: Client, text: str
) -> None:
    made = await make_hook(client, space, filter=text)
    assert read(await send(stranger, made, {"n": "a"}), 202)["status"] == "filtered"
    assert await runs_of(space, made) == 0


async def test_a_deduplication_key_that_is_all_of_the_body_starts_nothing(
    client: Client, space: Space, stranger: Client
) -> None:
    dedupe = {"source": "path", "name": "$..*", "windowSeconds": 60}
    made = await make_hook(client, space, dedupe=dedupe)
    nested: Any = 1
    for _ in range(50):
        nested = {"a": nested, "b": [0] * 1_000}
    answer = await send(stranger, made, nested)
    assert refusal(answer) == (400, "expression_limit")
    assert await runs_of(space, made) == 0


async def test_a_call_is_logged_without_its_token(
    client: Client, space: Space, stranger: Client, app: Any
) -> None:
    made = await make_hook(client, space)
    await send(stranger, made)
    await stranger.post(made["webhookPath"], content=BODY)
    await app.state.services.request_log.flush()
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(request_log)
            .where(
                request_log.c.workspace_id == space.id,
                request_log.c.principal_type == "webhook",
            )
            .order_by(request_log.c.id)
        )
    assert [(row.status, row.path, str(row.principal_id)) for row in rows] == [
        (202, "/v1/hooks/{webhookToken}", made["id"]),
        (401, "/v1/hooks/{webhookToken}", made["id"]),
    ]


async def test_a_draft_leaves_the_published_webhook_as_it_is(
    client: Client, space: Space, stranger: Client
) -> None:
    made = await make_hook(client, space, auth="none", graph=numbered(1))
    await client.patch(path_of(made), json={"triggerConfig": {"kind": "webhook"}})
    assert (await stranger.post(made["webhookPath"])).status_code == 202
    await client.post(f"{path_of(made)}/publish", json={})
    assert (await stranger.post(made["webhookPath"])).status_code == 401
