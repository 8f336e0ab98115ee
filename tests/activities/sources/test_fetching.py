"""Fetching from servers of every style and every misbehaviour, over real connections."""

import asyncio
import base64
import gzip
import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from activities.sources import fetching, requests
from activities.sources.fetching import Fetched, HttpSource, fetch_pages
from activities.sources.readers.opening import open_table
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules import options as tabular_options
from models.sources.tabular.rules.options import ErrorKind, SourceProblem, TableFormat, read_options
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import Answer, Endpoint, Serve, never, reply

SECRET = "s3cr3t-in-the-query"

Json = dict[str, Any]
Fetch = Callable[..., Awaitable[list[Json]]]


class Fetcher:
    """Fetches from an endpoint and reads what it gave."""

    def __init__(self, serve: Serve, outbound: OutboundClient, directory: Path) -> None:
        self.serve, self.outbound, self.directory = serve, outbound, directory
        self.states: list[Fetched] = []
        self.endpoint = Endpoint([])

    async def __call__(
        self,
        *answers: Answer,
        kind: DataSourceKind = DataSourceKind.HTTP_JSON,
        done: Fetched | None = None,
        keys: Sequence[str] = (),
        seconds: float = 10,
        **config: Any,
    ) -> list[Json]:
        """The rows of all pages. Raises SourceProblem."""
        self.endpoint = await self.serve(*answers)
        given = {"url": f"{self.endpoint.url}?token={SECRET}", **config}
        if "url" in config:
            given["url"] = config["url"].format(port=self.endpoint.port)
        auth = {"Authorization": "Bearer credential"}
        source = HttpSource(self.outbound, kind, given, auth, keys, seconds=seconds)
        files: list[Path] = []

        async def keep(path: Path, state: Fetched) -> None:
            files.append(path)
            self.states.append(state)

        await fetch_pages(source, self.directory, keep, done)
        table_format = fetching.FORMATS.get(kind, TableFormat(given.get("format", "json")))
        options = read_options(given, table_format, self.states[0].charset)
        table = open_table(files, options)
        return [dict(zip(table.headers, row, strict=True)) for row in table.rows()]

    @property
    def asked(self) -> list[str]:
        """What each request asked for, without the secret."""
        lines = [request.line.split()[1] for request in self.endpoint.requests]
        return [line.replace(f"token={SECRET}", "").strip("/?&") for line in lines]

    async def problem(self, *answers: Answer, **given: Any) -> SourceProblem:
        with pytest.raises(SourceProblem) as raised:
            await self(*answers, **given)
        assert SECRET not in raised.value.message
        assert "credential" not in raised.value.message
        return raised.value


@pytest.fixture
def fetch(serve: Serve, outbound: OutboundClient, tmp_path: Path) -> Fetcher:
    return Fetcher(serve, outbound, tmp_path)


def rows(*numbers: int) -> bytes:
    return reply(200, [{"n": number} for number in numbers])


def linking(number: int, link: str) -> bytes:
    return reply(200, [{"n": number}], link=link)


def cursor(number: int, following: Any) -> bytes:
    return reply(200, {"rows": [{"n": number}], "meta": {"next": following}})


def numbers(found: list[Json]) -> list[Any]:
    return [row["n"] for row in found]


CURSOR: dict[str, Any] = {
    "pagination": {"type": "cursor", "param": "after", "cursorPath": "$.meta.next"},
    "jsonPath": "$.rows",
}
LINKS = {"pagination": {"type": "link_header"}}


