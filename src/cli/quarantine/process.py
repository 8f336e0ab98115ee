"""The quarantine of a worker: a process that executes one activity at a time, and its messages.

The process is started when it is first needed, and ends when it is idle or its worker has ended.
"""

import asyncio
import inspect
import os
import struct
import sys
import threading
import typing
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.api.failure.v1 import Failure as EncodedFailure
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput

from activities.suspects import QuarantineDeathError
from activities.turns import PATIENCE_SECONDS, turn, waited
from runtime.observability.process_output import child_output
from runtime.processes.exit_codes import OUT_OF_MEMORY, memory_kills, with_memory_kill
from runtime.temporal.executions import data_converter

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
        async with turn(self._turn, "The quarantine is busy."):
            process = await self._started()
            facts = Facts.of(activity.info())
            await _send(process, Execute(facts, packed(call.args)))
            ending = asyncio.ensure_future(self._end(process, types_of(call.fn)[1]))
            try:
                # A cancel is passed on to the process, whose answer is still read.
                return await asyncio.shield(ending)
            except asyncio.CancelledError:
                await _send(process, Cancel())
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
        """The process. Its start continues although an activity that waits for it is cancelled."""
        if self._process is not None and self._process.returncode is None:
            return self._process
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        starting = self._starting
        await waited(starting, "The quarantine is starting.")
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
                case Step(name):
                    step = name
                case Beat(details):
                    activity.heartbeat(*unpacked(details))
                case Result(value):
                    return unpacked(value, [kind])[0]
                case Failure(text):
                    failure = EncodedFailure.FromString(bytes.fromhex(text))
                    raise await data_converter.decode_failure(failure)
                case Cancelled():
                    raise asyncio.CancelledError
                case OutOfMemory():
                    await self.close()
                    raise QuarantineDeathError(step, OUT_OF_MEMORY)
                case _:
                    raise RuntimeError(f"Unexpected message from the quarantine: {message!r}.")


def _failed() -> ApplicationError:
    pause = timedelta(seconds=PATIENCE_SECONDS)
    return ApplicationError(
        "The quarantine failed to start.", type="interrupted", next_retry_delay=pause
    )


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


_converter = data_converter.payload_converter


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts an activity may ask about itself; `details` come from its last heartbeat."""

    activity_id: str
    activity_type: str
    attempt: int
    is_local: bool
    namespace: str
    started_time: datetime
    start_to_close_timeout: timedelta | None
    task_queue: str
    workflow_id: str | None
    workflow_run_id: str | None
    workflow_type: str | None
    details: str

    @classmethod
    def of(cls, info: activity.Info) -> "Facts":
        """The facts of the activity that is executed here."""
        names = cls.__annotations__.keys() - {"details"}
        return cls(
            **{name: getattr(info, name) for name in names}, details=packed(info.heartbeat_details)
        )

    def info(self) -> activity.Info:
        """The same for the process where it is executed now."""
        facts = asdict(self)
        details = unpacked(facts.pop("details"))
        return replace(ActivityEnvironment.default_info(), **facts, heartbeat_details=details)


@dataclass(frozen=True, slots=True)
class Execute:
    """To the process: execute the activity of this type."""

    facts: Facts
    arguments: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """To the process: cancel the activity."""


@dataclass(frozen=True, slots=True)
class Ready:
    """From the process: it can execute."""


@dataclass(frozen=True, slots=True)
class Step:
    """From the process: this begins."""

    step: str


@dataclass(frozen=True, slots=True)
class Beat:
    """From the process: a heartbeat."""

    beat: str


@dataclass(frozen=True, slots=True)
class Result:
    """From the process: what the activity gave."""

    result: str


@dataclass(frozen=True, slots=True)
class Failure:
    """From the process: what the activity raised, as Temporal writes it, in hexadecimal digits."""

    failure: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """From the process: the activity was cancelled."""


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """From the process: the activity needed more memory than available."""


def packed(values: Sequence[Any]) -> str:
    """Values as Temporal would write them, in hexadecimal digits."""
    return Payloads(payloads=_converter.to_payloads(values)).SerializeToString().hex()


def unpacked(text: str, types: list[Any] | None = None) -> list[Any]:
    return _converter.from_payloads(Payloads.FromString(bytes.fromhex(text)).payloads, types)


Message: TypeAlias = (
    Execute | Cancel | Ready | Step | Beat | Result | Failure | Cancelled | OutOfMemory
)


async def _send(process: asyncio.subprocess.Process, message: Message) -> None:
    assert process.stdin is not None, "it was asked for"
    # The reading end reports the end of the process.
    with suppress(OSError):
        process.stdin.write(encoded(message))
        await process.stdin.drain()


async def _receive(process: asyncio.subprocess.Process) -> Message:
    assert process.stdout is not None, "it was asked for"
    return await receive(process.stdout)


_LENGTH = struct.Struct("!Q")

_NAMES = {kind.__name__: TypeAdapter(kind) for kind in typing.get_args(Message)}


def types_of(function: Callable[..., Any]) -> tuple[list[Any], Any]:
    """The types of an activity's arguments, and of what it gives."""
    hints = typing.get_type_hints(function)
    return [hints[name] for name in inspect.signature(function).parameters], hints["return"]


class Pipe:
    """The end of a pipe that messages are written to, by any thread, and at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, message: Message) -> None:
        """Raises OSError when the reading end is closed."""
        left = memoryview(encoded(message))
        with self._lock:
            while left:
                left = left[os.write(self._descriptor, left) :]


def encoded(message: Message) -> bytes:
    """A message as bytes: a length, a name, and JSON."""
    name = type(message).__name__
    body = f"{name}\n".encode() + _NAMES[name].dump_json(message)
    return _LENGTH.pack(len(body)) + body


async def receive(reader: asyncio.StreamReader) -> Message:
    """The next message. Raises IncompleteReadError at the end."""
    [length] = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    name, _, text = (await reader.readexactly(length)).partition(b"\n")
    message: Message = _NAMES[name.decode()].validate_json(text)
    return message
