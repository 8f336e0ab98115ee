"""The platform on one machine, from start to stop: its services in their order."""

import asyncio
import os
import signal
import sys
import time
import webbrowser
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psycopg

import models.migrations
from cli.console import StartError, terminal
from cli.shutdown import ANSWER_SECONDS, DRAIN_SECONDS, until_stopped
from cli.supervisor.development import development_sessions
from cli.supervisor.servers import EmbeddedPostgres, temporal_probe, temporal_service
from cli.supervisor.state import LOOPBACK, StateDir, choose_port
from cli.supervisor.supervisor import Service, Status, Supervisor, clear_strays


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    state_dir: Path
    port: int
    temporal_port: int
    ui_port: int
    database_url: str | None
    temporal_address: str | None
    restore: Path | None = None
    """A dump to begin with, in the place of what the embedded PostgreSQL holds."""


async def run_platform(options: UpOptions) -> None:
    """Run the platform until SIGINT, SIGTERM or SIGHUP. Raises StartError."""
    state = StateDir(options.state_dir)
    state.prepare()
    with state.locked(), Status(terminal()) as status:
        # A file of an earlier start, which was killed, names a platform that no longer runs.
        state.unpublish()
        for name in await asyncio.to_thread(clear_strays, state):
            status.say(f"Stopped {name}, left over from an earlier start.")
        platform = Platform(options, state, status)
        stopping = _stop_on_signals(platform)
        try:
            await until_stopped(stopping, _start(platform, state, status))
        finally:
            # Before the stop: clients must not find an API that ends.
            state.unpublish()
            await platform.stop()