@pytest.mark.parametrize(
    ("config", "answers", "asked"),
    [
        pytest.param(
            {"pagination": {"type": "page", "param": "page"}},
            [rows(1, 2), rows(3), rows()],
            ["page=1", "page=2", "page=3"],
            id="page-until-an-empty-one",
        ),
        pytest.param(
            {"pagination": {"type": "page", "param": "page", "pageSize": 2}},
            [rows(1, 2), rows(3), rows()],
            ["page=1", "page=2", "page=3"],
            id="page-behind-a-short-one",
        ),
        pytest.param(
            {"pagination": {"type": "page", "param": "p"}, "url": "http://127.0.0.1:{port}/?p=0"},
            [rows(1, 2), rows(3), rows()],
            ["p=0", "p=1", "p=2"],
            id="page-from-the-number-in-the-url",
        ),
        pytest.param(
            {"pagination": {"type": "offset", "param": "skip"}, "query": {"limit": "2"}},
            [rows(1, 2), rows(3), rows()],
            ["limit=2&skip=0", "limit=2&skip=2", "limit=2&skip=3"],
            id="offset-by-the-rows-that-came",
        ),
        pytest.param(
            {"pagination": {"type": "offset", "param": "skip", "pageSize": 2}},
            [rows(1, 2), rows(3), rows()],
            ["skip=0", "skip=2", "skip=3"],
            id="offset-behind-a-short-one",
        ),
        pytest.param(
            CURSOR,
            [cursor(1, "a&b=ü"), cursor(2, 7), cursor(3, None)],
            ["", "after=a%26b%3D%C3%BC", "after=7"],
            id="cursor",
        ),
        pytest.param(
            LINKS,
            [linking(1, '</a?x=1>; rel="next"'), linking(2, "<b>; rel=next"), rows(3)],
            ["", "a?x=1", "b"],
            id="link-header",
        ),
    ],
)
async def test_every_style_of_pages_is_followed_to_the_last(
    fetch: Fetcher, config: Json, answers: list[bytes], asked: list[str]
) -> None:
    assert numbers(await fetch(*answers, **config)) == [1, 2, 3]
    assert fetch.asked == asked
    assert (fetch.states[-1].pages, fetch.states[-1].rows) == (len(answers), 3)


ENDS = {
    "none": rows(),
    "400": reply(400, {"code": "rest_post_invalid_page_number"}),
    "404": reply(404, {"detail": "Invalid page."}),
    "416": reply(416),
    "the last one": None,
}
"""The answers of servers that are asked for a page beyond their last one."""


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["page", "offset"])
@pytest.mark.parametrize(
    "sizes",
    [[50, 50, 20], [50, 50], [20], [99, 98, 99], [100, 97, 100, 3], [1] * 5, [100, 50]],
    ids=str,
)
async def test_no_row_is_missing_where_pages_are_smaller_than_asked(
    fetch: Fetcher, sizes: list[int], kind: str, end: str
) -> None:
    begins = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    pages = [rows(*range(*ends)) for ends in pairwise(begins)]
    beyond = ENDS[end]
    answers = pages if beyond is None else [*pages, beyond]
    config: Json = {"pagination": {"type": kind, "param": "p", "pageSize": 100}}
    assert numbers(await fetch(*answers, **config)) == [*range(begins[-1])]
    asked = begins if kind == "offset" else range(1, len(sizes) + 2)
    assert fetch.asked == [f"p={number}" for number in asked]


@pytest.mark.parametrize(
    ("headers", "total"),
    [
        ({"x-total-count": "12"}, 12),
        ({"x-wp-total": "7", "x-wp-totalpages": "2"}, 7),
        ({"content-range": "items 0-24/319"}, 319),
        ({"content-range": "bytes 0-24/319"}, None),
        ({"content-range": "items 0-24/*"}, None),
        ({"x-total-count": "many"}, None),
        ({"x-total-count": "9" * 40}, None),
        ({}, None),
    ],
)
async def test_the_rows_that_headers_state_are_known(
    fetch: Fetcher, headers: dict[str, str], total: int | None
) -> None:
    named = {name.replace("-", "_"): value for name, value in headers.items()}
    await fetch(reply(200, [{"n": 1}], type_="application/json", **named))
    assert fetch.states[-1].stated == total


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_an_error_behind_a_short_page_is_no_end(fetch: Fetcher, status: int) -> None:
    pages: Json = {"pagination": {"type": "page", "param": "p", "pageSize": 2}}
    problem = await fetch.problem(rows(1), reply(status), **pages)
    assert problem.message == f"The server returned {status}."


