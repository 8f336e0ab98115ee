"""The adapter of WebDAV, against wsgidav, and against servers that mean no good."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.providers.adapter import Listing, ProblemKind, ProviderAccess
from activities.providers.webdav import WebdavAdapter
from runtime.outbound.client import OutboundClient
from tests.support.authorization_server import process
from tests.support.endpoint import Serve, reply
from tests.support.provider_asking import access, listed_ids, named, problem_of

SECRET = "webdav-canary-71"
CHILDREN = 1_234

PROGRAM = """
import sys
from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp
from wsgidav.fs_dav_provider import FilesystemProvider
app = WsgiDAVApp({
    "provider_mapping": {"/dav": FilesystemProvider(sys.argv[1], readonly=True)},
    "simple_dc": {"user_mapping": {"*": {"ann": {"password": sys.argv[2]}}}},
    "http_authenticator": {"accept_basic": True, "accept_digest": False},
    "verbose": 0, "logging": {"enable": False}, "dir_browser": {"enable": False},
})
server = wsgi.Server(("127.0.0.1", 0), app)
server.prepare()
print(f"http://127.0.0.1:{server.bind_addr[1]}/dav/", flush=True)
server.serve()
"""


@pytest_asyncio.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, Path]]:
    root = tmp_path_factory.mktemp("dav")
    (root / "Reports" / "2025").mkdir(parents=True)
    (root / "Reports" / "plan.md").write_text("# Plan\n")
    (root / "Reports" / "prices 100%.csv").write_text("a,b\n1,2\n")
    (root / "Grüße?#.txt").write_text("Hallo")
    (root / "photo.bin").write_bytes(b"\0" * 10)
    (root / "many").mkdir()
    for number in range(CHILDREN):
        (root / "many" / f"{number:05}.txt").touch()
    async with process("-c", PROGRAM, str(root), SECRET) as url:
        yield url, root


@pytest.fixture
def dav(outbound: OutboundClient) -> WebdavAdapter:
    return WebdavAdapter(outbound)


@pytest.fixture
def given(server: tuple[str, Path]) -> ProviderAccess:
    return access({"baseUrl": server[0], "auth": "basic", "username": "ann"}, secret=SECRET)


async def test_folders_are_listed(dav: WebdavAdapter, given: ProviderAccess) -> None:
    await dav.check(given)
    assert await listed_ids(dav, given) == ["Grüße?#.txt", "Reports", "many", "photo.bin"]
    page = await dav.browse(given, Listing("Reports"))
    shown = [(one.external_id, one.surface_kind.value, one.mime_type) for one in page.resources]
    assert shown == [
        ("Reports/2025", "folder", None),
        ("Reports/plan.md", "document", "text/markdown"),
        ("Reports/prices 100%.csv", "spreadsheet", "text/csv"),
    ]
    assert {one.parent_external_id for one in page.resources} == {"Reports"}
    assert await listed_ids(dav, given, "Reports", external_type="folder") == ["Reports/2025"]


@pytest.mark.long
async def test_pages_give_each_child_once(dav: WebdavAdapter, given: ProviderAccess) -> None:
    found = await listed_ids(dav, given, "many", limit=100)
    assert found == [f"many/{number:05}.txt" for number in range(CHILDREN)]


async def test_contents_are_read(
    dav: WebdavAdapter, given: ProviderAccess, server: tuple[str, Path], tmp_path: Path
) -> None:
    plan = await dav.describe(given, named("file", "Reports/plan.md"))
    read = await dav.read(given, plan)
    assert (read.format.value, read.content, read.revision) == (
        "markdown",
        "# Plan\n",
        plan.revision,
    )
    odd = await dav.describe(given, named("file", "Grüße?#.txt"))
    assert (await dav.read(given, odd)).content == "Hallo"
    photo = await dav.describe(given, named("file", "photo.bin"))
    link = await dav.read(given, photo)
    assert (link.format.value, link.fallback_url) == ("link", f"{server[0]}photo.bin")
    target = tmp_path / "file"
    done = await dav.download(given, photo, target, {})
    assert (target.read_bytes(), done.unchanged) == (b"\0" * 10, False)
    again = await dav.download(given, photo, target, done.validators)
    assert (again.unchanged, target.read_bytes()) == (True, b"")
    (server[1] / "Reports" / "plan.md").write_text("# Another plan\n")
    assert (await dav.describe(given, plan)).revision != plan.revision


@pytest.mark.parametrize(
    ("external_id", "kind"),
    [
        ("../dav/photo.bin", ProblemKind.INVALID),
        ("Reports/../photo.bin", ProblemKind.INVALID),
        ("Reports//plan.md", ProblemKind.INVALID),
        ("Reports\\..\\x", ProblemKind.INVALID),
        ("missing.txt", ProblemKind.GONE),
        ("%2e%2e/x", ProblemKind.GONE),
    ],
)
async def test_ids_that_lead_elsewhere(
    dav: WebdavAdapter, given: ProviderAccess, external_id: str, kind: ProblemKind
) -> None:
    assert await problem_of(dav.describe(given, named("file", external_id))) is kind
    assert await problem_of(dav.browse(given, Listing(external_id))) is kind


async def test_credentials_that_are_not_accepted(dav: WebdavAdapter, given: ProviderAccess) -> None:
    wrong = access(given.config, secret="wrong")
    assert await problem_of(dav.check(wrong)) is ProblemKind.AUTH


async def test_a_private_address_is_not_asked(
    public_only: OutboundClient, given: ProviderAccess
) -> None:
    assert await problem_of(WebdavAdapter(public_only).check(given)) is ProblemKind.INVALID


def multistatus(*hrefs: str) -> bytes:
    files = "".join(
        f"<d:response><d:href>{href}</d:href><d:propstat><d:prop><d:getetag>e</d:getetag>"
        "</d:prop></d:propstat></d:response>"
        for href in hrefs
    )
    return f'<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">{files}</d:multistatus>'.encode()


BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<d:multistatus xmlns:d="DAV:"><d:response><d:href>&b;</d:href></d:response></d:multistatus>"""


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(207, BOMB, type_="application/xml"), ProblemKind.MALFORMED),
        (reply(207, multistatus("/a")[:-9], type_="application/xml"), ProblemKind.MALFORMED),
        (reply(207, b"<html>", type_="text/html"), ProblemKind.MALFORMED),
        (reply(207, b"<a>" * 100, type_="application/xml"), ProblemKind.MALFORMED),
        (reply(200, b"hello"), ProblemKind.MALFORMED),
        (reply(503, b"", retry_after="120"), ProblemKind.UNAVAILABLE),
        (reply(301, b"", location="http://169.254.169.254/"), ProblemKind.INVALID),
        (reply(207, multistatus("/a"))[:-20], ProblemKind.UNAVAILABLE),
    ],
)
async def test_servers_that_mean_no_good(
    dav: WebdavAdapter, serve: Serve, answer: bytes, kind: ProblemKind
) -> None:
    server = await serve(answer)
    given = access({"baseUrl": server.url, "auth": "none"})
    assert await problem_of(dav.browse(given, Listing())) is kind


