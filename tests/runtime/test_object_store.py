"""Objects are whole or not there, read in ranges, and never held in memory."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runtime.errors import UnavailableError
from runtime.object_store import ObjectStore
from tests.support.patience import eventually

MIB = 1024 * 1024


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    url = (tmp_path / "deep" / "objects").as_uri() if request.param == "file" else "memory://"
    return ObjectStore(url)


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def _read(store: ObjectStore, key: str, *span: int) -> bytes:
    return b"".join([piece async for piece in store.get(key, *span)])


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def _keys(store: ObjectStore, prefix: str = "a") -> list[str]:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    return [key async for batch in store.older_than(prefix, soon) for key in batch]


@pytest.mark.parametrize("size", [0, 1, 5 * MIB, 12 * MIB + 7], ids=str)
async def test_a_written_object_is_read(store: ObjectStore, size: int) -> None:
    content = os.urandom(size)
    pieces = [content[start : start + 100_000] for start in range(0, size, 100_000)]
    assert await store.put("a/b", _chunks(*pieces)) == size
    assert await store.size("a/b") == size
    assert await _read(store, "a/b") == content


@pytest.mark.parametrize("size", [0, 1, 5 * MIB, 12 * MIB + 7], ids=str)
async def test_a_file_is_written_as_it_is(store: ObjectStore, tmp_path: Path, size: int) -> None:
    content, path = os.urandom(size), tmp_path / "source"
    path.write_bytes(content)
    await store.put_file("a/b", path)
    assert await store.size("a/b") == size
    assert await _read(store, "a/b") == content


async def test_ranges_of_an_object_are_read(store: ObjectStore) -> None:
    content = os.urandom(3 * MIB)
    await store.put("a/b", _chunks(content))
    for start, end in ((0, 1), (MIB - 1, MIB + 1), (5, 3 * MIB), (7, 7)):
        assert await _read(store, "a/b", start, end) == content[start:end]
    largest = max([len(piece) async for piece in store.get("a/b")])
    assert largest <= MIB


@pytest.mark.parametrize("sent", [0, 1, 11], ids=str)
async def test_half_an_object_is_none(store: ObjectStore, tmp_path: Path, sent: int) -> None:
    async def failing() -> AsyncIterator[bytes]:
        for _ in range(sent):
            yield os.urandom(MIB)
            assert await _keys(store) == []
        raise ValueError("the client is gone")

    with pytest.raises(ValueError, match="gone"):
        await store.put("a/b", failing())
    assert await _keys(store) == []
    assert _files(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        await store.size("a/b")
    with pytest.raises(FileNotFoundError):
        await anext(store.get("a/b"))


async def test_a_cancelled_upload_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield os.urandom(MIB)
        begun.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(store.put("a/b", stalling()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def is_clean() -> bool:
        return not _files(tmp_path)

    await eventually(is_clean, what="the removal of what was written")
    assert await _keys(store) == []


async def test_deleting_is_repeatable(store: ObjectStore) -> None:
    await store.put("a/b", _chunks(b"x"))
    await store.delete("a/b")
    await store.delete("a/b")
    assert await _keys(store) == []


async def test_only_what_is_old_is_listed_below_its_prefix(store: ObjectStore) -> None:
    for key in ("a/1", "a/2", "other/3"):
        await store.put(key, _chunks(b"x"))
    assert sorted(await _keys(store)) == ["a/1", "a/2"]
    past = datetime.now(UTC) - timedelta(minutes=1)
    assert [key async for batch in store.older_than("a", past) for key in batch] == []


async def test_drafts_of_the_dead_are_dropped(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path.as_uri())
    await store.put("a/b", _chunks(b"x"))
    (tmp_path / "a" / "c#1").write_bytes(b"draft")
    await store.drop_unfinished(datetime.now(UTC) - timedelta(minutes=1))
    assert len(_files(tmp_path)) == 2
    await store.drop_unfinished(datetime.now(UTC) + timedelta(minutes=1))
    assert _files(tmp_path) == [tmp_path / "a" / "b"]


async def test_the_probe_leaves_nothing(store: ObjectStore) -> None:
    await store.probe()
    assert await _keys(store, "probe") == []


async def test_naming_a_store_touches_no_disk_and_its_directory_is_private(tmp_path: Path) -> None:
    directory = tmp_path / "objects"
    store = ObjectStore(directory.as_uri())
    assert not directory.exists()
    await store.put("a", _chunks(b"x"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("place", ["directory", "file"])
async def test_a_process_that_starts_reports_a_store_that_it_cannot_use(
    tmp_path: Path, place: str
) -> None:
    if place == "file":
        (tmp_path / "objects").touch()
    url = (tmp_path / "objects").as_uri()
    with capture_logs() as logged:
        await ObjectStore(url).report()
    found = [(one["log_level"], one["store"]) for one in logged if "store" in one]
    assert found == ([("error", url)] if place == "file" else [])


@pytest.mark.long
async def test_a_store_that_does_not_answer_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "canary-id",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
        "AWS_REGION": "eu-central-1",
    }.items():
        monkeypatch.setenv(name, value)
    store = ObjectStore("s3://bucket/prefix")
    with pytest.raises(UnavailableError) as refused:
        await store.size("a")
    assert "127.0.0.1" not in str(refused.value)
    assert "canary" not in capsys.readouterr().out
