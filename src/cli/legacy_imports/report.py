"""What a run has come to, in words."""

from typing import Any

from rich.console import Console

_SHOWN = 20


def tell(console: Console, run: dict[str, Any], base_url: str) -> None:
    """Print a run: its state, and of each workspace the counts, warnings and errors."""
    _line(console, f"Legacy import {run['id']} is {run['status'].replace('_', ' ')}.")
    for one in run["workspaces"]:
        chosen = "" if one["selected"] else ", not selected"
        _line(console, f"  {one['sourceName']} ({one['id']}): {one['stage']}{chosen}")
        _line(console, f"    {_numbers(one['counts']) or 'nothing yet'}")
        if "lastError" in one:
            _line(console, f"    failed: {one['lastError']}")
        if one["rollbackState"] != "none":
            _line(console, f"    rollback: {one['rollbackState']}")
        _listed(console, "error", one["errors"])
        _listed(console, "warning", one["warnings"])
    of_workspaces = {f"{one['sourceName']}: {error}" for one in run["workspaces"]
                     for error in one["errors"]}  # fmt: skip
    _listed(console, "error", [one for one in run["errors"] if one not in of_workspaces])
    _listed(console, "warning", run["warnings"])
    _line(console, f"Its page: {base_url}{run['pageUrl']}")
    if following := _NEXT.get(run["status"]):
        _line(console, f"Next: workspace legacy-import {following.format(run['id'])}")


_NEXT = {
    "awaiting_review": "approve {0}",
    "approved": "start {0}",
    "completed": "rollback {0} --reason WHY, within 30 days, to take it back",
    "completed_with_warnings": "rollback {0} --reason WHY, within 30 days, to take it back",
}


def _numbers(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts.items())


def _listed(console: Console, what: str, notes: list[str]) -> None:
    for note in notes[:_SHOWN]:
        _line(console, f"    {what}: {note}")
    if len(notes) > _SHOWN:
        _line(console, f"    and {len(notes) - _SHOWN} more {what}s, on its page")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
