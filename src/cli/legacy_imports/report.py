"""The state of a run, in words."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from cli.console import say

_SHOWN = 20


def print_run(console: Console, run: dict[str, Any], base_url: str) -> None:
    """Print a run: its state, and of each workspace the counts, warnings and errors."""
    say(console, f"Legacy import {run['id']}: {words_of(run['status'])}.")
    for entry in run["workspaces"]:
        selection = "" if entry["selected"] else ", not selected"
        say(
            console,
            f"  {entry['sourceName']} ({entry['id']}): {words_of(entry['stage'])}{selection}",
        )
        say(console, f"    {_numbers(entry['counts']) or 'no rows'}")
        if "lastError" in entry:
            say(console, f"    failed: {entry['lastError']}")
        if entry["rollbackState"] != "none":
            say(console, f"    rollback: {entry['rollbackState']}")
        _listed(console, "error", entry["errors"])
        _listed(console, "warning", entry["warnings"])
    of_workspaces = {f"{entry['sourceName']}: {error}" for entry in run["workspaces"]
                     for error in entry["errors"]}  # fmt: skip
    _listed(console, "error", [entry for entry in run["errors"] if entry not in of_workspaces])
    _listed(console, "warning", run["warnings"])
    say(console, f"Its page: {base_url}{run['pageUrl']}")
    for following in _next(run):
        say(console, f"Next: workspace legacy-import {following}")


def print_list(console: Console, runs: list[dict[str, Any]]) -> None:
    for run in runs:
        names = ", ".join(entry["sourceName"] for entry in run["workspaces"]) or "no workspace yet"
        say(console, f"{run['id']}  {run['createdAt'][:16]}Z  {words_of(run['status'])}: {names}")
    if not runs:
        say(console, "There are no legacy imports. Next: workspace legacy-import upload BUNDLE")


def _next(run: dict[str, Any]) -> Iterator[str]:
    """The next steps somebody can take now, as the ends of commands."""
    own, status = run["id"], run["status"]
    selected = [entry for entry in run["workspaces"] if entry["selected"]]
    blocked = [entry for entry in selected if entry["stage"] == "blocked"]
    if status == "awaiting_review":
        for entry in blocked[:_SHOWN]:
            yield f"select {own} {entry['id']} --skip, or mend the bundle and upload it again"
        if not blocked and selected:
            yield f"approve {own}"
    elif status == "approved":
        yield f"start {own}"
    for entry in selected[:_SHOWN]:
        if entry["stage"] == "failed" and entry["rollbackState"] == "none":
            yield f"retry {own} {entry['id']}"
        elif entry["rollbackState"] == "partial":
            yield f"rollback {own} --reason WHY --force, to remove what was kept too"
            return
        elif status == "cancelled" and entry["lifecycleState"] == "hidden":
            yield f"release {own}, or rollback {own} --reason WHY"
            return
    if "rollbackUntil" in run and status.startswith("completed"):
        yield f"rollback {own} --reason WHY, until {run['rollbackUntil'][:10]}, to take it back"


def words_of(name: str) -> str:
    return name.replace("_", " ")


def _numbers(counts: dict[str, int]) -> str:
    return ", ".join(f"{words_of(kind)}: {count:,}" for kind, count in counts.items())


def _listed(console: Console, what: str, notes: list[str]) -> None:
    for note in notes[:_SHOWN]:
        say(console, f"    {what}: {note}")
    if len(notes) > _SHOWN:
        say(console, f"    and {len(notes) - _SHOWN} more {what}s, on its page")