@pytest.mark.parametrize("status", [400, 404])
async def test_a_page_that_is_refused_behind_a_full_one_fails(fetch: Fetcher, status: int) -> None:
    pages: Json = {"pagination": {"type": "page", "param": "p", "pageSize": 2}}
    await fetch.problem(rows(1, 2), reply(status), **pages)
    await fetch.problem(reply(status), **pages)


@pytest.mark.parametrize("status", [400, 404, 410, 416, 422, 500])
@pytest.mark.parametrize("kind", ["page", "offset"])
@pytest.mark.parametrize("stating", ["header", "member"])
async def test_a_refusal_behind_all_rows_that_are_stated_is_the_end(
    fetch: Fetcher, stating: str, kind: str, status: int
) -> None:
    def page(*numbers: int) -> bytes:
        found = [{"n": number} for number in numbers]
        if stating == "header":
            return reply(200, found, type_="application/json", x_wp_total="4")
        return reply(200, {"items": found, "meta": {"total": 4}})

    pages: Json = {"pagination": {"type": kind, "param": "p", "pageSize": 2}}
    assert numbers(await fetch(page(1, 2), page(3, 4), reply(status), **pages)) == [1, 2, 3, 4]


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_other_errors_behind_all_rows_fail(fetch: Fetcher, status: int) -> None:
    pages: Json = {"pagination": {"type": "page", "param": "p", "pageSize": 2}}
    whole = reply(200, [{"n": 1}, {"n": 2}], type_="application/json", x_total_count="2")
    assert f"{status}" in (await fetch.problem(whole, reply(status), **pages)).message


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_a_member_that_may_count_its_own_page_ends_nothing(
    fetch: Fetcher, count: int
) -> None:
    page = reply(200, {"count": count, "items": [{"n": 1}, {"n": 2}]})
    pages: Json = {"pagination": {"type": "page", "param": "p", "pageSize": 2}}
    await fetch.problem(page, reply(404), **pages)


def enveloped(at: int, *numbers: int) -> bytes:
    return reply(200, {"at": at, "rows": [{"n": number} for number in numbers]})


@pytest.mark.parametrize("kind", ["page", "offset"])
async def test_rows_that_come_again_are_noticed(fetch: Fetcher, kind: str) -> None:
    pages = {"pagination": {"type": kind, "param": "p", "maxPages": 3}}
    problem = await fetch.problem(enveloped(1, 1, 2), enveloped(2, 1, 2), **pages)
    assert "the same page again. It seems to ignore p." in problem.message
    assert len(fetch.asked) == 2


async def test_a_cursor_leads_through_pages_of_equal_rows(fetch: Fetcher) -> None:
    assert numbers(await fetch(cursor(1, 2), cursor(1, 3), cursor(1, None), **CURSOR)) == [1, 1, 1]


@pytest.mark.parametrize("following", [{"after": "z"}, ["z"]])
async def test_a_cursor_that_is_no_value_is_refused(fetch: Fetcher, following: Any) -> None:
    with pytest.raises(SourceProblem) as raised:
        await fetch(cursor(1, following), **CURSOR)
    assert raised.value.kind is ErrorKind.MAPPING
    assert "$.meta.next is " in raised.value.message


async def test_a_list_that_moved_is_named(fetch: Fetcher) -> None:
    moved = reply(200, {"items": [{"n": 2}], "meta": {"next": None}})
    problem = await fetch.problem(cursor(1, 2), moved, pagination=CURSOR["pagination"])
    assert problem.message == (
        "The response has no list at $.rows, where its rows were before. It has one at $.items."
        " If they have moved, set jsonPath."
    )


@pytest.mark.parametrize("last", [None, "", False, 0, [], {}])
async def test_a_cursor_without_a_value_is_that_of_the_last_page(fetch: Fetcher, last: Any) -> None:
    assert numbers(await fetch(cursor(1, True), cursor(2, last), **CURSOR)) == [1, 2]
    assert fetch.asked == ["", "after=true"]


async def test_a_broken_fetch_continues_after_the_last_page(fetch: Fetcher) -> None:
    await fetch.problem(cursor(1, "b"), cursor(2, "c"), reply(503), **CURSOR)
    [*_, last] = fetch.states
    assert await fetch(cursor(3, None), done=last, **CURSOR)
    assert (fetch.asked, fetch.states[-1].pages) == (["after=c"], 3)


