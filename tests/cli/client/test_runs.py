"""Commands for a terminal as a person types them, against a server that listens."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from runtime.configuration.settings import Settings
from tests.support.ageing import make_automation
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.patience import ENOUGH
from tests.support.server import Server, serving
from tests.support.spaces import Space
from tests.support.written_runs import insert_run, node

pytestmark = pytest.mark.takes(seconds=20)

Json = dict[str, Any]
NO_RUN = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """A shell of a person, whose files are below a directory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.profiles = home / ".config/workspace/profiles.toml"

    async def start(self, *words: str, **environment: str) -> asyncio.subprocess.Process:
        clean = {name: value for name, value in os.environ.items() if "WORKSPACE" not in name}
        clean.pop("XDG_CONFIG_HOME", None)
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cli.main", *words),
            cwd=self.home,
            env={**clean, "HOME": str(self.home), **environment},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )

    async def run(self, *words: str, typed: str = "", **environment: str) -> Done:
        """The end of a command that was told `typed`."""
        process = await self.start(*words, **environment)
        out, err = await asyncio.wait_for(process.communicate(typed.encode()), ENOUGH)
        assert process.returncode is not None, "it has ended"
        return Done(process.returncode, out.decode(), err.decode())


@pytest_asyncio.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[Server]:
    async with serving(settings) as running:
        yield running


@pytest_asyncio.fixture
async def shell(tmp_path: Path, server: Server, space: Space) -> Shell:
    """A shell whose profile in use is the workspace of a test."""
    shell = Shell(tmp_path)
    added = await shell.run("profile", "add", "test", f"--url={server.url}", typed=space.token)
    assert added.code == 0, added.err
    return shell


async def started(client: Client, made: Json, **body: Any) -> Json:
    run: Json = read(await client.post(f"{path_of(made)}/run", json=body))
    return run


@pytest.mark.long
async def test_profiles_are_added_used_and_removed(
    shell: Shell, server: Server, space: Space
) -> None:
    assert stat.S_IMODE(shell.profiles.stat().st_mode) == 0o600
    key = {"WORKSPACE_API_KEY": space.token}
    second = await shell.run("profile", "add", "other", f"--url={server.url}/", **key)
    assert second.code == 0, second.err
    listed = await shell.run("profile", "list")
    assert listed.out.splitlines() == [f"* other  {server.url}", f"  test  {server.url}"]
    assert (await shell.run("profile", "use", "test")).code == 0
    assert (await shell.run("profile", "remove", "other")).code == 0
    assert (await shell.run("profile", "list")).out == f"* test  {server.url}\n"
    assert space.token not in listed.out
    gone = await shell.run("runs", "list", "--profile=other")
    assert gone.code == 3
    assert "Profile 'other' not found" in gone.err


async def test_without_a_profile_the_list_says_how_to_add_one(tmp_path: Path) -> None:
    listed = await Shell(tmp_path).run("profile", "list")
    assert (listed.code, listed.out) == (0, "")
    assert listed.err.startswith("No profiles. Add one: workspace profile add")


@pytest.mark.long
async def test_a_key_that_is_none_is_not_kept(tmp_path: Path, server: Server) -> None:
    shell = Shell(tmp_path)
    wrong = await shell.run("profile", "add", "x", f"--url={server.url}", typed="svc_sk_wrong\n")
    assert wrong.code == 1
    assert len(wrong.err.splitlines()) == 1
    assert not shell.profiles.exists()


@pytest.mark.long
async def test_runs_are_listed_by_the_filters_of_the_api(
    shell: Shell, client: Client, space: Space
) -> None:
    made = await publish(client, space, label="Orders \x1b[31m")
    first = await started(client, made, attributes={"order": "A, 1", "by": "web"})
    second = await started(client, made, attributes={"order": "2", "by": "web"})
    listed = await shell.run("runs", "list")
    assert listed.code == 0, listed.err
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert [row[0] for row in rows] == [second["id"], first["id"]]
    assert rows[0][1:4] == ["queued", "Orders  [31m", "manual"], "no escape reaches the terminal"
    assert rows[0][6] == "by:web order:2"
    by_number = await shell.run("runs", "list", "--attribute=order:A, 1", "--attribute=by:web")
    assert [line.split("\t")[0] for line in by_number.out.splitlines()] == [first["id"]]
    none = await shell.run("runs", "list", "--status=failed", "--period=hour")
    assert (none.out, none.err) == ("", "No matching runs.\n")
    none = await shell.run("runs", "list", "--status=failed", "--period=hour", "--json")
    assert none.json == {"runs": [], "cursor": None}
    page = (await shell.run("runs", "list", "--limit=1", "--json")).json
    assert [run["id"] for run in page["runs"]] == [second["id"]]
    assert page["cursor"]


