"""Hostile bundles are refused, each with the rule it breaks."""

import io
import json
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from models.workspace.bundles.rules import BundleError, Fault
from models.workspace.bundles.unpacking import load_contents, read_lines, unpack
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.bundles import SOURCE, bundle, line, manifest, packed, zipped

ITEMS = f"workspaces/{SOURCE}/items.ndjson"
ROWS = line("item", title="One") + line("item", title="Two")
FILES = {ITEMS: ROWS}
TOLD = ("manifest.json", manifest(FILES))


def _linked(kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(ITEMS)
    info.external_attr = (kind | 0o777) << 16
    return info


def _tar(*members: tuple[str, bytes, bytes], layout: int = tarfile.GNU_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=layout) as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return packed(file.getvalue())


def _with_flag(archive: bytes) -> bytes:
    """The archive with its first entry marked as encrypted."""
    place = archive.index(b"PK\x01\x02") + 8
    return archive[:place] + b"\x01\x00" + archive[place + 2 :]


def _with_size(archive: bytes, size: int) -> bytes:
    """The archive whose end states this size of its list of files."""
    place = archive.rindex(b"PK\x05\x06") + 12
    return archive[:place] + struct.pack("<L", size) + archive[place + 4 :]


def _with_locator(archive: bytes, size: int) -> bytes:
    """The archive whose 64-bit end says that, and whose own end does not."""
    place = archive.rindex(b"PK\x05\x06")
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, place, 1)
    return archive[:place] + record + locator + archive[place:]


def _renamed(old: str, new: str) -> bytes:
    """An archive with a name that no library writes."""
    return zipped([TOLD, (old, ROWS)]).replace(old.encode(), new.encode())


REG = tarfile.REGTYPE
_JSON = json.loads(manifest(FILES))
_FILE = _JSON["files"][0]