async def test_hostile_names_stay_within(dav: WebdavAdapter, serve: Serve) -> None:
    hrefs = [
        "/dav/",
        "/dav/../etc/passwd",
        "/dav/%2e%2e/etc",
        "/elsewhere/x",
        "/dav/a%00b",
        "/dav/exe%E2%80%AEgpj.txt",
        "http://evil.example/dav/full.txt",
        "/dav/deep/er.txt",
    ]
    server = await serve(reply(207, multistatus(*hrefs), type_="application/xml"))
    given = access({"baseUrl": f"{server.url}dav/", "auth": "none"})
    page = await dav.browse(given, Listing())
    assert [one.name for one in page.resources] == ["exegpj.txt", "full.txt"]
    assert all(
        one.canonical_url.startswith(server.url) for one in page.resources if one.canonical_url
    )


@pytest.mark.long
async def test_many_children_are_bounded(dav: WebdavAdapter, serve: Serve) -> None:
    names = [f"/dav/{number:06}.txt" for number in range(100_000)]
    server = await serve(reply(207, multistatus(*names), type_="application/xml"))
    given = access({"baseUrl": f"{server.url}dav/", "auth": "none"})
    page = await dav.browse(given, Listing(cursor="050000.txt"))
    assert [len(page.resources), page.resources[0].name, page.cursor] == [
        100,
        "050001.txt",
        "050100.txt",
    ]
    follows = [one for ahead in page.ahead for one in ahead.resources]
    assert [len(page.ahead), follows[0].name, follows[-1].name, page.ahead[-1].cursor] == [
        49,
        "050101.txt",
        "055000.txt",
        "055000.txt",
    ], "pages that follow come at once"


async def test_the_password_is_in_no_message(serve: Serve, dav: WebdavAdapter) -> None:
    for answer in (reply(500, SECRET), reply(207, SECRET), reply(302, b"", location=f"x:{SECRET}")):
        server = await serve(answer)
        given: Any = access({"baseUrl": server.url, "auth": "bearer"}, secret=SECRET)
        with pytest.raises(Exception) as raised:  # noqa: PT011  # any error will do
            await dav.browse(given, Listing())
        assert SECRET not in str(raised.value) + repr(given)
