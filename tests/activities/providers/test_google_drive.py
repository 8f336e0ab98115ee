"""The adapter of Google Drive, against a server that answers as its documentation says."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.providers.adapter import Listing, ProblemKind
from activities.providers.google_drive import GoogleDriveAdapter
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import reply
from tests.support.provider_asking import access, listed_ids, named, problem_of
from tests.support.provider_server import TOKEN, Asked, ProviderServer, provider_server

GIVEN = access({}, token=TOKEN)
OWN = "application/vnd.google-apps."
TYPES = {
    "folder": f"{OWN}folder",
    "doc": f"{OWN}document",
    "sheet": f"{OWN}spreadsheet",
    "form": f"{OWN}form",
    "map": f"{OWN}map",
    "text": "text/plain",
    "photo": "image/png",
}
EXPORTS = {
    "text/markdown": "# Doc",
    "text/html": "<h1>Doc</h1>",
    "text/csv": "a,b\r\n1,2\r\n",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "PK",
}
FORM = {
    "formId": "form",
    "responderUri": "https://docs.google.com/forms/d/e/x/viewform",
    "info": {"title": "Feedback"},
    "items": [
        {"title": "Why?", "questionItem": {"question": {"textQuestion": {"paragraph": True}}}},
        {"title": "File", "questionItem": {"question": {"fileUploadQuestion": {}}}},
    ],
}


def file(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": f"The {name}",
        "mimeType": TYPES[name],
        "parents": ["root-id"],
        "webViewLink": f"https://drive.google.com/file/d/{name}",
        "version": "5",
        "trashed": name == "map",
    }


def files(asked: Asked) -> bytes:
    question = asked.query["q"]
    if "name contains" in question:
        assert question == "trashed = false and name contains 'it\\'s \\\\'"
        return reply(200, {"files": [file("doc")]})
    if "'root' in parents" not in question:
        return reply(200, {"files": []})
    size, start = int(asked.query["pageSize"]), int(asked.query.get("pageToken", "0"))
    names = list(TYPES)
    more = {"nextPageToken": str(start + size)} if start + size < len(names) else {}
    return reply(200, {"files": [file(name) for name in names[start : start + size]], **more})


def one_file(asked: Asked) -> bytes:
    name = asked.found[0]
    if name not in TYPES:
        return reply(404, {"error": {"code": 404}})
    if asked.query.get("alt") == "media":
        return reply(200, "plain text", type_=TYPES[name])
    return reply(200, file(name))


def limited(reason: str) -> bytes:
    return reply(403, {"error": {"code": 403, "errors": [{"reason": reason}]}})


def changes(asked: Asked) -> bytes:
    """Two changes so far; a mark of long ago is not known any more."""
    mark = int(asked.query["pageToken"])
    if mark < 0:
        return reply(410, {"error": {"code": 410}})
    told = [{"fileId": "doc"}] if mark < 2 else []
    return reply(200, {"changes": told, "newStartPageToken": "2"})


ROUTES = {
    "GET /drive/v3/changes": changes,
    "GET /drive/v3/changes/startPageToken": lambda _: reply(200, {"startPageToken": "2"}),
    "GET /drive/v3/about": lambda _: reply(200, {"user": {}}),
    "GET /drive/v3/files": files,
    "GET /drive/v3/files/([^/]+)": one_file,
    "GET /drive/v3/files/([^/]+)/export": lambda asked: reply(
        200, EXPORTS[asked.query["mimeType"]], type_=asked.query["mimeType"]
    ),
    "GET /v1/forms/form": lambda _: reply(200, FORM),
}


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[ProviderServer]:
    async with provider_server(ROUTES) as server:
        yield server


@pytest.fixture
def drive(outbound: OutboundClient, server: ProviderServer) -> GoogleDriveAdapter:
    return GoogleDriveAdapter(outbound, server.url)


async def test_changes_are_seen_by_the_log_of_them(drive: GoogleDriveAdapter) -> None:
    folder = await drive.describe(GIVEN, named("folder", "folder"))
    assert "watch" in folder.capabilities
    asked = [await drive.watch(GIVEN, folder, mark) for mark in (None, "1", "-1", "2")]
    assert [(one.mark, one.changed) for one in asked] == [*[("2", True)] * 3, ("2", False)]


async def test_files_are_listed_and_found(drive: GoogleDriveAdapter) -> None:
    await drive.check(GIVEN)
    assert await listed_ids(drive, GIVEN, limit=3) == list(TYPES)
    page = await drive.browse(GIVEN, Listing())
    kinds = {one.external_id: one.surface_kind.value for one in page.resources}
    assert kinds == {
        "folder": "folder",
        "doc": "document",
        "sheet": "spreadsheet",
        "form": "form",
        "map": "generic",
        "text": "file",
        "photo": "file",
    }
    assert await listed_ids(drive, GIVEN, query="it's \\") == ["doc"]
    assert await listed_ids(drive, GIVEN, "a' or 'b") == []


@pytest.mark.parametrize(
    ("name", "format_", "content"),
    [
        ("doc", "markdown", "# Doc"),
        ("sheet", "csv", "a,b\r\n1,2\r\n"),
        ("text", "text", "plain text"),
        ("photo", "link", None),
        ("folder", "link", None),
        ("form", "json", {"info": FORM["info"], "items": FORM["items"]}),
    ],
)
async def test_contents_are_read(
    drive: GoogleDriveAdapter, name: str, format_: str, content: Any
) -> None:
    read = await drive.read(GIVEN, await drive.describe(GIVEN, named("file", name)))
    assert (read.format.value, read.content, read.revision) == (format_, content, "5")
    assert read.fallback_url == f"https://drive.google.com/file/d/{name}"


async def test_documents_are_downloaded(drive: GoogleDriveAdapter, tmp_path: Path) -> None:
    target = tmp_path / "file"
    for name, content in (("doc", "<h1>Doc</h1>"), ("sheet", "PK"), ("photo", "plain text")):
        found = await drive.describe(GIVEN, named("file", name))
        done = await drive.download(GIVEN, found, target, {})
        assert target.read_text() == content
        assert (await drive.download(GIVEN, found, target, done.validators)).unchanged
    folder = await drive.describe(GIVEN, named("folder", "folder"))
    assert await problem_of(drive.download(GIVEN, folder, target, {})) is ProblemKind.UNSUPPORTED


async def test_forms_are_read_as_questions(drive: GoogleDriveAdapter) -> None:
    found = await drive.describe(GIVEN, named("form", "form"))
    asked = await drive.form(GIVEN, found)
    assert asked.title == "Feedback"
    assert [(one.label, one.kind) for one in asked.questions] == [
        ("Why?", "long_text"),
        ("File", None),
    ]
    doc = await drive.describe(GIVEN, named("form", "doc"))
    assert await problem_of(drive.form(GIVEN, doc)) is ProblemKind.UNSUPPORTED


async def test_refusals_become_problems(drive: GoogleDriveAdapter, server: ProviderServer) -> None:
    for external_id in ("missing", "..", "map"):
        wanted = named("file", external_id)
        assert await problem_of(drive.describe(GIVEN, wanted)) is ProblemKind.GONE
    for reason, kind in (
        ("userRateLimitExceeded", ProblemKind.RATE_LIMITED),
        ("exportSizeLimitExceeded", ProblemKind.TOO_LARGE),
        ("insufficientFilePermissions", ProblemKind.DENIED),
    ):
        server.first.append(limited(reason))
        assert await problem_of(drive.check(GIVEN)) is kind
    assert await problem_of(drive.check(access({}, token="old"))) is ProblemKind.AUTH
