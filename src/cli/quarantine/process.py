"""The quarantine of a worker: a process of its own that executes one activity at a time.

It is started when it is first needed, and ends when it is idle or its worker is gone.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from temporalio import activity
from temporalio.api.failure.v1 import Failure as EncodedFailure
from temporalio.exceptions import ApplicationError
from temporalio.worker import ExecuteActivityInput

from activities.suspects import QuarantineDeathError
from activities.turns import PATIENCE_SECONDS, turn, waited
from cli.quarantine import messages
from runtime.exit_codes import OUT_OF_MEMORY
from runtime.memory_kills import memory_kills, with_memory_kill
from runtime.payload_converter import data_converter
from runtime.process_output import child_output

COMMAND: Sequence[str] = (sys.executable, "-m", "cli.quarantine.child")
START_SECONDS = 300
"""Seconds in which it is ready, also on a very busy machine. One that fails ends sooner."""
CANCEL_SECONDS = 10


class QuarantineProcess:
    """Executes activities in the process, in turn."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = COMMAND if command is None else command
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def execute(self, call: ExecuteActivityInput) -> object:
        """Return or raise what the activity does there.

        Raises QuarantineDeathError when the process ends before.
        """
        async with turn(self._turn, "The quarantine executes something else."):
            process = await self._started()
            facts = messages.Facts.of(activity.info())
            await _send(process, messages.Execute(facts, messages.packed(call.args)))
            ending = asyncio.ensure_future(self._end(process, messages.types_of(call.fn)[1]))
            try:
                return await asyncio.shield(ending)
            except asyncio.CancelledError:
                await _send(process, messages.Cancel())
                try:
                    return await asyncio.wait_for(ending, CANCEL_SECONDS)
                except TimeoutError:
                    await self.close()
                    raise asyncio.CancelledError from None

    async def close(self) -> None:
        """End the process, and one that is being started."""
        process, self._process = self._process, None
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.wait({starting})
        if process is not None:
            await _kill(process)

    async def _started(self) -> asyncio.subprocess.Process:
        """The process. Its start goes on although an activity that waits for it gives up."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        starting = self._starting
        await waited(starting, "The quarantine is being started.")
        self._starting = None
        try:
            starting.result()
        except (EOFError, TimeoutError):
            raise _failed() from None
        assert self._process is not None, "it has started"
        return self._process

    async def _start(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=child_output(),
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await _receive(process)
        except BaseException:
            await _kill(process)
            raise
        self._process = process

    async def _end(self, process: asyncio.subprocess.Process, kind: object) -> object:
        step, kills = activity.info().activity_type, memory_kills()
        while True:
            try:
                message = await _receive(process)
            except EOFError:
                code = with_memory_kill(await process.wait(), kills)
                raise QuarantineDeathError(step, code) from None
            match message:
                case messages.Step(name):
                    step = name
                case messages.Beat(details):
                    activity.heartbeat(*messages.unpacked(details))
                case messages.Result(value):
                    return messages.unpacked(value, [kind])[0]
                case messages.Failure(text):
                    failure = EncodedFailure.FromString(bytes.fromhex(text))
                    raise await data_converter.decode_failure(failure)
                case messages.Cancelled():
                    raise asyncio.CancelledError
                case messages.OutOfMemory():
                    await self.close()
                    raise QuarantineDeathError(step, OUT_OF_MEMORY)
                case _:
                    raise RuntimeError(f"The quarantine said {message!r}.")


def _failed() -> ApplicationError:
    pause = timedelta(seconds=PATIENCE_SECONDS)
    return ApplicationError(
        "The quarantine could not be started.", type="interrupted", next_retry_delay=pause
    )


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _send(process: asyncio.subprocess.Process, message: messages.Message) -> None:
    assert process.stdin is not None, "it was asked for"
    # Of a process that is gone, the reading end tells.
    with suppress(OSError):
        process.stdin.write(messages.encoded(message))
        await process.stdin.drain()


async def _receive(process: asyncio.subprocess.Process) -> messages.Message:
    assert process.stdout is not None, "it was asked for"
    return await messages.receive(process.stdout)
