"""The adapter of servers that list their resources in our format."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.providers.adapter import Listing, ProblemKind, ProviderProblem
from activities.providers.http import HttpAdapter
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import Endpoint, Serve, reply
from tests.support.provider_asking import access, listed_ids, named, problem_of

SECRET = "http-canary-19"
PLAN: dict[str, Any] = {
    "externalType": "doc",
    "externalId": "a/b?c",
    "name": "Plan",
    "surfaceKind": "document",
    "mimeType": "text/markdown",
    "revision": "7",
}


@pytest.fixture
def http(outbound: OutboundClient) -> HttpAdapter:
    return HttpAdapter(outbound)


def given(server: Endpoint) -> Any:
    return access({"baseUrl": f"{server.url}v1", "auth": "bearer"}, secret=SECRET)


async def test_it_browses_page_by_page(http: HttpAdapter, serve: Serve) -> None:
    pages = [{"resources": [PLAN], "cursor": "2"}, {"resources": [{**PLAN, "externalId": "z"}]}]
    server = await serve(*(reply(200, page) for page in pages))
    assert await listed_ids(http, given(server), "top", query="pl n", limit=1) == ["a/b?c", "z"]
    first, second = (one.line for one in server.requests)
    assert first == "GET /v1/resources?parent=top&query=pl+n&limit=1 HTTP/1.1"
    assert "cursor=2" in second
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_it_reads_and_downloads(http: HttpAdapter, serve: Serve, tmp_path: Path) -> None:
    content = reply(200, "# Plan\0", type_="text/markdown; charset=utf-8", etag='"1"')
    server = await serve(reply(200, PLAN), content, content, reply(304, b"", etag='"1"'))
    plan = await http.describe(given(server), named("doc", "a/b?c"))
    read = await http.read(given(server), plan)
    assert (read.format.value, read.content, read.revision) == ("markdown", "# Plan\ufffd", "7")
    target = tmp_path / "file"
    done = await http.download(given(server), plan, target, {})
    assert (target.read_text(), done.mime_type) == ("# Plan\0", "text/markdown")
    again = await http.download(given(server), plan, target, done.validators)
    assert (again.unchanged, again.validators) == (True, done.validators)
    assert server.requests[0].line == "GET /v1/resources/a%2Fb%3Fc HTTP/1.1"
    assert server.requests[3].headers["if-none-match"] == '"1"'


async def test_forms_are_ours_or_google(http: HttpAdapter, serve: Serve) -> None:
    server = await serve(reply(200, {"title": "Ask", "questions": [{"label": "Why?"}]}))
    form = named("form", "f", surfaceKind="form")
    assert (await http.form(given(server), form)).questions[0].label == "Why?"
    assert await problem_of(http.form(given(server), named("doc", "f"))) is ProblemKind.UNSUPPORTED
    empty = await serve(reply(200, {}))
    assert await problem_of(http.form(given(empty), form)) is ProblemKind.UNSUPPORTED


async def test_hostile_listings_are_made_fit(http: HttpAdapter, serve: Serve) -> None:
    hostile = [
        {**PLAN, "externalId": "\0"},
        {**PLAN, "externalId": 5},
        {**PLAN, "externalId": "x" * 1_001},
        "text",
        {**PLAN, "externalId": "ok", "name": "\u202egpj.exe\0", "canonicalUrl": "javascript:x"},
        {**PLAN, "externalId": "able", "capabilities": ["read", "watch", "drop", ["x"]]},
    ]
    server = await serve(reply(200, {"resources": hostile * 200, "cursor": 7}))
    page = await http.browse(given(server), Listing())
    assert len(page.resources) <= 100
    shown = {one.external_id: one for one in page.resources}
    assert shown.keys() == {"ok", "able"}
    assert (shown["ok"].name, shown["ok"].canonical_url) == ("gpj.exe", None)
    assert [one.value for one in shown["able"].capabilities] == ["read", "watch"]


@pytest.mark.parametrize("external_id", [".", ".."])
async def test_ids_that_lead_elsewhere(http: HttpAdapter, serve: Serve, external_id: str) -> None:
    server = await serve(reply(200, PLAN))
    wanted = named("doc", external_id)
    assert await problem_of(http.describe(given(server), wanted)) is ProblemKind.GONE
    assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(200, []), ProblemKind.MALFORMED),
        (reply(200, {"resources": {}}), ProblemKind.MALFORMED),
        (reply(200, '{"resources": [' * 9), ProblemKind.MALFORMED),
        (reply(200, '{"resources": [NaN]}'), ProblemKind.MALFORMED),
        (reply(200, {"resources": []})[:-4], ProblemKind.UNAVAILABLE),
        (reply(401, SECRET), ProblemKind.AUTH),
        (reply(403, {}), ProblemKind.DENIED),
        (reply(404, {}), ProblemKind.GONE),
        (reply(418, SECRET), ProblemKind.MALFORMED),
        (reply(429, {}, retry_after="60"), ProblemKind.RATE_LIMITED),
        (reply(500, SECRET), ProblemKind.UNAVAILABLE),
        (reply(307, b"", location="http://[::ffff:169.254.169.254]/"), ProblemKind.INVALID),
        (reply(307, b"", location="file:///etc/passwd"), ProblemKind.INVALID),
        (reply(200, b"x" * 17_000_000), ProblemKind.TOO_LARGE),
    ],
    ids=lambda one: one.value if isinstance(one, ProblemKind) else None,
)
async def test_any_answer_of_a_server_is_handled(
    http: HttpAdapter, serve: Serve, answer: bytes, kind: ProblemKind
) -> None:
    server = await serve(answer)
    with pytest.raises(ProviderProblem) as raised:
        await http.browse(given(server), Listing())
    assert raised.value.kind is kind
    assert raised.value.retry_after == (60 if kind is ProblemKind.RATE_LIMITED else None)
    assert SECRET not in str(raised.value)


async def test_a_short_pause_is_kept(http: HttpAdapter, serve: Serve) -> None:
    busy = reply(429, {}, retry_after="0")
    server = await serve(busy, busy, reply(200, {"resources": []}))
    assert (await http.browse(given(server), Listing())).resources == []
    always = await serve(busy)
    assert await problem_of(http.browse(given(always), Listing())) is ProblemKind.RATE_LIMITED
    assert len(always.requests) == 3


async def test_the_secret_is_sent_to_its_origin_alone(http: HttpAdapter, serve: Serve) -> None:
    other = await serve(reply(200, {"resources": []}))
    server = await serve(reply(302, b"", location=other.url))
    await http.browse(given(server), Listing())
    assert SECRET not in json.dumps([one.headers for one in other.requests])