class Platform:
    """Starts the services of one state directory and says how to reach them."""

    def __init__(self, options: UpOptions, state: StateDir, status: Status) -> None:
        self._options = options
        self._state = state
        self._status = status
        self._supervisor = Supervisor(state, status)
        self._environment: dict[str, str] = {}
        self._is_migrated = False
        self._working: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, str]:
        """Start everything; the content of connection.json. Raises StartError.

        Returns when the API answers: the worker may take longer, see `worker_is_ready`.
        """
        ports = self._choose_ports()
        base_url = f"http://{LOOPBACK}:{ports['api']}"
        temporal_address = self._options.temporal_address or f"{LOOPBACK}:{ports['temporal']}"
        ui_url = os.environ.get("WORKSPACE_TEMPORAL_UI_URL", "")
        if self._options.temporal_address is None:
            ui_url = f"http://{LOOPBACK}:{ports['temporalUi']}"
        sessions = development_sessions(self._state)
        self._environment = self._shared_environment(temporal_address, ui_url)
        self._environment |= self._outbound_environment(ports)
        self._environment |= sessions.environment
        self._environment.setdefault("WORKSPACE_PUBLIC_URL", base_url)
        # Processes the API does not need start after it: all want the same processors.
        await together(
            self._start_api(ports["api"], base_url), self._start_temporal(ports, temporal_address)
        )
        self._working = asyncio.create_task(self._supervisor.start(self._worker()))
        await self._migrate()
        secrets = self._state.secrets()
        console_url = self._environment["WORKSPACE_PUBLIC_URL"].rstrip("/")
        return {
            "baseUrl": base_url,
            "consoleUrl": f"{console_url}/",
            "signInUrl": f"{console_url}/sign-in/{secrets['signInToken']}",
            "docsUrl": f"{base_url}/docs",
            "databaseUrl": "" if self._options.database_url else self._environment["DATABASE_URL"],
            "temporalAddress": temporal_address,
            "temporalUiUrl": ui_url,
            "workspaceId": secrets["workspaceId"],
            "apiKey": secrets["apiKey"],
            "sessionToken": sessions.mint(),
        }

    async def worker_is_ready(self) -> None:
        """Wait for the worker, and say so while it is starting. Raises StartError."""
        assert self._working is not None, "it was started"
        if not self._working.done():
            self._status.say("The worker is starting. Until it is ready, accepted runs are queued.")
        await self._working

    async def stop(self) -> None:
        """End everything, the users of a service before the service."""
        if self._working is not None:
            self._working.cancel()
            # Its child is started or not, and then known to the supervisor.
            await asyncio.wait({self._working})
        await self._supervisor.stop(STOP_ORDER)

    def kill(self) -> None:
        self._supervisor.kill()

    def _choose_ports(self) -> dict[str, int]:
        remembered = self._state.ports()
        options = self._options
        requests = {"api": (options.port, "--port")}
        if options.temporal_address is None:
            requests["temporal"] = (options.temporal_port, "--temporal-port")
            requests["temporalUi"] = (options.ui_port, "--ui-port")
            # Without a given port Temporal chooses one that no other process knows.
            requests["temporalHttp"] = (0, "--port")
            requests["temporalMetrics"] = (0, "--port")
        ports: dict[str, int] = {}
        for name, (requested, option) in requests.items():
            ports[name] = choose_port(requested, remembered.get(name), option, ports.values())
        self._state.remember_ports(ports)
        return ports

    def _shared_environment(self, temporal_address: str, ui_url: str) -> dict[str, str]:
        environment = dict(os.environ)
        if self._options.database_url is None:
            # It is the pooler of some other database.
            environment.pop("DATABASE_POOLER_URL", None)
        if self._options.temporal_address is None:
            # A profile for some other Temporal must not add its TLS or key to ours.
            environment = {k: v for k, v in environment.items() if not k.startswith("TEMPORAL_")}
            environment["TEMPORAL_CONFIG_FILE"] = os.devnull
        environment |= {
            "TEMPORAL_ADDRESS": temporal_address,
            "WORKSPACE_SECRET_KEY": self._state.secret_key(),
            "WORKSPACE_STATE_DIR": str(self._state.root),
            "WORKSPACE_HEARTBEAT_FILE": str(self._state.heartbeat),
        }
        if ui_url:
            environment["WORKSPACE_TEMPORAL_UI_URL"] = ui_url
        return environment

    def _outbound_environment(self, ports: dict[str, int]) -> dict[str, str]:
        """Name the platform's own ports, and the private hosts that may be called."""
        listeners = os.environ.get("WORKSPACE_OWN_LISTENERS", "")
        own = [f"{LOOPBACK}:{port}" for port in ports.values()]
        environment = {"WORKSPACE_OWN_LISTENERS": ",".join(filter(None, [listeners, *own]))}
        embedded = self._options.database_url is None and self._options.temporal_address is None
        if embedded and "WORKSPACE_OUTBOUND_ALLOW" not in os.environ:
            environment["WORKSPACE_OUTBOUND_ALLOW"] = ",".join(LOOPBACK_ALLOWED)
            self._status.say(
                "Servers on this machine may be called by automations and connections, the"
                " platform's own ports apart: set WORKSPACE_OUTBOUND_ALLOW to change that."
            )
        return environment

    async def _start_api(self, port: int, base_url: str) -> None:
        url = await self._start_database()
        self._environment["DATABASE_URL"] = url
        # A current schema saves the API the wait for the migration process, which is another start
        # of Python.
        if not await asyncio.to_thread(is_schema_current, url):
            await self._migrate()
        await self._supervisor.start(self._api(port, base_url))

    async def _migrate(self) -> None:
        """Bring the schema to this build and make the first key, once."""
        if not self._is_migrated:
            await self._supervisor.run_once(
                self._own("migrate", "migrate", "--first-key", ready=_always)
            )
            self._is_migrated = True

    async def _start_database(self) -> str:
        """The URL of the database, which answers if it is our own."""
        url = self._options.database_url
        if url is None:
            postgres = EmbeddedPostgres(self._state)
            self._status.set("postgres", "starting")
            await asyncio.to_thread(postgres.initialise)
            await self._supervisor.start(postgres.service())
            await asyncio.to_thread(postgres.create_database)
            if self._options.restore is not None:
                self._status.set("restore", "starting")
                await asyncio.to_thread(postgres.restore, self._options.restore)
                self._status.set("restore", "done", str(self._options.restore))
            url = postgres.url()
        return url

    async def _start_temporal(self, ports: dict[str, int], address: str) -> None:
        if self._options.temporal_address is None:
            service = temporal_service(self._state, ports)
            await self._supervisor.start(service)
            return
        probe = temporal_probe(address)
        deadline = time.monotonic() + _EXTERNAL_SECONDS
        while not await probe():
            if time.monotonic() > deadline:
                raise StartError(f"Can't reach Temporal at {address}. Check TEMPORAL_ADDRESS.")
            await asyncio.sleep(0.5)

    def _api(self, port: int, base_url: str) -> Service:
        # A proxy of the environment must not get a request for this machine.
        client = httpx2.AsyncClient(trust_env=False, timeout=2)

        async def answers() -> bool:
            try:
                return (await client.get(f"{base_url}/readyz")).status_code == 200
            except httpx2.TransportError:
                return False

        arguments = (f"--host={LOOPBACK}", f"--port={port}")
        return self._own(
            "api", "api", *arguments, ready=answers, stop_seconds=ANSWER_SECONDS + _MARGIN_SECONDS
        )

    def _worker(self) -> Service:
        heartbeat = self._state.heartbeat

        async def beats() -> bool:
            return (
                heartbeat.exists() and time.time() - heartbeat.stat().st_mtime < _HEARTBEAT_SECONDS
            )

        return self._own(
            "worker",
            "worker",
            needs=self._embedded(),
            ready=beats,
            # The file of the worker before this one would count as its first beat.
            before=lambda: heartbeat.unlink(missing_ok=True),
            stop_seconds=DRAIN_SECONDS + _MARGIN_SECONDS,
        )

    def _embedded(self) -> tuple[str, ...]:
        addresses = {
            "postgres": self._options.database_url,
            "temporal": self._options.temporal_address,
        }
        return tuple(name for name, address in addresses.items() if address is None)

    def _own(
        self,
        name: str,
        *arguments: str,
        ready: Callable[[], Awaitable[bool]],
        needs: tuple[str, ...] = (),
        before: Callable[[], None] = lambda: None,
        stop_seconds: float = 10,
    ) -> Service:
        """One of our own commands as a service."""
        return Service(
            name=name,
            command=[sys.executable, "-m", "cli.main", *arguments],
            environment=self._environment,
            is_ready=ready,
            needs=needs,
            before_start=before,
            stop_seconds=stop_seconds,
        )


