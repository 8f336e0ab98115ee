"""The outcome of a run, in words."""

from typing import Any

from rich.console import Console

from cli.console import say
from cli.rows.display import in_bytes
from cli.supervisor.errors import StartError

_COUNTS = ("inserted", "updated", "unchanged", "removed", "skipped")


def require_success(run: dict[str, Any], base_url: str) -> None:
    """Raises StartError with why the run failed."""
    if run["status"] == "succeeded":
        return
    reason = run.get("error") or f"It was {run['status']}."
    raise StartError(f"{reason}\nIts page: {base_url}{run['pageUrl']}")


def print_outcome(console: Console, run: dict[str, Any], base_url: str) -> None:
    stats = run["stats"]
    counts = {name: stats[f"rows{name.capitalize()}"] for name in _COUNTS}
    parts = [f"{count:,} {name}" for name, count in counts.items() if count]
    size, seconds = in_bytes(stats["bytesFetched"]), stats["durationMs"] / 1000
    say(console, f"{stats['rowsFetched']:,} rows of {size} in {seconds:.1f} s: "
          f"{', '.join(parts) or 'none of them'}.")  # fmt: skip
    say(console, f"Its page: {base_url}{run['pageUrl']}")
