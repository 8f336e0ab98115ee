"""The supervisor with real processes of a few lines each."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import psutil
import psycopg
import pytest
from rich.console import Console

import runtime.processes.exit_codes
from cli.console import StartError
from cli.supervisor.platform import is_schema_current
from cli.supervisor.servers import EmbeddedPostgres, temporal_service
from cli.supervisor.state import StateDir, choose_port, read_object, write_private
from cli.supervisor.supervisor import Child, Service, Status, Supervisor, clear_strays
from runtime.processes.exit_codes import OUT_OF_MEMORY, PREDECESSOR
from tests.support.patience import ENOUGH
from tests.support.postgres import migrated_database

STAY = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)\n" + STAY
)

PARENT = (
    "import subprocess, sys\n"
    f"print(subprocess.Popen([sys.executable, '-c', {STAY!r}]).pid, flush=True)"
)

LISTENER = """
import socket, threading, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
memory = bytearray(200_000_000)
for _ in range(40):
    threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)]).start()
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""
"""A server whose threads and memory take the kernel a while to end."""


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    directory = StateDir(tmp_path / "state")
    directory.prepare()
    return directory


@pytest.fixture
def shown() -> StringIO:
    return StringIO()


@pytest.fixture
async def supervisor(state: StateDir, shown: StringIO) -> AsyncIterator[Supervisor]:
    running = Supervisor(state, Status(Console(file=shown)))
    yield running
    running.kill()
    await running.stop(sorted(path.stem for path in state.pids.glob("*.json")))


async def at_once() -> bool:
    return True


def service(
    name: str,
    code: str = STAY,
    *,
    is_ready: Callable[[], Awaitable[bool]] = at_once,
    needs: tuple[str, ...] = (),
    stop_seconds: float = 5,
) -> Service:
    return Service(
        name=name,
        command=[sys.executable, "-c", code],
        environment=os.environ,
        is_ready=is_ready,
        needs=needs,
        stop_seconds=stop_seconds,
    )