@pytest.mark.parametrize(
    ("answers", "config"),
    [
        pytest.param([cursor(1, "a"), cursor(2, "a")], CURSOR, id="same-cursor"),
        pytest.param(
            [cursor(number, "abc"[number % 3]) for number in range(12)], CURSOR, id="circle"
        ),
        pytest.param([linking(1, "<?token=>; rel=next")] * 3, LINKS, id="link-to-itself"),
        pytest.param(
            [rows(1, 2)] * 9, {"pagination": {"type": "page", "param": "page"}}, id="passed-over"
        ),
    ],
)
async def test_a_server_that_sends_in_circles_is_left(
    fetch: Fetcher, answers: list[bytes], config: Json
) -> None:
    problem = await fetch.problem(*answers, **config)
    assert (problem.kind, problem.retryable) == (ErrorKind.FETCH, False)
    assert len(fetch.endpoint.requests) < 12


async def test_credentials_stay_on_the_origin_of_the_config(fetch: Fetcher, serve: Serve) -> None:
    elsewhere = await serve(rows(9))
    link = f"<{elsewhere.url}>; rel=next"
    problem = await fetch.problem(linking(1, link), **LINKS)
    assert f"127.0.0.1:{elsewhere.port}" in problem.message
    assert elsewhere.requests == [], "another port is another origin"
    # A redirect is followed without credentials. What is linked there is another origin's, too.
    elsewhere.answers[:] = [linking(1, "</two>; rel=next"), rows(2)]
    problem = await fetch.problem(reply(302, location=elsewhere.url), **LINKS)
    [asked] = elsewhere.requests
    assert "authorization" not in asked.headers
    assert "another origin" in problem.message


async def test_more_than_a_source_may_hold_is_refused(
    fetch: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [rows(number) for number in range(9)]
    by_page = {"type": "page", "param": "page"}
    found = await fetch(*pages, pagination={**by_page, "maxPages": 3})
    assert numbers(found) == [0, 1, 2], "what the config leaves out is left out"
    for name, most in [("MAX_PAGES", 3), ("MAX_ROWS", 2), ("MAX_FETCH_BYTES", 20)]:
        with monkeypatch.context() as patched:
            patched.setattr(fetching, name, most, raising=False)
            patched.setattr(tabular_options, name, most, raising=False)
            patched.setattr(requests, name, most, raising=False)
            problem = await fetch.problem(
                *pages, pagination={**by_page, "maxPages": fetching.MAX_PAGES}
            )
        assert problem.kind is ErrorKind.TOO_LARGE, name


async def test_a_page_without_the_keys_of_its_rows_is_refused(fetch: Fetcher) -> None:
    by_page: dict[str, Any] = {"pagination": {"type": "page", "param": "page"}, "keys": ["id"]}
    first, bare = reply(200, [{"id": 1, "a": 2}]), reply(200, [{"id": 2}])
    assert len(await fetch(first, bare, rows(), **by_page)) == 2, "other columns may come and go"
    renamed = reply(200, [{"key": 2, "a": 3}])
    problem = await fetch.problem(first, renamed, rows(), **by_page)
    assert (problem.kind, "Page 2 lacks the key column id" in problem.message) == (
        ErrorKind.MAPPING,
        True,
    )


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b"[")
        await writer.drain()
        await asyncio.sleep(0.02)


