"""Downloads by token: what opens a file, in which pieces, and what no browser does with it."""

import time
from datetime import datetime, timedelta
from string import ascii_letters, digits
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from models.content.files.rules import AssetClaim, download_url, read_asset_token
from models.people.workspaces import workspace
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.files import Json, objects, stored
from tests.support.spaces import Space

CONTENT = bytes(range(256)) * 4_000


@pytest.fixture
def anybody(client: Client) -> Client:
    return client.with_token(None)


SIGNS = frozenset(ascii_letters + digits + "-_")
SLACK = timedelta(seconds=30)


def _url(space: Space, made: Json, expires_at: datetime) -> str:
    """A URL of a file that ends at a moment."""
    claim = AssetClaim(expires_at)
    return download_url(space.keys, space.id, UUID(made["fileId"]), claim)


async def _file(client: Client, space: Space) -> Json:
    return await stored(client, space, CONTENT, params={"name": "data.bin"})


async def test_an_asset_is_served_whole(client: Client, space: Space, anybody: Client) -> None:
    url = (await _file(client, space))["downloadUrl"]
    answer = await anybody.get(url)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["accept-ranges"] == "bytes"
    head = await anybody.head(url)
    assert head.status_code == 200
    told = {"content-length", "content-type", "etag", "content-disposition", "accept-ranges"}
    assert {name: head.headers[name] for name in told} == {
        name: answer.headers[name] for name in told
    }


async def test_every_other_token_is_the_same_404(
    client: Client, space: Space, foreign: Space, anybody: Client
) -> None:
    one, two = await _file(client, space), await _file(client, space)
    theirs = await stored(client.with_token(foreign.token), foreign)
    token = one["downloadUrl"].rpartition("/")[2]
    flipped = token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]
    urls = [
        f"/v1/assets/{two['fileId']}/{token}",
        f"/v1/assets/{theirs['fileId']}/{token}",
        f"/v1/assets/{new_id()}/{token}",
        f"/v1/assets/nonsense/{token}",
        f"/v1/assets/{one['fileId']}/{flipped}",
        f"/v1/assets/{one['fileId']}/{token[:-1]}",
        f"/v1/assets/{one['fileId']}/{token}AAAA",
        f"/v1/assets/{one['fileId']}/{token}=",
        f"/v1/assets/{one['fileId']}/{token}%3D",
        *(f"/v1/assets/{one['fileId']}/{token[:-1]}{last}" for last in SIGNS - {token[-1]}),
        _url(space, one, utc_now()),
        f"/v1/assets/{one['fileId']}/x",
        f"/v1/assets/{one['fileId']}/%FF%00",
        f"/v1/assets/{one['fileId']}/{'A' * 5_000}",
    ]
    answers = [await anybody.get(url) for url in urls]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert (await anybody.head(urls[0])).status_code == 404


async def test_a_url_lasts_a_day_unless_it_is_asked_for_again(
    client: Client, space: Space, anybody: Client
) -> None:
    made = await _file(client, space)
    token = made["downloadUrl"].rpartition("/")[2]
    claim = read_asset_token(space.keys, space.id, UUID(made["fileId"]), token)
    assert claim is not None
    left = claim.expires_at - utc_now()
    assert timedelta(days=1) - SLACK <= left <= timedelta(days=1, hours=1)
    assert claim.share_link_id is None
    later = _url(space, made, claim.expires_at + timedelta(seconds=1))
    assert len(later) == len(made["downloadUrl"])
    assert (await anybody.get(later)).status_code == 200
    assert (await anybody.get(_url(space, made, utc_now()))).status_code == 404
    again = (await client.get(f"{space.path}/files/{made['fileId']}")).json()["data"]
    assert (await anybody.get(again["downloadUrl"])).status_code == 200


async def test_a_token_in_the_other_alphabet_opens_nothing(
    client: Client, space: Space, anybody: Client
) -> None:
    made = await _file(client, space)
    ends = utc_now() + timedelta(hours=1)
    urls = (_url(space, made, ends + timedelta(seconds=n)) for n in range(100))
    url = next(one for one in urls if "-" in one.rpartition("/")[2])
    path, _, token = url.rpartition("/")
    assert (await anybody.get(url)).status_code == 200
    for other in ("+", "%2B"):
        assert (await anybody.get(f"{path}/{token.replace('-', other)}")).status_code == 404