def pid_of(state: StateDir, name: str) -> int:
    return int(read_object(state.pids / f"{name}.json").get("pid", 0))


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(int(ENOUGH / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not happen in time")


async def replaced(state: StateDir, name: str, pid: int) -> int:
    await eventually(lambda: pid_of(state, name) not in {0, pid})
    return pid_of(state, name)


async def test_a_killed_child_comes_back(supervisor: Supervisor, state: StateDir) -> None:
    await supervisor.start(service("a"))
    pid = pid_of(state, "a")
    os.kill(pid, signal.SIGKILL)
    assert psutil.pid_exists(await replaced(state, "a", pid))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_child_gets_the_exit_code_of_the_one_before_it(
    supervisor: Supervisor, state: StateDir, number: signal.Signals
) -> None:
    code = f"import os; print(os.environ['{PREDECESSOR}'], flush=True)\n{STAY}"
    await supervisor.start(service("a", code))
    await eventually(lambda: state.log("a").read_text().split() == ["0"])
    os.kill(pid_of(state, "a"), number)
    await eventually(lambda: state.log("a").read_text().split() == ["0", str(-number.value)])


async def test_a_child_learns_that_the_kernel_ended_the_one_before_it_for_its_memory(
    supervisor: Supervisor,
    state: StateDir,
    shown: StringIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = tmp_path / "vmstat"
    counters.write_text("oom_kill 3\n")
    monkeypatch.setattr(runtime.processes.exit_codes, "COUNTERS", counters)
    code = f"import os; print(os.environ['{PREDECESSOR}'], flush=True)\n{STAY}"
    await supervisor.start(service("a", code))
    await eventually(lambda: state.log("a").read_text().split() == ["0"])
    counters.write_text("oom_kill 4\n")
    os.kill(pid_of(state, "a"), signal.SIGKILL)
    await eventually(lambda: state.log("a").read_text().split() == ["0", str(OUT_OF_MEMORY)])
    assert "ended: out of memory" in shown.getvalue()


async def test_a_child_comes_back_though_it_could_not_be_started(
    supervisor: Supervisor, state: StateDir, shown: StringIO
) -> None:
    starts = iter([None, OSError(28, "No space left on device")])

    def before_start() -> None:
        if (refused := next(starts, None)) is not None:
            raise refused

    await supervisor.start(replace(service("a"), before_start=before_start))
    pid = pid_of(state, "a")
    os.kill(pid, signal.SIGKILL)
    assert psutil.pid_exists(await replaced(state, "a", pid))
    assert "No space left" in shown.getvalue()


async def test_the_log_of_a_running_child_is_bounded(
    supervisor: Supervisor, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.supervisor.state._LOG_LIMIT", 10_000)
    monkeypatch.setattr("cli.supervisor.supervisor._PROBE_SECONDS", 0.05)
    talk = "import time\nwhile True: print('x' * 999, flush=True); time.sleep(0.001)"
    await supervisor.start(service("a", talk))
    older = state.log("a").with_name("a.log.1")
    await eventually(older.exists)
    assert older.read_text().splitlines()[-1] == "x" * 999
    assert psutil.pid_exists(pid_of(state, "a"))


async def test_a_child_waits_for_what_it_needs(supervisor: Supervisor, state: StateDir) -> None:
    up = True

    async def is_up() -> bool:
        return up

    await supervisor.start(service("base", is_ready=is_up))
    await supervisor.start(service("user", needs=("base",)))
    base, user = pid_of(state, "base"), pid_of(state, "user")
    up = False
    for pid in (base, user):
        os.kill(pid, signal.SIGKILL)
    await replaced(state, "base", base)
    await asyncio.sleep(0.5)
    assert pid_of(state, "user") in {0, user}
    up = True
    await replaced(state, "user", user)


async def test_children_end_in_the_order_given(
    supervisor: Supervisor, state: StateDir, shown: StringIO
) -> None:
    for name in ("base", "user"):
        await supervisor.start(service(name))
    pids = [pid_of(state, name) for name in ("base", "user")]
    await supervisor.stop(["user", "base"])
    lines = [line.split()[1:3] for line in shown.getvalue().splitlines()[-4:]]
    assert lines == [
        ["user", "stopping"], ["user", "stopped"], ["base", "stopping"], ["base", "stopped"],
    ]  # fmt: skip
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert list(state.pids.iterdir()) == []


def test_only_unexpected_states_are_red() -> None:
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, color_system="standard", width=80)
    red = "\x1b[31m"
    with Status(console) as status:
        for state in ("starting", "ready", "stopping", "stopped", "done"):
            status.set("api", state)
        assert red not in shown.getvalue()
        status.set("api", "died")
        assert red in shown.getvalue()


async def test_a_deaf_child_is_killed_with_all_it_started(
    supervisor: Supervisor, state: StateDir
) -> None:
    await supervisor.start(service("deaf", f"{PARENT}\n{STUBBORN}", stop_seconds=0.3))
    log = state.logs / "deaf.log"
    await eventually(lambda: "deaf" in log.read_text())
    grandchild = int(log.read_text().split()[0])
    await supervisor.stop(["deaf"])
    await eventually(lambda: not psutil.pid_exists(grandchild) or is_zombie(grandchild))


def is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


async def test_a_child_that_ends_at_the_start_shows_its_log(
    supervisor: Supervisor, state: StateDir
) -> None:
    async def never() -> bool:
        return False

    state.log("a").write_text("a line of an earlier start\n")
    broken = service("a", "raise SystemExit('no such setting')", is_ready=never)
    with pytest.raises(StartError, match="no such setting") as told:
        await supervisor.start(replace(broken, damage=lambda: "Its data are damaged.\n"))
    assert str(told.value).startswith("a did not start. Its data are damaged.\n")
    assert "earlier" not in str(told.value)


async def test_a_program_that_is_missing_is_reported(supervisor: Supervisor) -> None:
    missing = Service(name="a", command=["/no/such"], environment={}, is_ready=at_once)
    with pytest.raises(StartError, match="/no/such"):
        await supervisor.start(missing)


@pytest.mark.parametrize(("code", "fails"), [("pass", False), ("raise SystemExit(3)", True)])
async def test_a_one_shot_must_succeed(supervisor: Supervisor, code: str, fails: bool) -> None:
    if fails:
        with pytest.raises(StartError, match="failed"):
            await supervisor.run_once(service("once", code))
    else:
        await supervisor.run_once(service("once", code))


async def test_strays_are_ended_and_strangers_are_not(state: StateDir) -> None:
    stray = await asyncio.create_subprocess_exec(sys.executable, "-c", STAY, start_new_session=True)
    stranger = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STAY, start_new_session=True
    )
    started = psutil.Process(stray.pid).create_time()
    record = {"startedAt": started, "straySignal": int(signal.SIGTERM)}
    write_private(state.pids / "api.json", record | {"pid": stray.pid})
    # The number of a process that has ended was given to another one.
    write_private(state.pids / "worker.json", record | {"pid": stranger.pid, "startedAt": 1.0})
    write_private(state.pids / "temporal.json", record | {"pid": 2**22 + 1})
    assert await asyncio.to_thread(clear_strays, state) == ["api"]
    assert await stray.wait() == -signal.SIGTERM
    assert stranger.returncode is None
    assert list(state.pids.iterdir()) == []
    stranger.kill()
    await stranger.wait()


async def test_strays_that_are_deaf_or_slow_cost_no_more_than_the_slowest_of_them(
    state: StateDir,
) -> None:
    slow = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(1), sys.exit()))\n"
    codes = {"a": STUBBORN, "b": STUBBORN, "c": f"{slow}print('deaf', flush=True)\n{STAY}"}
    running = []
    for name, code in codes.items():
        made = service(name, code)
        if name == "c":
            made = replace(made, stray_signal=signal.SIGTERM)
        running.append(await Child.start(made, state))
    await eventually(lambda: all("deaf" in state.log(name).read_text() for name in codes))
    began = time.monotonic()
    assert await asyncio.to_thread(clear_strays, state, ENOUGH) == ["a", "b", "c"]
    assert time.monotonic() - began < ENOUGH, "somebody was waited for in vain"
    codes_of_ends = [await child.wait() for child in running]
    assert codes_of_ends == [-signal.SIGKILL, -signal.SIGKILL, 0]


