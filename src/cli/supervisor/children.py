"""Child processes: started in a group and with a log of their own, found again after a crash."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cli.supervisor.errors import StartError
from cli.supervisor.files import read_object, write_private
from cli.supervisor.state import StateDir
from runtime.exit_codes import PREDECESSOR
from runtime.memory_kills import memory_kills, with_memory_kill


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process of the platform, and how to tell that it does its work."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    is_ready: Callable[[], Awaitable[bool]]
    needs: tuple[str, ...] = ()
    """Services that must be ready before this one is started or started again."""
    before_start: Callable[[], None] = field(default=_nothing)
    damage: Callable[[], str] = field(default=str)
    """The fault in its data and what to do, looked for when it did not start; or nothing."""
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    stray_signal: signal.Signals = signal.SIGKILL
    """Ends one whose supervisor was killed: quickly, and nothing durable is lost by it."""
    directory: Path = field(default_factory=Path.cwd)


class Child:
    """A running process of a service."""

    def __init__(
        self, service: Service, process: asyncio.subprocess.Process, record: Path, log_begin: int
    ) -> None:
        self.service = service
        self.log_begin = log_begin
        """The place in its log at which the lines of this process begin."""
        self.pid = process.pid
        self._process = process
        self._record = record
        self._memory_kills = memory_kills()

    @classmethod
    async def start(cls, service: Service, state: StateDir, predecessor: int = 0) -> "Child":
        """Start the process, which is told the exit code of the one before it.

        Raises StartError when its program cannot be run.
        """
        service.before_start()
        state.rotate_log(service.name)
        with state.log(service.name).open("ab") as log:
            log_begin = log.tell()
            try:
                process = await asyncio.create_subprocess_exec(
                    *service.command,
                    env={**service.environment, PREDECESSOR: str(predecessor)},
                    cwd=service.directory,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise StartError(
                    f"{service.name} cannot be started: {service.command[0]}: {error.strerror}."
                ) from None
        record = state.pids / f"{service.name}.json"
        with suppress(psutil.NoSuchProcess):
            started = psutil.Process(process.pid).create_time()
            write_private(
                record,
                {
                    "pid": process.pid,
                    "startedAt": started,
                    "straySignal": service.stray_signal.value,
                },
            )
        return cls(service, process, record, log_begin)

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def wait(self) -> int:
        """The exit code; negative for a signal, OUT_OF_MEMORY for that of the kernel."""
        code = with_memory_kill(await self._process.wait(), self._memory_kills)
        kill_group(self.pid)
        self._record.unlink(missing_ok=True)
        return code

    async def stop(self) -> None:
        """Ask the process to end; after its time, end it and all it started."""
        if self.is_running:
            with suppress(ProcessLookupError):
                self._process.send_signal(self.service.stop_signal)
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    asyncio.shield(self._process.wait()), self.service.stop_seconds
                )
        kill_group(self.pid)
        await self.wait()

    def kill(self) -> None:
        kill_group(self.pid)


def kill_group(pid: int) -> None:
    """SIGKILL to whatever is left of the process group that `pid` led."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def clear_strays(state: StateDir, seconds: float = 5) -> list[str]:
    """End the children that a killed supervisor left behind, side by side; their names.

    A process counts as ours only if its start time is the recorded one: process ids are reused.
    Raises StartError when one cannot be ended.
    """
    records = {path: read_object(path) for path in sorted(state.pids.glob("*.json"))}
    strays = {path: stray for path, record in records.items() if (stray := _stray(record))}
    for path, stray in strays.items():
        with suppress(psutil.NoSuchProcess):
            stray.send_signal(records[path].get("straySignal", signal.SIGKILL))
    await_end(strays.values(), seconds)
    for stray in strays.values():
        kill_group(stray.pid)
    if left := await_end(strays.values(), seconds):
        raise StartError(
            f"Process {left[0].pid} of an earlier start cannot be ended: end it, then start again."
        )
    for path in records:
        path.unlink(missing_ok=True)
    return [path.stem for path in strays]


def _stray(record: Mapping[str, float]) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess, KeyError):
        stray = psutil.Process(int(record["pid"]))
        if abs(stray.create_time() - record["startedAt"]) <= 1 and _runs(stray):
            return stray
    return None


def await_end(processes: Iterable[psutil.Process], seconds: float) -> Sequence[psutil.Process]:
    """Wait for processes that may be nobody's children. Gives the ones that still run afterwards.

    A zombie has ended: where there is none to reap it, it stays. While it has threads that are
    still ending, it holds its ports and files.
    """
    deadline = time.monotonic() + seconds
    while (
        running := [process for process in processes if _runs(process)]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def _runs(process: psutil.Process) -> bool:
    try:
        is_zombie = process.status() == psutil.STATUS_ZOMBIE
        return process.is_running() and bool(not is_zombie or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False