async def bomb(writer: asyncio.StreamWriter) -> None:
    packed = gzip.compress(b" " * (requests.MAX_FETCH_BYTES + 1), 9)
    writer.write(reply(200, packed, content_encoding="gzip"))
    await writer.drain()


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "kind", "retryable", "words"),
    [
        pytest.param(drip, "timeout", True, "timed out", id="drip"),
        pytest.param(never, "timeout", True, "timed out", id="silent"),
        pytest.param(
            reply(200, [1])[:-1], "fetch", True, "incomplete HTTP response", id="truncated"
        ),
        pytest.param(bomb, "too_large", False, "larger", id="bomb"),
        pytest.param(
            reply(302, location="http://169.254.169.254/latest/meta-data/"),
            "fetch", False, "169.254.169.254 is not a public address", id="to-metadata",
        ),
        pytest.param(
            reply(302, location="http://127.0.0.2/"),
            "fetch", False, "127.0.0.2 is not a public address", id="to-private",
        ),
        pytest.param(
            reply(302, location="/"), "fetch", False, "redirected more than", id="redirects"
        ),
        pytest.param(reply(302, location="file:///etc/passwd"), "fetch", False, "", id="to-file"),
        pytest.param(reply(404), "fetch", False, "returned 404", id="missing"),
        pytest.param(reply(401), "auth", False, "returned 401", id="denied"),
        pytest.param(reply(503), "fetch", True, "returned 503", id="away"),
        pytest.param(reply(304), "fetch", False, "returned 304", id="unasked-304"),
        pytest.param(
            reply(429, retry_after="7200"), "fetch", False, "120 minutes", id="busy-for-long"
        ),
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", "fetch", True, "complete HTTP", id="no-http"),
    ],
)  # fmt: skip
async def test_a_server_that_does_not_answer_is_reported_truly(
    fetch: Fetcher, answer: Answer, kind: str, retryable: bool, words: str
) -> None:
    problem = await fetch.problem(answer, seconds=0.3 if answer in {drip, never} else 10)
    assert (problem.kind.value, problem.retryable) == (kind, retryable), problem.message
    assert words in problem.message


async def test_a_server_that_asks_for_time_is_given_it(fetch: Fetcher) -> None:
    problem = await fetch.problem(reply(429, retry_after="7"))
    assert (problem.retryable, problem.retry_after) == (True, 7)


TEXT = [{"n": "Müller €"}]


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        pytest.param("\ufeff" + json.dumps(TEXT, ensure_ascii=False), "text/html", id="mark"),
        pytest.param(
            json.dumps(TEXT, ensure_ascii=False).encode("utf-16"), "application/json", id="utf-16"
        ),
        pytest.param(
            json.dumps(TEXT, ensure_ascii=False).encode("utf-16-le"), "text/plain", id="unmarked"
        ),
        pytest.param(
            json.dumps(TEXT, ensure_ascii=False).encode("cp1252"),
            "application/json; charset=windows-1252",
            id="declared",
        ),
        pytest.param(
            json.dumps(TEXT, ensure_ascii=False),
            "application/json; charset=iso-8859-1",
            id="declared-otherwise",
        ),
    ],
)
async def test_json_is_read_in_the_charset_it_is_written_in(
    fetch: Fetcher, body: Any, type_: str
) -> None:
    assert await fetch(reply(200, body, type_=type_)) == TEXT


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        pytest.param("\ufeffn\nMüller €\n", "text/csv", id="mark"),
        pytest.param("n\nMüller €\n".encode("utf-16"), "text/csv", id="utf-16"),
        pytest.param("n\nMüller €\n".encode("cp1252"), "text/csv; charset=cp1252", id="declared"),
        pytest.param("n\nMüller €\n", "text/csv; charset=latin-1", id="declared-otherwise"),
    ],
)
async def test_delimited_text_is_read_in_the_charset_it_is_written_in(
    fetch: Fetcher, body: Any, type_: str
) -> None:
    found = await fetch(reply(200, body, type_=type_), kind=DataSourceKind.HTTP_CSV)
    assert found == TEXT


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        pytest.param(b"", "http_json", "empty", id="empty"),
        pytest.param(b"\xef\xbb\xbf", "http_csv", "", id="only-a-mark"),
        pytest.param("<!DOCTYPE html><title>Log in</title>", "http_json", "HTML", id="html"),
        pytest.param("\n<HTML><body>Log in", "http_csv", "HTML", id="html-for-csv"),
        pytest.param("<html>Log in", "http_xlsx", "", id="html-for-xlsx"),
        pytest.param('[{"n": 1},', "http_json", "not valid JSON", id="broken-off"),
        pytest.param('["Müller"]'.encode("cp1252"), "http_json", "UTF-8", id="undeclared"),
        pytest.param('[{"n": NaN}]', "http_json", "not valid JSON", id="no-number"),
    ],
)
async def test_a_body_of_another_kind_is_reported_truly(
    fetch: Fetcher, body: Any, kind: str, words: str
) -> None:
    problem = await fetch.problem(reply(200, body), kind=DataSourceKind(kind))
    assert (problem.kind, words in problem.message) == (ErrorKind.PARSE, True), problem.message


