"""How the `workspace` command ends its process."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from typer.testing import CliRunner, Result

from cli.commands import COMMANDS, COMPLETES, EXAMPLES, app, loaded
from models.migrations.runner import current
from tests.support.postgres import migrated_database

MAIN = "import atexit; atexit.register(print, 'finalized'); from cli.main import main; main()"


@pytest.mark.long
@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["fly"], 2)])
def test_a_command_ends_with_its_code_and_all_it_said(arguments: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert "fly" in done.stderr or "Options" in done.stdout


def test_without_a_command_it_prints_its_help() -> None:
    assert "Usage: workspace" in CliRunner().invoke(app, []).output


def test_each_example_of_the_help_is_a_call_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("export.zip", "bundle.zip", "prices.xlsx", "prices.csv"):
        (tmp_path / file).touch()
    for name, examples in EXAMPLES.items():
        for example in examples:
            program, *arguments = shlex.split(example.partition(" >> ")[0])
            assert program == "workspace"
            command: Any = loaded(arguments[0])
            path: list[str] = []
            while arguments and arguments[0] in getattr(command, "commands", {}):
                path.append(arguments.pop(0))
                command = command.commands[path[-1]]
            assert " ".join(path) == name
            named = re.sub(r"\b[A-Z_]{3,}\b", str(UUID(int=7)), "\0".join(arguments))
            command.make_context(name, named.split("\0") if named else [])
        shown = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=80).output
        assert example in shown


@pytest.mark.parametrize(
    "call",
    [
        "replay x", "replay --since 24h", f"replay {UUID(int=7)} --node call", "history x",
        "deploy status", "deploy promote b1", "deploy drain b1 --wait", "doctor", "sign-in",
        "rotate-secret", "quarantine", f"refresh {UUID(int=7)}",
    ],
)  # fmt: skip
def test_commands_that_find_no_platform_say_the_same(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "TEMPORAL_ADDRESS", "WORKSPACE_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, call.split())
    assert f"No platform is running in {tmp_path / '.state'}. Start one with" in done.stderr
    assert done.exit_code == (2 if call.startswith(("replay", "history")) else 1)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_has_the_first_line_of_each_help(name: str) -> None:
    program = loaded(name)
    assert list(program.commands) == [name]
    assert COMMANDS[name][1] == (program.commands[name].help or "").partition("\n\n")[0]


@pytest.mark.long
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fly"], []])
def test_no_command_is_imported_to_list_them(arguments: list[str]) -> None:
    completed = {COMPLETES: "complete_bash", "COMP_WORDS": "workspace r", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cli.main", *arguments],
        env={**os.environ, **({} if arguments else completed)},
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {name for name in imported if name.startswith("cli.")} == {"cli.commands"}
    heavy = {"fastapi", "httpx2", "pydantic", "pydantic_settings", "sqlalchemy", "temporalio"}
    assert not heavy & imported
    assert arguments or done.stdout.split() == [name for name in COMMANDS if name[0] == "r"]


def test_the_lines_of_a_docstring_are_not_those_of_the_help() -> None:
    shown = CliRunner().invoke(app, ["replay", "--help"], terminal_width=80).output
    assert "ends differently, and with 2\n if there is nothing to replay." in re.sub(
        r" +\n", "\n", shown
    )
    assert max(map(len, shown.splitlines())) <= 80


def test_it_prints_its_version() -> None:
    printed = CliRunner().invoke(app, ["--version"])
    assert (printed.exit_code, printed.output) == (0, f"{version('workspace-platform')}\n")


@pytest.mark.long
def test_no_native_thread_meets_an_interpreter_in_its_last_moments() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "--help"], capture_output=True, text=True, check=True
    )
    assert "finalized" not in done.stdout


@pytest.mark.parametrize("email", ["", "ada", "ada@", "@example.com", "Ada <ada@example.com>"])
def test_a_session_is_of_an_address(email: str) -> None:
    refused = CliRunner().invoke(app, ["session", email])
    assert refused.exit_code == 2
    assert "Enter a valid email" in refused.output


@pytest.mark.parametrize("port", ["65536", "-1", "http", "80.5"])
@pytest.mark.parametrize("option", ["--port", "--temporal-port", "--ui-port"])
def test_a_port_is_a_number_that_ports_have(option: str, port: str) -> None:
    refused = CliRunner().invoke(app, ["up", f"{option}={port}"])
    assert refused.exit_code == 2
    assert "Enter a valid port" in refused.output


@pytest.mark.long
def test_a_database_of_another_build_is_refused_in_words_and_stays() -> None:
    with migrated_database("unknown") as url:
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0065'")
        settings = {"DATABASE_URL": url, "WORKSPACE_SECRET_KEY": "k" * 40}
        refused = CliRunner().invoke(app, ["migrate"], env=settings)
        assert refused.exit_code == 1
        assert "revision 0065, which this build does not have" in refused.output
        assert "a new state directory (`--state-dir`)" in refused.output
        assert "Traceback" not in refused.output
        assert current(url) == "0065"


@pytest.mark.long
def test_a_link_signs_a_user_in_to_a_platform_without_a_state_directory(tmp_path: Path) -> None:
    def run(*arguments: str, **variables: str) -> Result:
        options = ["sign-in", *arguments, f"--state-dir={tmp_path}"]
        return CliRunner().invoke(app, options, env={"COLUMNS": "200", **variables})

    with migrated_database("sign_in") as url:
        place = {"DATABASE_URL": url, "WORKSPACE_PUBLIC_URL": "https://workspace.example.com/"}
        made = run("ada@example.com", "--new-workspace", "Acme", **place)
        assert made.exit_code == 0, made.output
        assert re.fullmatch(r"https://workspace\.example\.com/sign-in/[\w-]{43}\n", made.output)
        again = run("ada@example.com", **place)
        assert again.exit_code == 0
        with psycopg.connect(url) as connection:
            rows = connection.execute(
                "SELECT email, workspace.name, role FROM app_user"
                " JOIN workspace_member ON user_id = app_user.id"
                " JOIN workspace ON workspace.id = workspace_id"
            ).fetchall()
        assert rows == [("ada@example.com", "Acme", "owner")]
        for refused, words in (
            (run(**place), "Enter an email"),
            (run("ada@example.com", DATABASE_URL=url), "set DATABASE_URL and WORKSPACE_PUBLIC_URL"),
            (run("ada@example.com", "--new-workspace", "", **place), "--new-workspace"),
        ):
            assert refused.exit_code == 1
            assert words in refused.output
