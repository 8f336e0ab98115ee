"""The supervisor: keeps child processes running, shows their status, and ends them in order."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.console import StartError
from cli.supervisor.state import StateDir, read_object, tail, write_private
from runtime.processes import exit_codes

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 10.0

# A child that lived this long, or was killed, is in no crash loop: its restart is immediate again.
_STEADY_SECONDS = 30.0
_START_SECONDS = 300.0
"""Seconds in which a process is ready, also on a very busy machine. One that fails ends sooner."""
_PROBE_SECONDS = 3.0


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One process of the platform, and the check that it works."""

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
        self._memory_kills = exit_codes.memory_kills()

    @classmethod
    async def start(cls, service: Service, state: StateDir, predecessor: int = 0) -> "Child":
        """Start the process, and pass it the exit code of the one before it.

        Raises StartError when its program cannot be run.
        """
        service.before_start()
        state.rotate_log(service.name)
        with state.log(service.name).open("ab") as log:
            log_begin = log.tell()
            try:
                process = await asyncio.create_subprocess_exec(
                    *service.command,
                    env={**service.environment, exit_codes.PREDECESSOR: str(predecessor)},
                    cwd=service.directory,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # Ctrl-C must reach the supervisor alone, and a group of its own ends with all
                    # it started.
                    start_new_session=True,
                )
            except OSError as error:
                raise StartError(
                    f"{service.name} cannot be started: {service.command[0]}: {error.strerror}."
                ) from None
        record = state.pids / f"{service.name}.json"
        with suppress(psutil.NoSuchProcess):
            # By its start time a later supervisor knows it from another process with the same id.
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
        code = exit_codes.with_memory_kill(await self._process.wait(), self._memory_kills)
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


class Status:
    """The state of each service, in the order they were first named."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, tuple[str, str]] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def set(self, name: str, state: str, detail: str = "") -> None:
        """Show the state of a service unless it is shown already."""
        if self._rows.get(name) == (state, detail):
            return
        self._rows[name] = (state, detail)
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
        else:
            elapsed = time.monotonic() - self._started
            self.say(f"{elapsed:6.1f}s  {name:<10} {state:<10} {detail}".rstrip())

    def say(self, text: str) -> None:
        """Print a line above the table."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("service", "state", ""):
            table.add_column(column)
        for name, (state, detail) in self._rows.items():
            # Not markup: `say` prints without it, and the table along with its line.
            table.add_row(name, Text(state, style=_STYLES.get(state, "red")), Text(detail))
        return table


class Supervisor:
    """Starts services, restarts the ones that die, stops all in the reverse of their start."""

    def __init__(self, state: StateDir, status: Status) -> None:
        self._state = state
        self._status = status
        self._children: dict[str, Child] = {}
        self._ready: dict[str, asyncio.Event] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def start(self, service: Service) -> None:
        """Start a service and wait until it is ready; from then on it is kept running.

        Raises StartError, with the end of its log, when it ends or takes too long.
        """
        self._ready.setdefault(service.name, asyncio.Event())
        child = await self._spawn(service)
        if not await self._becomes_ready(child):
            raise StartError(
                f"{service.name} did not start. {service.damage()}{self._log_tail(child)}"
            )
        self._keepers[service.name] = asyncio.create_task(self._keep_running(child))

    async def run_once(self, service: Service) -> None:
        """Run a process that ends by itself. Raises StartError when it fails."""
        child = await self._spawn(service)
        code = await child.wait()
        if code != 0:
            raise StartError(f"{service.name} failed. {self._log_tail(child)}")
        self._children.pop(service.name)
        self._status.set(service.name, "done")

    async def stop(self, order: Sequence[str]) -> None:
        """End every child, in this order; each has its own time to end by itself."""
        for keeper in self._keepers.values():
            # First, so that no keeper restarts what is being stopped.
            keeper.cancel()
        await asyncio.gather(*self._keepers.values(), return_exceptions=True)
        for name in order:
            if child := self._children.get(name):
                self._status.set(name, "stopping")
                await child.stop()
                self._status.set(name, "stopped")

    def kill(self) -> None:
        """End every child at once."""
        for child in self._children.values():
            child.kill()

    def _log_tail(self, child: Child) -> str:
        log = self._state.log(child.service.name)
        return f"Last lines of {log}:\n{tail(log, since=child.log_begin)}"

    async def _spawn(self, service: Service, predecessor: int = 0) -> Child:
        self._status.set(service.name, "starting")
        child = await Child.start(service, self._state, predecessor)
        self._children[service.name] = child
        return child

    async def _keep_running(self, child: Child) -> None:
        delay = _FIRST_DELAY
        service = child.service
        code, end = 0, ""
        while True:
            started = time.monotonic()
            if not end:
                code = await self._watch(child)
                end = _how(code)
                if time.monotonic() - started > _STEADY_SECONDS or _is_killed(code):
                    delay = _FIRST_DELAY
            self._ready[service.name].clear()
            self._status.set(service.name, "died", f"{end}, restarting in {delay:.1f} s")
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)
            for needed in service.needs:
                await self._ready[needed].wait()
            try:
                child = await self._spawn(service, code)
            except (StartError, OSError) as error:
                # A full disk or table of processes may have room again the next time.
                end = str(error)
                continue
            end = ""
            await self._becomes_ready(child)

    async def _watch(self, child: Child) -> int:
        """Probe a child and bound its log for as long as it lives; its exit code."""
        ending = asyncio.ensure_future(child.wait())
        try:
            while True:
                # wait_for swallows a cancel that meets the end of a child (gh-86296).
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PROBE_SECONDS):
                        return await asyncio.shield(ending)
                self._state.rotate_log(child.service.name)
                self._show(child, ready=await child.service.is_ready())
        finally:
            ending.cancel()

    async def _becomes_ready(self, child: Child) -> bool:
        deadline = time.monotonic() + _START_SECONDS
        while child.is_running and time.monotonic() < deadline:
            if await child.service.is_ready():
                self._show(child, ready=True)
                return True
            await asyncio.sleep(0.05)
        return False

    def _show(self, child: Child, *, ready: bool) -> None:
        event = self._ready[child.service.name]
        (event.set if ready else event.clear)()
        self._status.set(
            child.service.name, "ready" if ready else "not answering", f"process {child.pid}"
        )


def _is_killed(code: int) -> bool:
    return code < 0 and not exit_codes.ended_by_itself(code)


def _how(code: int) -> str:
    return f"ended: {exit_codes.end_of(code)}"


def kill_group(pid: int) -> None:
    """Send SIGKILL to the processes that are left of the group that `pid` led."""
    # The group is gone; or macOS denies signals to a group of zombies.
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
            f"Process {left[0].pid} of an earlier start is still running. Stop it, then retry."
        )
    # Only now: a stray that could not be ended must be known to the next start.
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
    """Wait for processes that may be children of no process of ours. Returns the ones that still
    run.

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


_STYLES = {
    "ready": "green",
    "done": "green",
    "starting": "yellow",
    "stopping": "yellow",
    "stopped": "dim",
}
"""Of expected states. All others are red."""