@pytest.mark.long
async def test_ports_of_a_stray_are_free_once_it_was_cleared(state: StateDir) -> None:
    for _ in range(3):
        stray = await Child.start(service("api", LISTENER), state)
        await eventually(lambda: state.log("api").read_text().endswith("\n"))
        port = int(state.log("api").read_text())
        assert await asyncio.to_thread(clear_strays, state) == ["api"]
        assert choose_port(0, port, "--port") == port
        await stray.wait()


async def test_a_child_that_is_killed_again_and_again_comes_back_at_once(
    supervisor: Supervisor, state: StateDir, shown: StringIO
) -> None:
    await supervisor.start(service("a"))
    for _ in range(5):
        pid = pid_of(state, "a")
        os.kill(pid, signal.SIGKILL)
        await replaced(state, "a", pid)
    assert shown.getvalue().count("restarting in 0.1 s") == 5


async def test_a_child_that_ends_by_itself_again_and_again_is_given_time(
    supervisor: Supervisor, shown: StringIO
) -> None:
    await supervisor.start(service("a", "raise SystemExit(1)"))
    await eventually(lambda: "restarting in 0.8 s" in shown.getvalue())


@pytest.mark.parametrize("place", [0, 2 * 4096])
def test_a_damaged_database_of_temporal_is_named(state: StateDir, place: int) -> None:
    temporal = temporal_service(
        state, {"temporal": 1, "temporalUi": 2, "temporalHttp": 3, "temporalMetrics": 4}
    )
    assert temporal.damage() == ""
    with closing(sqlite3.connect(state.temporal_database)) as database:
        database.execute("CREATE TABLE one (words TEXT)")
        database.executemany("INSERT INTO one VALUES (?)", [("x" * 1000,)] * 100)
        database.commit()
    assert temporal.damage() == ""
    with state.temporal_database.open("r+b") as file:
        file.seek(place)
        file.write(b"garbage" * 100)
    assert temporal.damage().startswith(f"{state.temporal_database} is damaged (")


@pytest.mark.long
def test_remaining_processes_of_a_server_are_ended_before_another_uses_its_data(
    state: StateDir, tmp_path: Path
) -> None:
    state.postgres_data.mkdir(parents=True)
    program = tmp_path / "postgres"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600"], cwd=state.postgres_data) as left:
        EmbeddedPostgres(state).service().before_start()
        assert left.wait(ENOUGH) in {-signal.SIGQUIT, -signal.SIGKILL}


def test_a_remaining_process_of_a_server_that_cannot_be_ended_stops_the_start(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.postgres_data.mkdir(parents=True)
    monkeypatch.setattr("cli.supervisor.servers.await_end", lambda left, **_: left)
    monkeypatch.setattr("cli.supervisor.servers._processes_in", lambda _: [StubbornBackend()])
    with pytest.raises(StartError, match="Process 7 of an earlier PostgreSQL is still running"):
        EmbeddedPostgres(state).service().before_start()


class StubbornBackend:
    """A process that the kernel does not let go."""

    pid = 7

    def send_signal(self, number: int) -> None:
        """It stays."""


@pytest.mark.parametrize("owner", ["another program", "a zombie", "nobody"])
def test_the_number_of_a_server_stays_only_where_no_process_has_it(
    state: StateDir, owner: str
) -> None:
    state.postgres_data.mkdir(parents=True)
    with subprocess.Popen(["/bin/sleep", "0"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        pid = {"another program": os.getpid(), "a zombie": ended.pid, "nobody": 2**22 + 1}[owner]
        number = state.postgres_data / "postmaster.pid"
        number.write_text(f"{pid}\n{state.postgres_data}\n")
        EmbeddedPostgres(state).service().before_start()
        assert number.exists() is (owner == "nobody")


@pytest.mark.long
def test_a_schema_is_current_when_no_migration_is_left() -> None:
    with migrated_database("schema") as url:
        assert is_schema_current(url)
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0001'")
        assert not is_schema_current(url)
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE alembic_version")
        assert not is_schema_current(url)
    assert not is_schema_current(url), "it is gone"


def test_the_table_of_services_is_the_same_beside_a_line_as_alone() -> None:
    """At a terminal a line above the table prints the table again."""
    shown = StringIO()
    with Status(Console(file=shown, force_terminal=True, color_system=None, width=80)) as status:
        status.set("worker", "ready", "from dumps/[red]old[/].dump")
        status.say("A line with [brackets].")
    tables = [line.split() for line in shown.getvalue().splitlines() if "worker" in line]
    assert "A line with [brackets]." in shown.getvalue()
    assert len(tables) >= 2
    assert all("[green]" not in word for row in tables for word in row)
    assert all("dumps/[red]old[/].dump" in row for row in tables)