@pytest.mark.parametrize(
    "shown",
    ["Bearer credential", "credential", base64.b64encode(b"credential").decode()],
    ids=["header", "token", "encoded"],
)
async def test_an_answer_that_repeats_the_credentials_is_not_kept(
    fetch: Fetcher, shown: str
) -> None:
    body = json.dumps([{"text": "x" * 1024 * 1024, "sent": shown}]).encode()
    with pytest.raises(SourceProblem) as refused:
        await fetch(reply(200, body))
    assert (refused.value.kind, refused.value.retryable) == (ErrorKind.AUTH, False)
    assert "contains the credentials" in refused.value.message
    assert fetch.states == []


async def test_the_password_of_a_pair_is_a_credential() -> None:
    pair = base64.b64encode(b"ada:correct horse").decode()
    assert set(fetching._secrets({"Authorization": f"Basic {pair}"})) == {
        *(f"Basic {pair}", pair, "ada:correct horse", "correct horse"),
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([{"n": 1}], {"error": "rate limited"}),
        ([{"n": 1}], {"data": [{"n": 2}]}),
        ({"data": [{"n": 1}]}, {"error": "rate limited"}),
        ({"data": [{"n": 1}]}, {"data": {"n": 2}}),
        ({"data": [{"n": 1}]}, [{"n": 2}]),
        ({"data": [{"n": 1}]}, {"errors": [{"message": "down"}]}),
    ],
)
async def test_each_page_has_its_rows_where_the_first_one_has_them(
    fetch: Fetcher, first: Any, second: Any
) -> None:
    pages: Any = {"pagination": {"type": "page", "param": "page"}}
    problem = await fetch.problem(reply(200, first), reply(200, second), **pages)
    assert (problem.kind, problem.retryable) == (ErrorKind.MAPPING, False)


@pytest.mark.parametrize(
    "last",
    [
        {"data": [], "warnings": [{"n": 7}]},
        {"data": None},
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["empty", "null", "204", "no bytes"],
)
async def test_a_page_without_rows_is_the_last_one(fetch: Fetcher, last: Any) -> None:
    answers = [reply(200, {"data": [{"n": 1}]}), reply(200, {"data": [{"n": 2}]})]
    end = last if isinstance(last, bytes) else reply(200, last)
    pages: Any = {"pagination": {"type": "page", "param": "page"}}
    assert numbers(await fetch(*answers, end, **pages)) == [1, 2]
    assert fetch.asked == ["page=1", "page=2", "page=3"]


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("$.rows", None, []),
        ("$.rows", [], []),
        ("$.rows", {"n": 1}, [{"n": 1}]),
        ("$.rows", "none", None),
        ("$.rows", 0, None),
        ("$.rows", False, None),
        ("$['rows']", "none", None),
        ("$.rows[*]", None, []),
        ("$.rows[*]", [5], [{"value": 5}]),
        ("$.rows[0]", ["text"], None),
        ("$.rows[*].n", [{"n": 1}, {"n": 2}], [{"value": 1}, {"value": 2}]),
    ],
)
async def test_a_path_leads_to_rows(fetch: Fetcher, path: str, value: Any, read: Any) -> None:
    answer = reply(200, {"rows": value})
    if read is None:
        problem = await fetch.problem(answer, jsonPath=path)
        assert problem.kind is ErrorKind.MAPPING
    else:
        assert await fetch(answer, jsonPath=path) == read


async def test_lines_that_are_lists_of_objects_are_rows(fetch: Fetcher) -> None:
    lines = b'[{"n":1},{"n":2}]\n\n[{"n":3}]\n{"n":4}\n'
    assert numbers(await fetch(reply(200, lines), format="ndjson")) == [1, 2, 3, 4]
