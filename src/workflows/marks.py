"""The signs of states in what operators read."""

from collections.abc import Mapping

MARKS: Mapping[str, str] = {
    "running": "▶",
    "waiting": "⏸",
    "succeeded": "✔",
    "failed": "✖",
    "skipped": "-",
    "cancelled": "⊘",
}
