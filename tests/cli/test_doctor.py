"""`workspace doctor`: each check sees what it is about, and says how to mend it."""

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from pydantic import SecretStr
from temporalio.client import Client as TemporalClient
from typer.testing import CliRunner

import cli.deploy.deployment
import cli.doctor
from cli.commands import app
from cli.deploy.deployment import BuildOverview, Deployment, State
from cli.doctor import print_findings
from cli.doctor_checks import (
    Finding,
    Status,
    check_disks,
    check_identity_provider,
    check_mail,
    check_object_store,
    check_secret_key,
    judged_workers,
)
from cli.polling import may_be_dead, still_alive
from models.core.secret_keys import register_keys
from models.workspace.system import WorkerBody
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.temporal.workflow_kinds import Queue
from tests.support.identity_provider import CLIENT_ID, identity_provider
from tests.support.post_office import SENDER, open_post_office
from tests.support.postgres import migrated_database

OLD, NEW = (f"{name} secret key that is long enough" for name in ("one", "two"))
GIB = 1024**3
HOST = socket.gethostname()


def settings_with(settings: Settings, **changes: Any) -> Settings:
    """The settings with others in their place; what was read from them before is forgotten."""
    changed = settings.model_copy(update=changes)
    for name in ("secret_keys", "mail"):
        changed.__dict__.pop(name, None)
    return changed


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def url() -> Iterator[str]:
    with migrated_database("doctor") as url:
        yield url


@pytest.mark.long
@pytest.mark.parametrize(
    ("known", "configured", "status", "words"),
    [
        ([], [NEW], Status.OK, "key"),
        ([[OLD]], [OLD], Status.OK, "key"),
        ([[OLD]], [NEW], Status.FAILURE, "WORKSPACE_SECRET_KEY"),
        ([[OLD], [NEW, OLD]], [OLD], Status.FAILURE, "WORKSPACE_SECRET_KEY"),
        ([[OLD]], [NEW, OLD], Status.WARNING, "restart"),
        ([[OLD], [NEW, OLD]], [NEW, OLD], Status.WARNING, "workspace rotate-secret"),
        ([[OLD], [NEW, OLD], [NEW]], [NEW], Status.OK, "key"),
    ],
)
async def test_it_sees_keys_that_are_not_those_of_the_database(
    settings: Settings,
    url: str,
    known: list[list[str]],
    configured: list[str],
    status: Status,
    words: str,
) -> None:
    database = Database(url)
    for secrets in known:
        async with database.transaction() as work:
            await register_keys(work, KeyRing(secrets))
    await database.close()
    secret = SecretStr(",".join(configured))
    here = settings_with(settings, database_url=SecretStr(url), secret_key=secret)
    found = await check_secret_key(here)
    assert (found.status, words in f"{found.fact} {found.remedy}") == (status, True)


