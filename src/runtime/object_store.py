"""The store of the bytes of files: a directory, an S3 bucket, or the memory of one process.

An object is written once under a key of its own and never changed, so it can be read piece by
piece without any lock. It is seen whole or not at all.
"""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, S3Store

from runtime.errors import StorageFullError, UnavailableError
from runtime.ids import new_id

PROBES = "probe"
"""The prefix of the keys of objects that only try the store."""
_PART = 5 * 1024 * 1024
"""Bytes of one part of an upload: the least that S3 takes."""
_PARTS_AT_ONCE = 2
_PIECE = 1024 * 1024
"""Bytes read at once: a slow reader holds no connection to the store, only this much memory."""
_LISTED = 500

_log = structlog.get_logger(__name__)


class ObjectStore:
    """Objects by key; `url` is `file:///directory`, `s3://bucket/prefix` or `memory://`.

    S3 takes its credentials, region and endpoint from the usual `AWS_…` variables. Every method
    raises UnavailableError when the store does not answer.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        scheme = urlsplit(url).scheme
        self._directory = Path(unquote(urlsplit(url).path)) if scheme == "file" else None

    async def put(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        """Write an object as its bytes arrive; returns their number.

        When `chunks` raises, nothing of the object remains, and the exception propagates.
        """
        size = 0
        with self._reported(key):
            async with obstore.open_writer_async(
                self._store, key, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE
            ) as writer:
                async for chunk in chunks:
                    size += await writer.write(chunk)
            await self._make_durable(key)
        return size

    async def put_file(self, key: str, path: Path) -> None:
        """Write an object that has the bytes of a file, without their way through Python."""
        with self._reported(key):
            await obstore.put_async(
                self._store, key, path, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE
            )
            await self._make_durable(key)

    async def get(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to but not including `end`, piece by piece.

        Raises FileNotFoundError when there is no such object.
        """
        with self._reported(key):
            if end is None:
                end = await self.size(key)
            while start < end:
                stop = min(start + _PIECE, end)
                piece = await obstore.get_range_async(self._store, key, start=start, end=stop)
                yield bytes(piece)
                start = stop

    async def size(self, key: str) -> int:
        """The number of bytes of an object. Raises FileNotFoundError when there is none."""
        with self._reported(key):
            return (await obstore.head_async(self._store, key))["size"]

    async def delete(self, key: str) -> None:
        """Remove an object; a missing one counts as removed."""
        with self._reported(key):
            try:
                await obstore.delete_async(self._store, key)
            except FileNotFoundError:
                return

    async def probe(self) -> None:
        """Write, read and remove a small object."""
        key = f"{PROBES}/{new_id()}"
        await self.put(key, _stream(b"probe"))
        try:
            await anext(self.get(key))
        finally:
            await self.delete(key)

    async def report(self) -> None:
        """Log at the start of a process that the store cannot be used; the first upload is later.

        It starts all the same, since a store may be back before it is needed.
        """
        try:
            await self.probe()
        except (UnavailableError, OSError):
            _log.error("object_store_unusable", store=self._url, help="run `workspace doctor`")

    async def drop_unfinished(self, moment: datetime) -> None:
        """Remove what uploads begun before `moment` left in a directory when their process died.

        A bucket does so by its own lifecycle rule.
        """
        if self._directory is not None:
            await asyncio.to_thread(_drop_drafts, self._directory, moment.timestamp())

    async def older_than(self, prefix: str, moment: datetime) -> AsyncIterator[list[str]]:
        """Keys below `prefix` of objects that were written before `moment`, in batches."""
        with self._reported(prefix):
            async for batch in obstore.list(self._store, prefix, chunk_size=_LISTED):
                yield [entry["path"] for entry in batch if entry["last_modified"] < moment]

    async def _make_durable(self, key: str) -> None:
        if self._directory is not None:
            await asyncio.to_thread(_make_durable, self._directory / key)

    @contextmanager
    def _reported(self, key: str) -> Iterator[None]:
        """Log for the operator why a store failed, and raise for the caller only that it did."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            reason = str(error).partition("\n")[0]
            if self._is_full(error):
                _log.error("object_store_disk_full", key=key, reason=reason)
                raise StorageFullError("object store") from None
            _log.warning("object_store_unavailable", key=key, reason=reason)
            raise UnavailableError("The object store is unavailable. Try again soon.") from None

    def _is_full(self, error: BaseError | OSError) -> bool:
        """Ask the disk where the error has no number; errors of the library have none."""
        if isinstance(error, OSError) and error.errno is not None:
            return has_no_room(error)
        return self._directory is not None and _lacks_room(self._directory)

    @cached_property
    def _store(self) -> LocalStore | MemoryStore | S3Store:
        """Opened at first use, so that naming a store changes nothing on a disk."""
        if self._directory is not None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LocalStore(self._directory)
        if self._url.startswith("memory:"):
            return MemoryStore()
        return S3Store.from_url(self._url)


async def _stream(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


def _drop_drafts(directory: Path, moment: float) -> None:
    """Remove the files that an object is written to before it has its name: `key#number`."""
    for draft in directory.rglob("*#*"):
        with suppress(FileNotFoundError):
            if draft.stat().st_mtime < moment:
                draft.unlink()


def has_no_room(error: OSError) -> bool:
    """Recognize a disk that is full, or a quota that is used up."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def _lacks_room(directory: Path) -> bool:
    """Try to get the room of one part."""
    draft = directory / f"room#{new_id()}"
    try:
        with draft.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, _PART)
    except OSError as error:
        return has_no_room(error)
    finally:
        draft.unlink(missing_ok=True)
    return False


def _make_durable(path: Path) -> None:
    """Sync a file and its name to the disk before a row names it."""
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def size_and_digest(path: Path) -> tuple[int, bytes]:
    """The bytes that a file has, and their SHA-256; to be called on a thread."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
        return file.tell(), digest
