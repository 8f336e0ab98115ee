"""What `workspace legacy-import` says, and that it has a command for each decision."""

import io
import json
import re
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.client.import_commands import legacy_import
from cli.client.legacy_import_calls import print_run
from cli.commands import app
from tests.architecture.source import ROOT

RUN, ENTRY = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f", "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e60"
OPERATIONS = {
    "/approve": "approve",
    "/cancel": "cancel",
    "/start": "start",
    "/dry-run": "check",
    "/release": "release",
    "/rollback": "rollback",
    "/workspaces/{entryId}": "select",
    "/workspaces/{entryId}/retry": "retry",
}


def _told(status: str, **entry: Any) -> str:
    workspace = {
        "id": ENTRY,
        "sourceName": "Old",
        "selected": True,
        "stage": "ready",
        "lifecycleState": "pending",
        "rollbackState": "none",
        "counts": {"time_entry": 1_200},
        "errors": [],
        "warnings": [],
        **entry,
    }
    run = {"id": RUN, "status": status, "workspaces": [workspace], "pageUrl": "/p"}
    run |= {"errors": [], "warnings": [], "rollbackUntil": "2026-01-31T00:00:00.000Z"}
    file = io.StringIO()
    print_run(Console(file=file, highlight=False), run, "http://here")
    return file.getvalue()


@pytest.mark.parametrize(
    ("status", "entry", "following"),
    [
        ("awaiting_review", {}, f"approve {RUN}"),
        ("awaiting_review", {"stage": "blocked"}, f"select {RUN} {ENTRY} --skip"),
        ("approved", {}, f"start {RUN}"),
        ("completed", {"stage": "done"}, f"rollback {RUN} --reason REASON, to undo"),
        ("failed", {"stage": "failed", "lastError": "x"}, f"retry {RUN} {ENTRY}"),
        ("rolled_back", {"rollbackState": "partial"}, f"rollback {RUN} --reason REASON --force"),
        ("cancelled", {"lifecycleState": "hidden"}, f"release {RUN}"),
    ],
)
def test_a_run_says_which_command_comes_next(
    status: str, entry: dict[str, Any], following: str
) -> None:
    said = _told(status, **entry)
    (line,) = [one for one in said.splitlines() if one.startswith("Next: ")]
    assert line.startswith(f"Next: workspace legacy-import {following}")
    assert "time entry: 1,200" in said


def test_each_decision_about_a_run_has_a_command() -> None:
    paths = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))["paths"]
    of_run = re.compile(r"/v1/admin/legacy-imports/\{runId\}(/.*)")
    decisions = {
        found[1]
        for path, operations in paths.items()
        if (found := of_run.fullmatch(path)) and operations.keys() & {"post", "patch"}
    }
    assert decisions == OPERATIONS.keys()
    commands = {one.name or getattr(one.callback, "__name__", "")
                for one in legacy_import.registered_commands}  # fmt: skip
    assert set(OPERATIONS.values()) <= commands


def test_a_workspace_goes_to_one_place() -> None:
    both = ["legacy-import", "select", RUN, "Old", "--into", ENTRY, "--new"]
    assert CliRunner().invoke(app, both).exit_code == 2