@pytest.mark.long
async def test_it_reads_what_the_identity_provider_publishes(
    settings: Settings, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text('{"keys": []}')
    with identity_provider() as provider:
        parts = {
            "oidc_issuer": provider.issuer,
            "oidc_audience": "workspace",
            "oidc_jwks": f"{provider.issuer}/jwks",
            "oidc_client_id": CLIENT_ID,
        }
        cases: list[tuple[Mapping[str, Any], Status, str]] = [
            ({}, Status.OK, provider.issuer),
            ({"oidc_issuer": None}, Status.WARNING, "not configured"),
            ({"oidc_client_id": None}, Status.WARNING, "session tokens only"),
            ({"oidc_issuer": f"{provider.issuer}/other"}, Status.FAILURE, "discovery document"),
            ({"oidc_jwks": f"{provider.issuer}/no"}, Status.FAILURE, "no key set"),
            ({"oidc_jwks": str(empty)}, Status.FAILURE, "has no keys"),
            ({"oidc_jwks": str(tmp_path / "gone")}, Status.FAILURE, "no key set"),
        ]
        for changes, status, words in cases:
            found = await check_identity_provider(settings_with(settings, **{**parts, **changes}))
            assert (found.status, words in found.fact) == (status, True), found
        provider.down = True
        found = await check_identity_provider(settings_with(settings, **parts))
        assert found.status is Status.FAILURE
    found = await check_identity_provider(settings)
    assert (found.status, found.fact) == (Status.OK, "the local one of `workspace up`")


async def test_it_greets_the_mail_server(settings: Settings) -> None:
    def with_mail(port: int, user: str = "", allow: tuple[str, ...] = ("127.0.0.0/8",)) -> Settings:
        smtp = SecretStr(f"smtp://{user}127.0.0.1:{port}?starttls=off")
        return settings_with(settings, smtp_url=smtp, smtp_from=SENDER, outbound_allow=allow)

    assert (await check_mail(settings)).status is Status.WARNING
    async with open_post_office() as post:
        found = await check_mail(with_mail(post.port))
        assert (found.status, found.fact) == (
            Status.OK,
            f"127.0.0.1:{post.port}, from {SENDER}",
        )
        assert post.mails == []
        forbidden = await check_mail(with_mail(post.port, allow=()))
        assert forbidden.status is Status.FAILURE
        assert "WORKSPACE_OUTBOUND_ALLOW" in str(forbidden.remedy)
        refused = await check_mail(with_mail(post.port, user="ada:secret-of-ada@"))
        assert refused.status is Status.FAILURE
        assert "secret-of-ada" not in f"{refused.fact} {refused.remedy}"
    gone = await check_mail(with_mail(free_port()))
    assert gone.status is Status.FAILURE


@pytest.mark.parametrize(
    ("free", "total", "status"),
    [
        (50 * GIB, 100 * GIB, Status.OK),
        # A large disk has room although it is nearly full, a small one has little although not.
        (5 * GIB, 1000 * GIB, Status.OK),
        (GIB, 2 * GIB, Status.OK),
        (GIB, 100 * GIB, Status.WARNING),
        (GIB // 8, 100 * GIB, Status.FAILURE),
        (0, GIB, Status.FAILURE),
    ],
)
async def test_it_sees_full_disks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, free: int, total: int, status: Status
) -> None:
    usage = SimpleNamespace(total=total, used=total - free, free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    found = await check_disks(settings)
    assert found.status is status
    assert "state directory" in found.fact
    assert "object store" in found.fact


def process(pid: int, *, alive: bool) -> WorkerBody:
    seen = utc_now() - timedelta(seconds=1 if alive else 60)
    return WorkerBody(
        id=uuid4(), host="host", pid=pid, queues=[*Queue], alive=alive, started_at=seen,
        seen_at=seen,
    )  # fmt: skip


def build(*workers: str) -> BuildOverview:
    return BuildOverview("b1", State.CURRENT, 100, 0, 0, workers, [] if workers else [*Queue])


@pytest.mark.parametrize(
    ("processes", "row", "status", "words"),
    [
        ([process(1, alive=True)], build("1@host"), Status.OK, "1 worker"),
        ([], build(), Status.FAILURE, "0 workers"),
        ([process(1, alive=False)], build(), Status.FAILURE, "1@host last seen at"),
        (
            [process(1, alive=False), process(2, alive=True)],
            build("2@host"),
            Status.WARNING,
            "1@host last seen at",
        ),
        ([process(2, alive=True)], build(), Status.FAILURE, "0 workers"),
    ],
)
def test_a_dead_worker_is_none(
    processes: list[WorkerBody], row: BuildOverview, status: Status, words: str
) -> None:
    found = judged_workers(processes, [row])
    assert (found.status, words in found.fact) == (status, True), found


def beaten(pid: int, host: str, seconds: float) -> WorkerBody:
    seen = utc_now() - timedelta(seconds=seconds)
    return WorkerBody(
        id=uuid4(), host=host, pid=pid, queues=[*Queue], alive=seconds < 20, started_at=seen,
        seen_at=seen,
    )  # fmt: skip


DEAD_PID = 2**22 + 1
"""Greater than any process has on Linux."""


@pytest.mark.parametrize(
    ("pid", "host", "seconds", "suspected"),
    [
        (os.getpid(), HOST, 1, False),
        (DEAD_PID, HOST, 1, True),
        (DEAD_PID, "another-host", 1, False),
        (os.getpid(), HOST, 9, True),
        (DEAD_PID, "another-host", 9, True),
        (DEAD_PID, HOST, 60, False),
    ],
    # A process id in a name would be another one in each test process.
    ids=["alive", "dead", "elsewhere", "silent", "silent-elsewhere", "long-dead"],
)
def test_a_worker_that_just_died_is_not_alive(
    pid: int, host: str, seconds: float, suspected: bool
) -> None:
    """Its row still says so for some seconds; it counts again once it has said something."""
    earlier = beaten(pid, host, seconds)
    assert may_be_dead(earlier) is suspected
    silent = still_alive([earlier], [earlier])
    assert [one.alive for one in silent] == [seconds < 20 and not suspected]
    later = earlier.model_copy(update={"seen_at": utc_now(), "alive": True})
    assert [one.alive for one in still_alive([earlier], [later])] == [True]
    found = judged_workers(silent, [build()])
    assert found.status is Status.FAILURE


async def test_a_poller_that_is_not_alive_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pollers(
        _: TemporalClient, __: Queue, groups: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        return dict.fromkeys(groups, frozenset({"1@host", "2@host"}))

    monkeypatch.setattr(cli.deploy.deployment, "recent_pollers", pollers)
    client = cast("TemporalClient", SimpleNamespace(workflow_service=None))
    workers: Callable[..., Any] = Deployment(client, "workspace", {"2@host"}).workers
    assert await workers(["b1"]) == {"b1": dict.fromkeys(Queue, frozenset({"2@host"}))}
    everybody = await Deployment(client, "workspace").workers(["b1"])
    assert everybody["b1"][Queue.IO] == {"1@host", "2@host"}


def test_words_are_whole_in_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    places = "state directory, object store, PostgreSQL: 12.5 GiB of 100.0 GiB free"
    store = "file:///home/ada/workspace-platform/.state/objects"
    remedy = "set WORKSPACE_OIDC_ISSUER, WORKSPACE_OIDC_AUDIENCE and WORKSPACE_OIDC_JWKS"
    facts = [places, store, "not configured"]
    print_findings(
        [Finding("Disks", places), Finding("Object store", store),
         Finding("Identity provider", "not configured", remedy, is_warning=True)]
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert set(" ".join([*facts, "Fix:", remedy]).split()) <= set(shown.split())


def test_logs_are_no_part_of_its_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "objects").touch()
    monkeypatch.setattr(cli.doctor, "_CHECKS", [check_object_store])
    for name, value in {
        "DATABASE_URL": "postgresql:///none",
        "WORKSPACE_SECRET_KEY": OLD,
        "WORKSPACE_OBJECT_STORE": (tmp_path / "objects").as_uri(),
    }.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["doctor", "--json", f"--state-dir={tmp_path}"])
    assert [one["status"] for one in json.loads(done.stdout)["checks"]] == ["ok", "failure"]
    assert "Not a directory" in done.stderr or "File exists" in done.stderr


def test_a_remedy_makes_a_failure() -> None:
    assert Finding("A", "b").status is Status.OK
    assert Finding("A", "b", "c").status is Status.FAILURE
    assert Finding("A", "b", "c", is_warning=True).status is Status.WARNING
