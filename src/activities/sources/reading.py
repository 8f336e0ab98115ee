"""Reading a foreign file in a process of its own, from the worker's side."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack

from pydantic_core import from_json

from activities.sources import reading_process
from activities.sources.processes import context, process_of, start
from models.data.fields.rules.fields import FieldKind
from models.sources.data_source_runs.staging import ReadBatch
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ErrorKind, ReadOptions, SourceProblem
from models.sources.tabular.rules.rejections import Rejection

ANSWER_SECONDS = 120.0
"""Seconds until the next answer of the process: opening a file, or a batch of its rows."""

Stage: TypeAlias = Callable[[ReadBatch], Awaitable[None]]


class ReadingEndedError(Exception):
    """The process that read a file was killed from outside. Another attempt may read it."""

    retryable = True


class Mapped(TypedDict, total=False):
    """The further options of `Describe`."""

    sources: Mapping[str, FieldKind]
    targets: Mapping[str, FieldKind]
    only_mapped: bool
    before: Conventions | None
    row_keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """One file that is being read."""

    _connection: Connection
    _process: Any
    _seconds: float

    @property
    def process_id(self) -> int:
        process_id: int = self._process.pid
        return process_id

    async def describe(
        self, sample: int, profiled: int | None, **more: Unpack[Mapped]
    ) -> dict[str, Any]:
        """The columns and the first rows of the table. Raises SourceProblem."""
        return await self._described(reading_process.Describe(sample, profiled, **more))

    async def check(self, request: reading_process.Check) -> dict[str, Any]:
        """The cells and rows that an import would leave out. Raises SourceProblem."""
        return await self._described(request)

    async def _described(
        self, request: reading_process.Describe | reading_process.Check
    ) -> dict[str, Any]:
        await self._ask(request)
        answer = await self._answer()
        assert answer[:1] == reading_process.DESCRIPTION
        described: dict[str, Any] = from_json(answer[1:])
        return described

    async def inspect(
        self, request: reading_process.Inspect
    ) -> tuple[int, Any, list[str], str | None, str, int | None]:
        """The facts of a page of JSON, as `inspect_page` gives them.

        Raises SourceProblem.
        """
        await self._ask(request)
        facts = from_json((await self._answer())[1:])
        rows, cursor, columns, json_path, digest, stated = facts
        return rows, cursor, columns, json_path, digest, stated

    async def fill(self, request: reading_process.Fill, stage: Stage) -> dict[str, Any]:
        """Stage the rows as values of fields, batch by batch.

        Gives the options that rows need and their fields lack, by the key of the field. Raises
        SourceProblem, and what `stage` raises.
        """
        await self._ask(request)
        answer = await self._answer()
        while answer[:1] != reading_process.END:
            # The next batch comes over while this one is written.
            following = asyncio.create_task(self._answer())
            following.add_done_callback(lambda task: task.cancelled() or task.exception())
            try:
                await stage(_batch(answer))
                answer = await following
            finally:
                following.cancel()
        grown: dict[str, Any] = from_json(answer[1:])
        return grown

    async def _ask(
        self,
        request: reading_process.Describe
        | reading_process.Check
        | reading_process.Inspect
        | reading_process.Fill,
    ) -> None:
        # A process that refuses the file before it is asked has ended; its answer is still there.
        with suppress(BrokenPipeError, ConnectionResetError):
            await asyncio.to_thread(self._connection.send, request)

    async def _answer(self) -> bytes:
        answer = await asyncio.to_thread(self._received)
        if answer is None:
            message = (
                f"Reading the file takes longer than {self._seconds:g} seconds. Split the file."
            )
            raise SourceProblem(ErrorKind.TIMEOUT, message, final=True)
        if answer[:1] == reading_process.PROBLEM:
            problem = from_json(answer[1:])
            raise SourceProblem(ErrorKind(problem["kind"]), problem["message"], final=True)
        return answer

    def _received(self) -> bytes | None:
        try:
            return self._connection.recv_bytes() if self._connection.poll(self._seconds) else None
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise _broken_off(self._process.exitcode) from None


def _batch(answer: bytes) -> ReadBatch:
    counts, _, lines = answer[1:].partition(b"\n")
    read, skipped, lost, rejections = from_json(counts)
    return ReadBatch(read, skipped, lost, lines, [Rejection(*one) for one in rejections])


def _broken_off(status: int | None) -> Exception:
    """The reason a process ended without an answer, by its exit status."""
    if status == -signal.SIGABRT:
        # The end of a library whose allocation was refused; Python itself raises MemoryError.
        return SourceProblem(ErrorKind.TOO_LARGE, reading_process.TOO_MUCH_MEMORY)
    if status == -signal.SIGKILL:
        return ReadingEndedError("The process reading the file was killed.")
    return SourceProblem(ErrorKind.PARSE, reading_process.UNREADABLE)


@asynccontextmanager
async def reading(
    files: Sequence[Path], options: ReadOptions, seconds: float = ANSWER_SECONDS
) -> AsyncIterator[Reading]:
    """A process that reads the file, or the pages of JSON, while the block runs."""
    ours, theirs = context.Pipe()
    paths = [str(path) for path in files]
    process = process_of(reading_process.read_file, theirs, paths, options)
    await start(process)
    theirs.close()
    try:
        yield Reading(ours, process, seconds)
    finally:
        # A thread that waits for an answer gets the end of the connection.
        process.kill()
        await asyncio.to_thread(process.join)
        ours.close()


async def page_of(
    path: Path, options: ReadOptions, request: reading_process.Inspect
) -> tuple[int, Any, list[str], str | None, str, int | None]:
    """The facts of a page of JSON, as `inspect_page` gives them.

    Raises SourceProblem.
    """
    async with reading([path], options) as page:
        return await page.inspect(request)