@pytest.mark.long
async def test_a_run_is_shown_with_its_nodes(shell: Shell, space: Space) -> None:
    version = await make_automation(space)
    nodes = [
        node("pay", 0, status="failed", error="Declined.\x1b[2J", error_code="declined"),
        node("ask", 1),
    ]
    values = {"status": "failed", "error": "pay: Declined.", "attributes": {"order": "7"}}
    run_id = await insert_run(space, version, 0, nodes, **values)
    shown = await shell.run("runs", "show", run_id)
    assert shown.code == 0, shown.err
    assert "error       pay: Declined." in shown.out
    assert "· order     7" in shown.out
    assert "pay\tfailed\ttransform\t1\t0.5 s\tDeclined. [2J" in shown.out
    whole = (await shell.run("runs", "show", run_id, "--json")).json
    assert [one["nodeId"] for one in whole["nodeRuns"]] == ["pay", "ask"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "code"), [("succeeded", 0), ("failed", 1), ("timed_out", 1), ("cancelled", 2)]
)
async def test_the_exit_code_of_watch_tells_the_end(
    shell: Shell, space: Space, status: str, code: int
) -> None:
    version = await make_automation(space)
    run_id = await insert_run(space, version, 0, [node("a", 0)], status=status)
    watched = await shell.run("runs", "watch", run_id)
    assert watched.code == code, watched.err
    assert watched.out.rstrip().endswith(status.replace("_", " "))


@pytest.mark.long
async def test_a_run_is_watched_until_it_ends_and_run_again(
    shell: Shell, client: Client, space: Space
) -> None:
    made = await publish(client, space)
    run = await started(client, made)
    process = await shell.start("runs", "watch", run["id"], "--json")
    assert process.stdout is not None
    first = json.loads(await asyncio.wait_for(process.stdout.readline(), ENOUGH))
    assert first["run"]["status"] == "queued"
    cancelled = await shell.run("runs", "cancel", run["id"])
    assert (cancelled.code, cancelled.out) == (0, "cancelled\n")
    assert await asyncio.wait_for(process.wait(), ENOUGH) == 2
    again = await shell.run("runs", "retry", run["id"], "--from=start", "--version=published")
    assert again.code == 0, again.err
    new = read(await client.get(f"/v1/runs/{again.out.strip()}"))["run"]
    assert (new["replayOfRunId"], new["source"]) == (run["id"], "replay")
    refused = await shell.run("runs", "retry", again.out.strip())
    assert (refused.code, len(refused.err.splitlines())) == (3, 1)
    assert "is still open" in refused.err


@pytest.mark.long
async def test_two_runs_are_compared(shell: Shell, space: Space) -> None:
    version = await make_automation(space)
    reference = await insert_run(space, version, 0, [node("a", 0)], status="succeeded")
    other = node("a", 0, output={"n": 2})
    run_id = await insert_run(space, version, 1, [other], status="succeeded")
    compared = await shell.run("runs", "compare", run_id)
    assert compared.code == 0, compared.err
    assert compared.out.splitlines()[0].startswith(f"- {reference} succeeded")
    assert "first difference" in compared.out
    assert "    - 1\n    + 2\n" in compared.out
    named = (await shell.run("runs", "compare", reference, run_id, "--json")).json
    assert named["reference"]["id"] == run_id


@pytest.mark.long
async def test_the_page_of_a_run_is_printed(shell: Shell, space: Space, server: Server) -> None:
    run_id = await insert_run(space, await make_automation(space), 0)
    opened = await shell.run("runs", "open", run_id)
    assert (opened.code, opened.out) == (0, f"{server.url}/runs/{run_id}\n")


@pytest.mark.long
async def test_a_refusal_is_one_line_and_an_exit_code(shell: Shell, tmp_path: Path) -> None:
    absent = await shell.run("runs", "show", NO_RUN)
    assert (absent.code, len(absent.err.splitlines())) == (3, 1)
    wrong = await shell.run("runs", "list", "--status=no-such")
    assert (wrong.code, len(wrong.err.splitlines())) == (3, 1)
    nowhere = await shell.run("runs", "list", f"--state-dir={tmp_path}")
    assert (nowhere.code, len(nowhere.err.splitlines())) == (3, 1)
    shell.profiles.write_text("current = ")
    damaged = await shell.run("runs", "list")
    assert damaged.code == 3
    assert "is damaged" in damaged.err


@pytest.mark.long
@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
async def test_a_shell_completes_the_commands(tmp_path: Path, name: str) -> None:
    shell = Shell(tmp_path)
    script = await shell.run("completion", name)
    assert (script.code, "_WORKSPACE_COMPLETE" in script.out) == (0, True)
    asked = {"_WORKSPACE_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    offered = await shell.run(**asked, COMP_WORDS="workspace runs ")
    assert "watch" in offered.out.split()
    assert (await shell.run("completion", "csh")).code == 2
