"""`workspace up` as a person uses it: start, trouble, stop, start again."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import psutil
import pytest

from cli.supervisor.servers import EmbeddedPostgres, temporal_binary
from cli.supervisor.state import StateDir
from runtime.configuration.settings import load_settings
from tests.support.forked import workspace
from tests.support.patience import ENOUGH, promised

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=40)]

CHILDREN = ("postgres", "temporal", "api", "worker")
KEYS = {
    "baseUrl", "docsUrl", "databaseUrl", "temporalAddress", "temporalUiUrl", "workspaceId",
    "apiKey", "sessionToken", "consoleUrl", "signInUrl",
}  # fmt: skip
LONGEST_START = 2.0
"""Seconds of a processor that the API may take until it answers."""
RUN_DAYS = 91
"""A setting that only the environment of `workspace up` has."""
LONGEST_ABSENCE = 5.0
"""Seconds from the death of the API alone until another answers."""


@dataclass
class Up:
    """A supervisor process and its state directory."""

    directory: Path
    process: subprocess.Popen[bytes]
    http: httpx2.Client

    @property
    def connection(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.directory / "connection.json").read_text())
        return found

    def pid(self, name: str) -> int:
        try:
            return int(json.loads((self.directory / "pids" / f"{name}.json").read_text())["pid"])
        except FileNotFoundError:
            return 0

    def get(self, path: str, token: str = "") -> httpx2.Response:
        url = f"{self.connection['baseUrl']}{path}"
        return self.http.get(url, headers={"Authorization": f"Bearer {token}"} if token else {})

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def stop(self) -> int:
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(ENOUGH)

    def end(self) -> None:
        if self.process.poll() is None:
            self.stop()
        self.http.close()


def launch(directory: Path, held: Path | None = None) -> Up:
    """Start a platform and wait until it is ready; the worker is `held` until that file is gone."""
    options = [f"--state-dir={directory}", "--port=0", "--temporal-port=0", "--ui-port=0"]
    output = directory.with_name("output")
    ready = [directory / "connection.json", directory / "worker.heartbeat"]
    for one in ready:
        one.unlink(missing_ok=True)
    variables = {}
    if held is not None:
        ready.pop()
        (held.parent / "sitecustomize.py").write_text(
            "import os, sys, time\n"
            f"while 'worker' in sys.orig_argv and os.path.exists({str(held)!r}): time.sleep(0.05)\n"
        )
        variables["PYTHONPATH"] = os.pathsep.join([str(held.parent), *sys.path])
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "up", *options],
            env=environment() | {"WORKSPACE_RUN_DAYS": str(RUN_DAYS)} | variables,
            stdout=file,
            stderr=file,
        )
    up = Up(directory, process, httpx2.Client(trust_env=False, timeout=ENOUGH))
    eventually(lambda: all(one.exists() for one in ready) or process.poll() is not None)
    if process.poll() is not None:
        pytest.fail(output.read_text())
    return up


def command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a command of ours says, and its exit code."""
    said = environment() | {"COLUMNS": "200"} | variables
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory) / "out", Path(directory) / "err"
        code = workspace(arguments, said, out=out, err=err).wait()
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def environment() -> dict[str, str]:
    ours = ("WORKSPACE_", "TEMPORAL_", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENOUGH
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("it did not happen in time")
        time.sleep(0.05)


def ended(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up") / "state"


@pytest.fixture(scope="module")
def up(directory: Path) -> Iterator[Up]:
    running = launch(directory)
    yield running
    running.end()


@pytest.mark.long
def test_the_reconciler_is_paused_right_after_a_start(up: Up) -> None:
    for option in ("--pause", "--unpause"):
        toggle = ["schedule", "toggle", "-s", "maintenance/reconcile", option, "--reason", "Try"]
        done = subprocess.run(  # our own binary, our own arguments
            [temporal_binary(), *toggle],
            env=os.environ | {"TEMPORAL_ADDRESS": up.connection["temporalAddress"]},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_ready_platform_says_how_to_reach_it(up: Up) -> None:
    found = up.connection
    assert found.keys() == KEYS
    assert stat.S_IMODE((up.directory / "connection.json").stat().st_mode) == 0o600
    assert up.is_ready()
    assert httpx2.get(found["docsUrl"], trust_env=False, timeout=ENOUGH).status_code == 200
    assert httpx2.get(found["temporalUiUrl"], trust_env=False, timeout=ENOUGH).status_code == 200
    for token in (found["apiKey"], found["sessionToken"]):
        answer = up.get(f"/v1/workspaces/{found['workspaceId']}", token)
        assert answer.status_code == 200, answer.text


@pytest.mark.long
def test_a_second_start_beside_it_is_refused(up: Up) -> None:
    second = command("up", f"--state-dir={up.directory}", "--port=0")
    assert second.returncode == 1
    assert "already running" in second.stderr
    assert up.is_ready()


def test_this_machine_may_be_called_but_not_the_platform_itself(up: Up) -> None:
    settings = psutil.Process(up.pid("worker")).environ()
    assert settings["WORKSPACE_OUTBOUND_ALLOW"] == "127.0.0.0/8,::1,localhost"
    own = settings["WORKSPACE_OWN_LISTENERS"].split(",")
    for name in ("baseUrl", "temporalUiUrl", "temporalAddress"):
        assert up.connection[name].rpartition("/")[2] in own
    command_line = psutil.Process(up.pid("temporal")).cmdline()
    chosen = [one.partition("=")[2] for one in command_line if re.match(r"--[a-z-]*port=", one)]
    assert len(chosen) == 4, "frontend, UI, HTTP API and metrics"
    assert {f"127.0.0.1:{port}" for port in chosen} <= {*own}


def test_commands_beside_it_have_the_settings_of_its_processes(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in {*os.environ} - {*environment()}:
        monkeypatch.delenv(variable)
    worker = psutil.Process(up.pid("worker")).environ()
    settings = load_settings(**StateDir(up.directory).running_settings())
    assert settings.run_days == RUN_DAYS
    assert ",".join(settings.outbound_allow) == worker["WORKSPACE_OUTBOUND_ALLOW"]
    assert ",".join(settings.own_listeners) == worker["WORKSPACE_OWN_LISTENERS"]
    assert settings.public_url == up.connection["baseUrl"]
    monkeypatch.setenv("WORKSPACE_RUN_DAYS", "92")
    assert load_settings(**StateDir(up.directory).running_settings()).run_days == 92


@pytest.mark.long
def test_the_doctor_knows_a_running_platform(up: Up, tmp_path: Path) -> None:
    found = command("doctor", f"--state-dir={up.directory}")
    assert found.returncode == 0, found.stdout + found.stderr
    assert re.search(rf"ok +Platform +ready at {up.connection['baseUrl']}", found.stdout)
    subjects = [
        *("PostgreSQL", "Schema", "Secret key", "Object store", "Temporal", "Search attributes"),
        *("Workers", "Identity provider"),
    ]
    for subject in subjects:
        assert re.search(rf"^ok +{subject} ", found.stdout, re.MULTILINE)
    assert re.search(r"^warning +Mail server +not configured", found.stdout, re.MULTILINE)
    as_json = json.loads(command("doctor", "--json", f"--state-dir={up.directory}").stdout)
    assert as_json["ok"]
    assert {*subjects} < {check["subject"] for check in as_json["checks"]}
    wrong = command(
        "doctor", f"--state-dir={up.directory}", WORKSPACE_SECRET_KEY="another key " * 4
    )
    assert wrong.returncode == 1
    assert re.search(r"^failure +Secret key ", wrong.stdout, re.MULTILINE)
    nothing = command("doctor", f"--state-dir={tmp_path}")
    assert nothing.returncode == 1
    assert f"No platform is running in {tmp_path}" in nothing.stderr


def test_the_status_says_where_a_platform_is(up: Up, tmp_path: Path) -> None:
    shown = command("status", f"--state-dir={up.directory}")
    assert shown.returncode == 0, shown.stderr
    for text in ("Running in", up.connection["baseUrl"], up.connection["consoleUrl"], "worker"):
        assert text in shown.stdout
    assert up.connection["apiKey"] not in shown.stdout
    as_json = json.loads(command("status", "--json", f"--state-dir={up.directory}").stdout)
    assert (as_json["running"], as_json["ready"]) == (True, True)
    assert as_json["services"]["worker"] == up.pid("worker")
    for name in ("status", "stop"):
        nothing = command(name, f"--state-dir={tmp_path}")
        assert f"Not running in {tmp_path}" in nothing.stdout
        assert nothing.returncode == (1 if name == "status" else 0)


def test_the_sample_shop_is_created_in_a_running_platform(up: Up, tmp_path: Path) -> None:
    filled = command("demo", f"--into={up.directory}")
    assert filled.returncode == 0, filled.stderr
    workspace = up.connection["workspaceId"]
    assert f"workspaces/{workspace}" in filled.stdout
    items = up.get(f"/v1/items?workspaceId={workspace}", up.connection["apiKey"]).json()["data"]
    assert {"Orders", "Send the invoice", "Refund a customer"} <= {
        one["title"] for one in items["items"]
    }
    nowhere = command("demo", f"--into={tmp_path}")
    assert (nowhere.returncode, "No platform is running" in nowhere.stderr) == (1, True)


def test_a_session_opens_the_platform_that_made_it(up: Up, tmp_path: Path) -> None:
    made = command("session", "owner@localhost", f"--state-dir={up.directory}")
    path = f"/v1/workspaces/{up.connection['workspaceId']}"
    assert up.get(path, made.stdout.strip()).status_code == 200
    refused = command("session", "owner@localhost", f"--state-dir={tmp_path}")
    assert refused.returncode == 1
    assert "has no session key" in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_file_is_imported_refreshed_and_reverted(up: Up, tmp_path: Path) -> None:
    here = f"--state-dir={up.directory}"
    goods = tmp_path / "goods.csv"
    goods.write_text("code,price\na,1\nb,2\n")
    imported = command("import", str(goods), "--new", "Goods", here)
    assert imported.returncode == 0, imported.stderr
    assert "Imported 2 records of 2 fields into Goods" in imported.stdout
    assert "2 rows, 19 B, " in imported.stdout
    database = re.search(r"database ([0-9a-f-]{36})", imported.stdout)
    assert database is not None
    goods.write_text("code,price\nb,3\nc,4\n")
    again = command("import", str(goods), "--database", database[1], "--key", "title", here)
    assert "1 inserted, 1 updated." in again.stdout, again.stderr
    run = re.search(r"--undo (\S+)", again.stdout)
    assert run is not None
    undone = command("import", "--undo", run[1], here)
    assert (undone.returncode, undone.stdout) == (0, "Undone: 2 records.\n")
    twice = command("import", "--undo", run[1], here)
    assert twice.stdout == undone.stdout, "once is enough"
    unknown = command("import", str(goods), "--database", "nonsense", here)
    assert unknown.returncode == 1
    assert unknown.stderr == "The database does not exist, or you do not have access to it.\n"
    assert command("refresh", "nonsense", here).returncode == 1


@pytest.mark.long
def test_a_refresh_tells_its_counts_or_why_it_failed(up: Up) -> None:
    here, path = f"--state-dir={up.directory}", f"/v1/workspaces/{up.connection['workspaceId']}"
    with httpx2.Client(
        base_url=up.connection["baseUrl"],
        headers={"Authorization": f"Bearer {up.connection['apiKey']}"},
        trust_env=False,
        timeout=ENOUGH,
    ) as http:
        rows = b"code\na\nb\n"
        stored = http.post(f"{path}/files?name=rows.csv", content=rows).json()["data"]
        config = {"fileId": stored["fileId"], "format": "csv"}
        body = {"label": "Rows", "kind": "file", "config": config}
        source = http.post(f"{path}/data-sources", json=body).json()["data"]["id"]
        refreshed = command("refresh", source, here)
        assert refreshed.returncode == 0, refreshed.stderr
        assert "2 rows, 9 B, " in refreshed.stdout
        changed = {"config": {**config, "format": "xlsx"}}
        http.patch(f"{path}/data-sources/{source}", json=changed).raise_for_status()
    failed = command("refresh", source, here)
    assert failed.returncode == 1
    assert "The file is not a workbook" in failed.stderr
    assert "/data-source-runs/" in failed.stderr


def test_everything_listens_on_loopback(up: Up) -> None:
    pids = {up.pid(name) for name in CHILDREN}
    listening = [
        connection.laddr.ip
        for connection in psutil.net_connections("inet")
        if connection.pid in pids and connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}


@pytest.mark.long
def test_every_child_killed_at_once_comes_back(up: Up) -> None:
    before = {name: up.pid(name) for name in CHILDREN}
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: all(up.pid(name) not in {0, pid} for name, pid in before.items()))
    eventually(up.is_ready)
    assert up.process.poll() is None
    used = psutil.Process(up.pid("api")).cpu_times()
    assert used.user + used.system < promised(LONGEST_START)


def answers_anew(up: Up, pids: Collection[int]) -> bool:
    return up.pid("api") not in pids and up.is_ready()


@pytest.mark.long
def test_the_api_answers_again_soon_after_it_was_killed(up: Up) -> None:
    for _ in range(3):
        pids = {0, up.pid("api")}
        os.kill(max(pids), signal.SIGKILL)
        killed = time.monotonic()
        eventually(partial(answers_anew, up, pids))
        assert time.monotonic() - killed < promised(LONGEST_ABSENCE)


@contextmanager
def foreign_lock(directory: Path) -> Iterator[None]:
    """The process id in the lock of PostgreSQL's socket belongs to another program by now."""
    state = StateDir(directory)
    owner = state.postgres_data.stat().st_uid
    stranger = subprocess.Popen(["/bin/sleep", "600"], user=owner if os.geteuid() == 0 else None)
    sockets = parse_qs(urlsplit(EmbeddedPostgres(state).url()).query)["host"][0]
    lock = Path(sockets, ".s.PGSQL.5432.lock")
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
    yield
    stranger.kill()
    stranger.wait()


def test_a_link_signs_the_owner_in(up: Up, directory: Path) -> None:
    page = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    printed = command("sign-in", f"--state-dir={directory}").stdout.strip()
    assert printed.startswith(f"{up.connection['consoleUrl']}sign-in/")
    # The one of the start works beside it.
    assert up.http.get(up.connection["signInUrl"], headers=page).status_code == 200
    with httpx2.Client(trust_env=False, timeout=ENOUGH) as browser:
        assert "Sign in as " in browser.get(printed, headers=page).text
        assert browser.post(printed, headers=page).headers["location"] == "/"
        start = browser.get(up.connection["consoleUrl"], headers=page)
        assert start.headers["location"] == f"/workspaces/{up.connection['workspaceId']}"
    nowhere = command("sign-in", f"--state-dir={directory}-gone")
    assert nowhere.returncode == 1
    assert "No platform is running in" in nowhere.stderr


@pytest.mark.long
def test_a_start_clears_up_and_continues_and_a_stop_leaves_nothing(
    up: Up, directory: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    before = up.connection
    strays = [up.pid(name) for name in CHILDREN]
    up.process.kill()
    up.process.wait()
    alive = not any(ended(pid) for pid in strays)
    os.kill(up.pid("postgres"), signal.SIGKILL)
    held = tmp_path / "held"
    held.touch()
    with foreign_lock(directory):
        again = launch(directory, held)
    request.addfinalizer(again.end)
    assert alive, "the children went on without their supervisor"
    assert all(ended(pid) for pid in strays)
    assert again.is_ready()
    same = KEYS - {"sessionToken", "signInUrl"}
    assert {key: again.connection[key] for key in same} == {key: before[key] for key in same}
    # All that needs no worker is there before it is.
    assert "The worker is starting." in directory.with_name("output").read_text()
    assert not (directory / "worker.heartbeat").exists()
    held.unlink()
    eventually((directory / "worker.heartbeat").exists)
    pids = [again.pid(name) for name in CHILDREN]
    assert again.stop() == 0
    assert all(ended(pid) for pid in pids)
    assert not (directory / "connection.json").exists()


@pytest.mark.long
def test_a_platform_that_cannot_start_says_why(tmp_path: Path) -> None:
    options = [f"--state-dir={tmp_path / 'state'}", "--port=0", "--temporal-port=0", "--ui-port=0"]
    result = command("up", *options, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert result.returncode == 1
    assert "migrate failed" in result.stderr
    assert "The database at DATABASE_URL cannot be used" in result.stderr
    assert "Traceback" not in result.stderr