async def test_a_deleted_workspace_takes_its_files_along(
    client: Client, space: Space, anybody: Client
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    async with space.database.transaction() as work:
        gone = update(workspace).where(workspace.c.id == space.id)
        await work.execute(gone.values(deleted_at=work.now))
    assert (await anybody.get(url)).status_code == 404


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-499", 0, 500),
        ("BYTES = 5-", 5, len(CONTENT)),
        ("bytes=-7", len(CONTENT) - 7, len(CONTENT)),
        (f"bytes=-{len(CONTENT) * 2}", 0, len(CONTENT)),
        (f"bytes=10-{10**17}", 10, len(CONTENT)),
        (f"bytes={len(CONTENT) - 1}-", len(CONTENT) - 1, len(CONTENT)),
    ],
)
async def test_one_range_of_an_asset_is_served(
    client: Client, space: Space, anybody: Client, asked: str, start: int, end: int
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    answer = await anybody.get(url, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, CONTENT[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-1,5-6",
        "bytes=5-4",
        "bytes=-",
        "bytes=",
        "lines=0-1",
        "bytes=a-b",
        "0-1",
        "bytes=+1-2",
    ],
)
async def test_a_header_without_a_single_range_gives_the_whole(
    client: Client, space: Space, anybody: Client, asked: str
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    answer = await anybody.get(url, headers={"Range": asked})
    assert (answer.status_code, len(answer.content)) == (200, len(CONTENT))


@pytest.mark.parametrize("asked", [f"bytes={len(CONTENT)}-", "bytes=-0", f"bytes={10**17}-"])
async def test_ranges_outside_of_an_asset_are_refused(
    client: Client, space: Space, anybody: Client, asked: str
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    answer = await anybody.get(url, headers={"Range": asked})
    assert (answer.status_code, answer.json()["error"]) == (416, "range_not_satisfiable")
    assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"


async def test_a_thousand_ranges_cost_nothing(
    client: Client, space: Space, anybody: Client
) -> None:
    url = (await stored(client, space, b"small"))["downloadUrl"]
    await anybody.get(url)
    for asked in (
        "bytes=" + ",".join(f"{n}-{n}" for n in range(1_000)),
        "bytes=" + "0-" * 30_000,
        "bytes=" + "0" * 60_000 + "-1",
        "bytes=" + " " * 60_000 + "0-1",
    ):
        began = time.thread_time()
        answer = await anybody.get(url, headers={"Range": asked})
        took = time.thread_time() - began
        assert (answer.status_code, answer.content) == (200, b"small")
        # A collection of garbage may fall into it.
        assert took < 3


async def test_an_asset_that_is_known_is_not_sent_again(
    client: Client, space: Space, anybody: Client
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    etag = (await anybody.get(url)).headers["etag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = await anybody.get(url, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
        assert (await anybody.head(url, headers={"If-None-Match": known})).status_code == 304
    assert (await anybody.get(url, headers={"If-None-Match": '"other"'})).status_code == 200
    for condition, status in ((etag, 206), ('"other"', 200), (f"W/{etag}", 200)):
        headers = {"Range": "bytes=0-1", "If-Range": condition}
        assert (await anybody.get(url, headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("name", "type_", "content"),
    [
        ("page.html", "text/html", b"<script>alert(1)</script>"),
        ("picture.svg", "image/svg+xml", b"<svg onload='alert(1)'/>"),
        ("a.pdf", "application/pdf", b"%PDF"),
        ("a.js", "text/javascript", b"alert(1)"),
        ("a.css", "text/css", b"p {}"),
    ],
)
async def test_no_browser_runs_an_upload(
    client: Client, space: Space, anybody: Client, name: str, type_: str, content: bytes
) -> None:
    made = await stored(
        client, space, content, params={"name": name}, headers={"Content-Type": type_}
    )
    for headers in ({}, {"Range": "bytes=0-1"}):
        answer = await anybody.get(made["downloadUrl"], headers=headers)
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "access-control-allow-origin" not in answer.headers
    for part in ("script", "style", "worker", "serviceworker", "sharedworker"):
        of_a_page = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": part}
        for method in ("GET", "HEAD"):
            answer = await anybody.request(method, made["downloadUrl"], headers=of_a_page)
            assert answer.status_code == 403
    shown = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image"}
    assert (await anybody.get(made["downloadUrl"], headers=shown)).status_code == 200


async def test_an_asset_is_named_in_the_disposition(
    client: Client, space: Space, anybody: Client
) -> None:
    made = await stored(client, space, params={"name": 'nä"me\u20ac;%41.txt'})
    answer = await anybody.get(made["downloadUrl"])
    plain, extended = "n__me_;_41.txt", "n%C3%A4%22me%E2%82%AC%3B%2541.txt"
    expected = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}"
    assert answer.headers["content-disposition"] == expected


async def test_a_lost_object_is_our_fault(
    client: Client, space: Space, anybody: Client, settings: Settings
) -> None:
    before: set[Any] = set(objects(settings))
    url = (await _file(client, space))["downloadUrl"]
    for path in set(objects(settings)) - before:
        path.unlink()
    assert (await anybody.get(url)).status_code == 500


async def test_an_asset_is_only_read(client: Client, space: Space, anybody: Client) -> None:
    url = (await _file(client, space))["downloadUrl"]
    for method in ("POST", "PUT", "DELETE"):
        answer = await anybody.request(method, url)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"


async def test_the_token_is_in_no_log(
    app: FastAPI,
    client: Client,
    space: Space,
    anybody: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = (await _file(client, space))["downloadUrl"]
    await anybody.get(url)
    await app.state.services.request_log.flush()
    logs = await client.get(f"{space.path}/api-keys/request-logs")
    assert logs.json()["data"]
    token = url.rpartition("/")[2]
    assert token not in logs.text
    assert token not in capsys.readouterr().out