async def _start(platform: Platform, state: StateDir, status: Status) -> None:
    connection = await platform.start()
    state.publish(connection)
    status.say(
        "\n".join(
            [
                "",
                f"Console       {connection['signInUrl']}",
                "              (one-time link; run `workspace sign-in` for another)",
                f"API           {connection['baseUrl']}",
                f"Documentation {connection['docsUrl']}",
                f"Temporal UI   {connection['temporalUiUrl'] or '(unknown)'}",
                f"Workspace     {connection['workspaceId']}",
                # The key has all scopes, and output ends up in logs.
                f"API key       apiKey in {state.connection}",
                "",
                f"As JSON: {state.connection}. Logs: {state.logs}. Ctrl-C to stop.",
                "",
            ]
        )
    )
    if has_screen():
        await asyncio.to_thread(webbrowser.open, connection["signInUrl"])
    await platform.worker_is_ready()
    await asyncio.Event().wait()


def has_screen() -> bool:
    """True for a person at a terminal of a machine that can show a browser's window."""
    if not sys.stdout.isatty() or os.environ.get("WORKSPACE_OPEN_BROWSER") == "0":
        return False
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def _stop_on_signals(platform: Platform) -> asyncio.Event:
    """Set by the first signal; the second one ends all children at once."""
    stopping = asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            platform.kill()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    return stopping


STOP_ORDER = ("worker", "api", "migrate", "temporal", "postgres")
_HEARTBEAT_SECONDS = 10
_EXTERNAL_SECONDS = 30
LOOPBACK_ALLOWED = ("127.0.0.0/8", "::1", "localhost")
"""Private hosts that the embedded platform may call by default."""
_MARGIN_SECONDS = 5
"""Past the time a process gives itself to stop, until it is killed."""


async def _always() -> bool:
    return True


async def together(*works: Coroutine[Any, Any, Any]) -> None:
    """Do works side by side; the first StartError ends the others and is raised itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as group:
        refused, others = group.split(StartError)
        if refused is None or others is not None:
            raise
        raise refused.exceptions[0] from None


_VERSIONS = Path(models.migrations.__file__).with_name("versions")


def is_schema_current(url: str) -> bool:
    """True when the schema is this build's; False, too, for a database that cannot be asked."""
    newest = max(path.name for path in _VERSIONS.glob("[0-9]*.py"))
    with suppress(psycopg.Error), psycopg.connect(url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return row is not None and newest.startswith(f"{row[0]}_")
    return False
