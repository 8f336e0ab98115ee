"""Messages of a worker and its quarantine process: JSON through two pipes."""

import asyncio
import inspect
import os
import struct
import threading
import typing
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from pydantic import TypeAdapter
from temporalio import activity
from temporalio.api.common.v1 import Payloads
from temporalio.testing import ActivityEnvironment

from runtime.payload_converter import data_converter

_LENGTH = struct.Struct("!Q")
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
    """To the process: cancel what is executed."""


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
    """From the process: the activity asked for more memory than there is."""


Message: TypeAlias = (
    Execute | Cancel | Ready | Step | Beat | Result | Failure | Cancelled | OutOfMemory
)
_NAMES = {kind.__name__: TypeAdapter(kind) for kind in typing.get_args(Message)}


def packed(values: Sequence[Any]) -> str:
    """Values as Temporal would write them, in hexadecimal digits."""
    return Payloads(payloads=_converter.to_payloads(values)).SerializeToString().hex()


def unpacked(text: str, types: list[Any] | None = None) -> list[Any]:
    return _converter.from_payloads(Payloads.FromString(bytes.fromhex(text)).payloads, types)


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
        """Raises OSError when nobody reads any more."""
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
