"""The signs of states in what operators read."""

MARKS = {
    "running": "▶",
    "waiting": "⏸",
    "succeeded": "✔",
    "failed": "✖",
    "skipped": "-",
    "cancelled": "⊘",
}
