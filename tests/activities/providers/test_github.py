"""The adapter of GitHub, against a server that answers as its REST documentation says."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.providers.adapter import Listing, ProblemKind, ProviderProblem
from activities.providers.github import OBJECT, RAW, GithubAdapter
from runtime.outbound.client import OutboundClient
from tests.support.endpoint import reply
from tests.support.provider_asking import access, listed_ids, named, problem_of
from tests.support.provider_server import TOKEN, Asked, ProviderServer, provider_server

GIVEN = access({}, token=TOKEN)
FILES = {
    "": [("dir", "docs", "t1"), ("file", "README.md", "s1"), ("symlink", "link", "s9")],
    "docs": [("file", "docs/plan 1.md", "s2"), ("submodule", "docs/sub", "s8")],
    "big": [("file", f"big/{number:04}.txt", f"b{number}") for number in range(1_000)],
}


def repository(name: str) -> dict[str, Any]:
    return {
        "full_name": name,
        "html_url": f"https://github.com/{name}",
        "pushed_at": "2026-01-01T00:00:00Z",
    }


def repositories(asked: Asked) -> bytes:
    page, size = int(asked.query["page"]), int(asked.query["per_page"])
    names = [f"ann/repo-{number}" for number in range(5)][(page - 1) * size : page * size]
    link = '<https://api.github.com/user/repos?page=2>; rel="next"' if page * size < 5 else ""
    return reply(200, [repository(name) for name in names], link=link)


def contents(asked: Asked) -> bytes:
    path = asked.found[0].strip("/")
    if asked.request.headers["accept"] == RAW:
        return reply(200, "# Plan\n", type_=f"{RAW}; charset=utf-8")
    assert asked.request.headers["accept"] == OBJECT
    entries = [_entry(*one) for one in FILES.get(path, [])]
    if entries:
        return reply(200, {"type": "dir", "sha": f"tree-{path}", "path": path, "entries": entries})
    for one in (one for many in FILES.values() for one in many):
        if one[1] == path:
            return reply(200, _entry(*one))
    return reply(404, {"message": "Not Found"})


def _entry(kind: str, path: str, sha: str) -> dict[str, Any]:
    url = f"https://github.com/ann/repo/blob/main/{path}"
    return {"type": kind, "path": path, "name": path, "sha": sha, "html_url": url}


def tree(asked: Asked) -> bytes:
    assert asked.found == ("tree-big",)
    blobs = [
        {"type": "blob", "path": f"{number:06}.txt", "sha": f"b{number}", "mode": "100644"}
        for number in range(100_000)
    ]
    return reply(200, {"sha": "tree-big", "tree": blobs, "truncated": False})


def issue(number: int) -> dict[str, Any]:
    url = f"https://github.com/ann/repo/issues/{number}"
    updated = "2026-01-02T00:00:00Z"
    return {
        "number": number,
        "title": "Broken",
        "body": "It *breaks*.\0",
        "html_url": url,
        "updated_at": updated,
        "state": "open",
    }


ROUTES = {
    "GET /user": lambda _: reply(200, {"login": "ann"}),
    "GET /user/repos": repositories,
    "GET /search/repositories": lambda asked: reply(
        200, {"items": [repository("ann/found")] if "plan" in asked.query["q"] else []}
    ),
    "GET /repos/ann/repo": lambda _: reply(200, repository("ann/repo")),
    "GET /repos/ann/repo/contents(/.*)?": contents,
    "GET /repos/ann/repo/git/trees/(.+)": tree,
    "GET /repos/ann/repo/issues": lambda _: reply(200, [issue(7), issue(8)]),
    "GET /repos/ann/repo/issues/(.+)": lambda asked: reply(200, issue(int(asked.found[0]))),
}


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[ProviderServer]:
    async with provider_server(ROUTES) as server:
        yield server


@pytest.fixture
def github(outbound: OutboundClient, server: ProviderServer) -> GithubAdapter:
    return GithubAdapter(outbound, server.url)


async def test_repositories_are_listed_page_by_page(github: GithubAdapter) -> None:
    await github.check(GIVEN)
    found = await listed_ids(github, GIVEN, limit=2)
    assert found == [f"ann/repo-{number}" for number in range(5)]
    assert await listed_ids(github, GIVEN, query='pl"an plan') == ["ann/found"]


async def test_folders_files_and_issues(github: GithubAdapter) -> None:
    page = await github.browse(GIVEN, Listing("ann/repo"))
    shown = [(one.external_id, one.external_type, one.revision) for one in page.resources]
    assert shown == [
        ("ann/repo/README.md", "file", "s1"),
        ("ann/repo/docs", "folder", "t1"),
    ]
    assert await listed_ids(github, GIVEN, "ann/repo/docs") == ["ann/repo/docs/plan 1.md"]
    issues = await listed_ids(github, GIVEN, "ann/repo", external_type="issue")
    assert issues == ["ann/repo#7", "ann/repo#8"]


async def test_contents_are_read(github: GithubAdapter, tmp_path: Path) -> None:
    plan = await github.describe(GIVEN, named("file", "ann/repo/docs/plan 1.md"))
    assert (plan.revision, plan.parent_external_id) == ("s2", "ann/repo/docs")
    read = await github.read(GIVEN, plan)
    assert (read.format.value, read.content) == ("markdown", "# Plan\n")
    target = tmp_path / "plan"
    done = await github.download(GIVEN, plan, target, {})
    assert target.read_text() == "# Plan\n"
    assert (await github.download(GIVEN, plan, target, done.validators)).unchanged
    broken = await github.describe(GIVEN, named("issue", "ann/repo#7"))
    assert (await github.read(GIVEN, broken)).content == "# Broken\n\nIt *breaks*.\ufffd\n"
    folder = await github.describe(GIVEN, named("folder", "ann/repo/docs"))
    assert (folder.external_type, folder.revision) == ("folder", "tree-docs")


@pytest.mark.long
async def test_a_folder_of_many_files_is_read_as_a_tree(github: GithubAdapter) -> None:
    page = await github.browse(GIVEN, Listing("ann/repo/big", cursor="ann/repo/big/099949.txt"))
    assert (len(page.resources), page.cursor) == (50, None)
    first = page.resources[0]
    assert (first.external_id, first.revision) == ("ann/repo/big/099950.txt", "b99950")


@pytest.mark.parametrize(
    "external_id", ["ann", "ann/repo/../../x", "ann/repo#x", "ann/repo/a#1", "ann/missing", "../.."]
)
async def test_ids_that_name_nothing(github: GithubAdapter, external_id: str) -> None:
    kind = await problem_of(github.describe(GIVEN, named("file", external_id)))
    assert kind in {ProblemKind.GONE, ProblemKind.INVALID}


async def test_limits_say_when_they_end(github: GithubAdapter, server: ProviderServer) -> None:
    reset = str(int(time.time()) + 600)
    spent = reply(403, {}, x_ratelimit_remaining="0", x_ratelimit_reset=reset)
    server.first.append(spent)
    with pytest.raises(ProviderProblem) as raised:
        await github.check(GIVEN)
    assert raised.value.kind is ProblemKind.RATE_LIMITED
    assert 590 < (raised.value.retry_after or 0) <= 600
    server.first.append(reply(403, {}, retry_after="60"))
    assert await problem_of(github.check(GIVEN)) is ProblemKind.RATE_LIMITED
    server.first.append(reply(403, {}))
    assert await problem_of(github.check(GIVEN)) is ProblemKind.DENIED


async def test_a_token_that_expired(github: GithubAdapter) -> None:
    with pytest.raises(ProviderProblem) as raised:
        await github.check(access({}, token="old"))
    assert (raised.value.kind, TOKEN in str(raised.value)) == (ProblemKind.AUTH, False)


@pytest.mark.parametrize(
    "answer", [reply(200, {"a": 1}), reply(200, "nonsense"), reply(200, [])[:-1]]
)
async def test_answers_that_are_none(
    github: GithubAdapter, server: ProviderServer, answer: bytes
) -> None:
    server.first.append(answer)
    kind = await problem_of(github.browse(GIVEN, Listing()))
    assert kind in {ProblemKind.MALFORMED, ProblemKind.UNAVAILABLE}
