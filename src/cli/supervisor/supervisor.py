"""Keeps the platform's processes running, and ends them in order."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from cli.supervisor.children import Child, Service
from cli.supervisor.errors import StartError
from cli.supervisor.files import tail
from cli.supervisor.state import StateDir
from cli.supervisor.status import Status
from runtime.exit_codes import end_of, ended_by_itself

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 10.0
# A child that lived this long, or was killed, is in no crash loop: its restart is immediate again.
_STEADY_SECONDS = 30.0
_START_SECONDS = 300.0
"""Seconds in which a process is ready, also on a very busy machine. One that fails ends sooner."""
_PROBE_SECONDS = 3.0


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
        return f"The end of {log}:\n{tail(log, since=child.log_begin)}"

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
            self._status.set(service.name, "died", f"{end}, again in {delay:.1f} s")
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
    return code < 0 and not ended_by_itself(code)


def _how(code: int) -> str:
    return f"ended: {end_of(code)}"
