"""Hostile bundles, sent as clients send them and checked to the end.

`tests/models/workspace/bundles` has every way in which one can be wrong; here is one of each, as
both archives, from the upload to what its administrator reads.
"""

import io
import stat
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from models.content.items.joins import item
from models.people.workspaces import workspace
from runtime.configuration.settings import Settings
from runtime.object_store import ObjectStore
from tests.support.bundles import SOURCE, line, manifest, packed, zipped
from tests.support.client import Client
from tests.support.import_driver import ImportDriver
from tests.support.legacy_imports import Administrator, administrator, folder
from tests.support.spaces import Space

ITEMS = f"workspaces/{SOURCE}/items.ndjson"
ONE = folder("One")[1]
ELSEWHERE = f"workspaces/{uuid4()}/items.ndjson"
Entries = list[tuple[str, bytes]]


def _whole(rows: bytes, path: str = ITEMS, **changed: Any) -> Entries:
    return [("manifest.json", manifest({path: rows}, **changed)), (path, rows)]


def _with(name: str) -> Entries:
    return [*_whole(ONE), (name, b"0")]


def _listed(**changed: Any) -> Entries:
    told = {"path": ITEMS, "sha256": sha256(ONE).hexdigest(), "bytes": len(ONE), "rows": 1}
    told |= changed
    return _whole(ONE, files=[told])


def _counted(count: int) -> Entries:
    told = {"id": str(SOURCE), "name": "Old", "counts": {"item": count}}
    return _whole(ONE, workspaces=[told])


HOSTILE: dict[str, tuple[Entries, str]] = {
    "path traversal": (_with("../../escaped"), "escaped"),
    "absolute name": (_with("/escaped"), "escaped"),
    "duplicate name": ([*_whole(ONE), (ITEMS, b"0")], "two files named"),
    "bomb": ([*_whole(ONE), ("escaped", b"0" * 80_000_000)], "unpacked bundle is too large"),
    "wrong checksum": (_listed(sha256="0" * 64), "does not match manifest.json"),
    "lying size": (_listed(bytes=1), "does not match manifest.json"),
    "lying rows": (_listed(rows=2), "has 1 rows, but manifest.json says 2"),
    "lying counts": (_counted(2), "The manifest lists 2 item, but the bundle has 1."),
    "broken reference": (_whole(folder("Lost", str(uuid4()))[1]), "is not in the bundle"),
    "unknown kind": (_whole(line("spaceship", id=str(uuid4()))), "spaceship"),
    "foreign workspace": (
        _whole(ONE, ELSEWHERE),
        "belongs to a workspace that manifest.json does not list",
    ),
}
MERELY_TOLD = ("broken reference", "unknown kind")
"""Bundles that are imported without their unknown parts."""


def _link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("escaped")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def _tar(entries: Entries, kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive whose last entry is of this kind."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for number, (name, content) in enumerate(entries, 1):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if number == len(entries) and kind != tarfile.REGTYPE:
                info.type, info.linkname, info.size = kind, "/etc/passwd", 0
            archive.addfile(info, io.BytesIO(content))
    return packed(file.getvalue())


PACKED: dict[str, Callable[[Entries], bytes]] = {"zip": zipped, "tar.zst": _tar}
ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    f"{name}, {form}": (partial(pack, entries), told)
    for name, (entries, told) in HOSTILE.items()
    for form, pack in PACKED.items()
} | {
    "link, zip": (lambda: zipped([*_whole(ONE), (_link(), b"/etc/passwd")]), "link"),
    "symbolic link, tar.zst": (lambda: _tar(_with("escaped"), tarfile.SYMTYPE), "link"),
    "hard link, tar.zst": (lambda: _tar(_with("escaped"), tarfile.LNKTYPE), "link"),
}
"""How each is packed, and what its error names."""


@pytest.fixture
async def admin(client: Client, space: Space) -> Administrator:
    return await administrator(client, space)


@pytest.fixture
def driver(space: Space, settings: Settings) -> ImportDriver:
    return ImportDriver(space.database, ObjectStore(settings.object_store), space.keys)


def _escaped(settings: Settings) -> list[Path]:
    """Files that are where a bundle wants them."""
    stored = Path(settings.object_store.removeprefix("file://"))
    return [*stored.parent.rglob("*escaped*"), *Path("/").glob("escaped")]


@pytest.fixture
async def unwritten(space: Space, settings: Settings) -> AsyncIterator[None]:
    """Neither rows nor objects nor files that a bundle names are there afterwards."""

    async def rows() -> list[int]:
        async with space.database.reading() as work:
            counts = (select(func.count()).select_from(one) for one in (item, workspace))
            return [await work.scalar(count) for count in counts]

    before = await rows()
    yield
    assert await rows() == before
    assert _escaped(settings) == []


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("name", ARCHIVES)
async def test_a_hostile_bundle_ends_failed_or_blocked_with_its_error_named(
    name: str, admin: Administrator, driver: ImportDriver
) -> None:
    pack, named = ARCHIVES[name]
    run_id = (await admin.upload(pack()))["id"]
    status = await driver.drive(UUID(run_id))
    run = await admin.get(run_id)
    assert run["status"] == status
    if name.startswith(MERELY_TOLD):
        (entry,) = run["workspaces"]
        assert (status, entry["stage"], run["errors"]) == ("awaiting_review", "ready", [])
        assert any(named in warning for warning in entry["warnings"]), entry
        return
    assert any(named in error for error in run["errors"]), run
    refused = await admin.decide(run_id, "approve", 409)
    if status == "awaiting_review":
        assert [one["stage"] for one in run["workspaces"]] == ["blocked"]
        assert "is blocked" in refused["message"]
    else:
        assert status == "failed"


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("pack", [zipped, _tar])
async def test_a_bundle_that_changes_after_its_approval_is_not_imported(
    pack: Callable[[Entries], bytes], admin: Administrator, driver: ImportDriver, settings: Settings
) -> None:
    run = await admin.upload(pack(_whole(ONE)))
    assert await driver.drive(UUID(run["id"])) == "awaiting_review"
    elsewhere = await admin.change(
        await admin.get(run["id"]), 0, 404, targetWorkspaceId=str(uuid4())
    )
    assert elsewhere["error"] == "not_found"
    await admin.decide(run["id"], "approve")

    async def others() -> AsyncIterator[bytes]:
        yield pack(_whole(folder("Another")[1]))

    await ObjectStore(settings.object_store).put(run["bundleObjectKey"], others())
    await admin.decide(run["id"], "start")
    assert await driver.drive(UUID(run["id"])) == "failed"
    (error,) = (await admin.get(run["id"]))["errors"]
    assert error.startswith("The bundle has changed since it was approved")