HOSTILE: dict[str, tuple[bytes, Fault]] = {
    "empty": (b"", Fault.NOT_AN_ARCHIVE),
    "text": (b"not an archive at all", Fault.NOT_AN_ARCHIVE),
    "cut": (bundle(FILES)[:-30], Fault.NOT_AN_ARCHIVE),
    "cut-tar": (_tar((ITEMS, REG, ROWS * 999))[:40], Fault.NOT_AN_ARCHIVE),
    "climbing": (zipped([TOLD, ("../items.ndjson", ROWS)]), Fault.UNSAFE_NAME),
    "climbing-inside": (zipped([TOLD, ("workspaces/../../x", ROWS)]), Fault.UNSAFE_NAME),
    "backslash": (_renamed("workspaces/x", "workspaces\\x"), Fault.UNSAFE_NAME),
    "absolute": (zipped([TOLD, ("/etc/cron.d/x", ROWS)]), Fault.UNSAFE_NAME),
    "drive": (zipped([TOLD, ("C:/x", ROWS)]), Fault.UNSAFE_NAME),
    "nul": (_renamed("workspaces/abc", "workspaces/a\0c"), Fault.UNSAFE_NAME),
    "long-name": (zipped([TOLD, ("a/" * 200 + "x", ROWS)]), Fault.UNSAFE_NAME),
    "tar-climbing": (_tar(("../x", REG, ROWS)), Fault.UNSAFE_NAME),
    "tar-absolute": (_tar(("/x", REG, ROWS)), Fault.UNSAFE_NAME),
    "tar-long-name": (_tar(("a" * 70_000, REG, ROWS)), Fault.UNSAFE_NAME),
    "twice": (zipped([TOLD, (ITEMS, ROWS), (ITEMS, b"")]), Fault.DUPLICATE_NAME),
    "tar-twice": (_tar((ITEMS, REG, ROWS), (ITEMS, REG, ROWS)), Fault.DUPLICATE_NAME),
    "listed-twice": (bundle(FILES, files=[_FILE, _FILE]), Fault.DUPLICATE_NAME),
    "link": (zipped([TOLD, (_linked(stat.S_IFLNK), b"/etc/passwd")]), Fault.NOT_A_FILE),
    "device": (zipped([TOLD, (_linked(stat.S_IFBLK), b"")]), Fault.NOT_A_FILE),
    "tar-link": (_tar((ITEMS, tarfile.SYMTYPE, b"")), Fault.NOT_A_FILE),
    "tar-hard-link": (_tar((ITEMS, tarfile.LNKTYPE, b"")), Fault.NOT_A_FILE),
    "tar-fifo": (_tar((ITEMS, tarfile.FIFOTYPE, b"")), Fault.NOT_A_FILE),
    "encrypted": (_with_flag(bundle(FILES)), Fault.ENCRYPTED),
    "endless-list": (_with_size(bundle(FILES), 2**31), Fault.TOO_LARGE),
    "endless-line": (bundle({ITEMS: b"0" * 9_000_000 + b"\n"}), Fault.LINE),
    "checksum": (bundle(FILES, files=[{**_FILE, "sha256": "0" * 64}]), Fault.CHECKSUM),
    "length": (bundle(FILES, files=[{**_FILE, "bytes": 1}]), Fault.CHECKSUM),
    "rows": (bundle(FILES, files=[{**_FILE, "rows": 3}]), Fault.COUNTS),
    "missing": (bundle(FILES, files=[_FILE, {**_FILE, "path": "x"}]), Fault.MISSING_FILE),
    "unlisted": (zipped([TOLD, (ITEMS, ROWS), ("more", b"")]), Fault.UNLISTED_FILE),
    "blob": (bundle({f"workspaces/{SOURCE}/blobs/{'0' * 64}": b"x"}), Fault.CHECKSUM),
    "no-manifest": (zipped([(ITEMS, ROWS)]), Fault.MANIFEST),
    "other-format": (bundle(FILES, format="other"), Fault.MANIFEST),
    "version-2": (bundle(FILES, formatVersion=2), Fault.MANIFEST),
    "version-0": (bundle(FILES, formatVersion=0), Fault.MANIFEST),
    "manifest-list": (zipped([("manifest.json", b"[]")]), Fault.MANIFEST),
    "manifest-of-nothing": (
        zipped([("manifest.json", b"[" + b"[]," * 1_000_001)]),
        Fault.TOO_LARGE,
    ),
    "list-in-64": (_with_locator(bundle(FILES), 2**31), Fault.TOO_LARGE),
    "tar-window": (b"\x28\xb5\x2f\xfd\x00\xf8" + bytes(64), Fault.NOT_AN_ARCHIVE),
    "manifest-deep": (zipped([("manifest.json", b"[" * 100_000)]), Fault.MANIFEST),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_bundle_is_refused(name: str) -> None:
    content, fault = HOSTILE[name]
    assert await _refused(content) is fault


@pytest.mark.parametrize(
    "pack",
    [lambda noughts: zipped([TOLD, (ITEMS, noughts)]), lambda noughts: _tar(("x", REG, noughts))],
    ids=["zip", "tar"],
)
async def test_a_bundle_that_unpacks_to_far_more_is_refused(pack: Callable[[bytes], bytes]) -> None:
    assert await _refused(pack(b"0" * 80_000_000)) is Fault.BOMB


async def _refused(content: bytes) -> Fault:
    with pytest.raises(BundleError) as refused:
        await unpack(ObjectStore("memory://"), io.BytesIO(content), len(content), new_id())
    return refused.value.fault


def _ustar(files: dict[str, bytes]) -> bytes:
    return _tar(*((name, REG, content) for name, content in files.items()))


def _posix(files: dict[str, bytes]) -> bytes:
    members = ((name, REG, content) for name, content in files.items())
    return _tar(*members, layout=tarfile.PAX_FORMAT)


@pytest.mark.parametrize("pack", [lambda files: zipped([*files.items()]), _ustar, _posix])
async def test_a_bundle_is_taken_apart(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    store, run_id = ObjectStore("memory://"), new_id()
    long = f"workspaces/{SOURCE}/records/{'x' * 90}.ndjson"
    files = {ITEMS: ROWS, long: ROWS * 6_000}
    content = pack({**files, "manifest.json": manifest(files)})
    await unpack(store, io.BytesIO(content), len(content), run_id)
    contents = await load_contents(store, run_id)
    assert {path: part.rows for path, part in contents.parts.items()} == {ITEMS: 2, long: 12_000}
    assert contents.parts[long].chunks == 3
    read = [await read_lines(store, contents.parts[long], chunk) for chunk in range(3)]
    assert [len(lines) for lines in read] == [5_000, 5_000, 2_000]
    assert b"\n".join([*read[0], *read[1], *read[2]]) + b"\n" == files[long]
