"""Every refusal in one shape, the framework's too (decisions C2; reliability D1, 10 to 13)."""

from uuid import uuid4

import pytest
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from api.app import create_app
from api.kernel.responses import as_refusal
from runtime.settings import Settings
from tests.support.client import Client, Contract
from tests.support.spaces import Space


@pytest.mark.parametrize(
    ("code", "status", "tag", "retry_after"),
    [
        ("not_found", 404, "ApiNotFound", None),
        ("validation_error", 400, "ApiValidationError", None),
        ("invalid", 400, "ApiInvalid", None),
        ("run_error", 409, "ApiRunError", None),
        ("conflict", 409, "ApiConflict", None),
        ("in_progress", 409, "ApiInProgress", "2"),
        ("conflicting_mutation", 422, "ApiConflictingMutation", None),
        ("unsupported", 422, "ApiUnsupported", None),
        ("denied", 403, "ApiDenied", None),
        ("upstream_error", 502, "ApiUpstreamError", None),
        ("rate_limited", 429, "ApiRateLimited", "1"),
        ("unavailable", 503, "ApiUnavailable", "2"),
    ],
)
async def test_every_class_has_its_shape(
    probes: Client, probe_path: str, code: str, status: int, tag: str, retry_after: str | None
) -> None:
    answer = await probes.post(probe_path, json={"name": "n", "raises": code})
    body = answer.json()
    keys = {"_tag", "error", "message", "status"}
    assert answer.status_code == status
    assert set(body) == keys | ({"details"} if code == "validation_error" else set())
    assert (body["_tag"], body["error"], body["status"]) == (tag, code, status)
    assert answer.headers.get("retry-after") == retry_after


async def test_a_bug_tells_nothing(
    probes: Client, probe_path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = await probes.post(probe_path, json={"name": "n", "raises": "bug"})
    assert answer.status_code == 500
    assert answer.json()["error"] == "internal_error"
    assert "secret" not in answer.text
    assert "KeyError" not in answer.text
    assert "unexpected_error" in "".join(capfd.readouterr())


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/", "/v1/me/", "/v1/workspaces/", "/nope", "/v1/%00", "/docs/x", "//v1/me"],
)
async def test_unknown_paths_are_not_found(client: Client, path: str) -> None:
    answer = await client.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 404
    assert answer.json()["_tag"] == "ApiNotFound"
    assert "location" not in answer.headers


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "PUT", "POST"])
async def test_unknown_methods_are_not_allowed(client: Client, method: str) -> None:
    answer = await client.request(method, "/v1/me", headers={"X-HTTP-Method-Override": "GET"})
    assert answer.status_code == 405
    if method != "HEAD":
        assert answer.json()["error"] == "method_not_allowed"
    assert answer.headers["allow"] == "GET"
    assert (await client.request(method, "/nope")).status_code == 404


async def test_what_is_not_served_is_told_to_known_callers(client: Client, space: Space) -> None:
    unknown = (
        ("GET", "/v1/nope"),
        ("POST", "/v1/items/search"),
        ("GET", f"{space.path}/nope"),
        ("GET", f"/v1/items/{uuid4()}/duplicate/x"),
        ("GET", "/"),
    )
    unallowed = (
        ("PUT", "/v1/me"),
        ("PUT", f"/v1/items/{uuid4()}"),
        ("GET", f"/v1/items/{uuid4()}/move"),
    )
    for asked, status in ((unknown, 404), (unallowed, 405)):
        for method, path in asked:
            for token in (None, "svc_sk_typo", f"{space.token[:-1]}"):
                refused = await client.with_token(token).request(method, path)
                assert refused.status_code == 401, path
                assert refused.headers["www-authenticate"] == "Bearer"
            answer = await client.request(method, path, params={"a": "b"}, content=b"not json")
            assert answer.status_code == status, path
    assert (await client.with_token(None).put("/healthz")).status_code == 405


async def test_allow_names_every_method_of_a_path(client: Client, space: Space) -> None:
    answer = await client.put(f"{space.path}/api-keys")
    assert answer.headers["allow"] == "GET, POST"
    assert answer.json()["message"].endswith("it knows: GET, POST.")


async def test_an_unknown_path_tells_its_neighbours_to_known_callers_alone(
    client: Client, space: Space
) -> None:
    path = f"{space.path}/databases/{uuid4()}/records"
    assert "/v1/" not in (await client.with_token(None).get(path)).text
    answer = await client.get(path)
    assert answer.status_code == 404
    assert "/v1/databases/{databaseId}/records (GET, POST)" in answer.json()["message"]


async def test_what_every_answer_carries(client: Client) -> None:
    for path, status in (("/v1/me", 200), ("/nope", 404), ("/v1/probes?x=1", 404)):
        answer = await client.get(path, headers={"X-Request-Id": "abc-1"})
        assert answer.status_code == status
        assert answer.headers["x-request-id"] == "abc-1"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
    for insane in (b"", b"a b", b"\xff", b"x" * 129, b"a\x01"):
        answer = await client.get("/v1/me", headers=[(b"X-Request-Id", insane)])
        assert len(answer.headers["x-request-id"]) == 32


@pytest.fixture
def cut_off(settings: Settings) -> FastAPI:
    """The application with a database that is not there."""
    return create_app(
        settings.model_copy(
            update={"database_url": type(settings.database_url)("postgresql://127.0.0.1:1/none")}
        ),
        background=(),
    )


async def test_without_a_database_answers_are_503(
    cut_off: FastAPI, client: Client, contract: Contract, space: Space
) -> None:
    alone = Client(cut_off, contract, space.token)
    for path in ("/v1/me", "/readyz"):
        answer = await alone.get(path)
        assert answer.status_code == 503
        assert answer.json()["_tag"] == "ApiUnavailable"
        assert answer.headers["retry-after"] == "2"
    assert (await alone.get("/healthz")).status_code == 200
    assert (await alone.with_token("svc_sk_typo").get("/v1/me")).status_code == 401
    assert (await client.get("/readyz")).json() == {"data": {"status": "ready"}}


async def test_what_takes_too_long_is_not_called_unreachable(space: Space) -> None:
    async with space.database.transaction() as work:
        await work.execute(text("SET LOCAL statement_timeout = '1ms'"))
        with pytest.raises(OperationalError) as slow:
            await work.execute(text("SELECT pg_sleep(60)"))
    refusal = as_refusal(slow.value)
    assert refusal.status == 503
    assert refusal.message.startswith("This took too long")
