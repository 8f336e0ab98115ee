"""Findings made while a bundle is checked or applied."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_NOTES = 100
"""Different notes that are kept; the rest is counted together."""
_MORE = "more"


@dataclass(slots=True)
class Findings:
    """Rows by kind, and notes: `(code, message)` with how often each was made.

    A warning says what will be missing or changed, an error blocks the import.
    """

    rows: Counter[str] = field(default_factory=Counter)
    warnings: Counter[tuple[str, str]] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)

    def warn(self, code: str, message: str, times: int = 1) -> None:
        _note(self.warnings, code, message, times)

    def refuse(self, code: str, message: str, times: int = 1) -> None:
        _note(self.errors, code, message, times)

    def add(self, findings: "Findings") -> None:
        self.rows.update(findings.rows)
        for mine, theirs in ((self.warnings, findings.warnings), (self.errors, findings.errors)):
            for (code, message), times in theirs.items():
                _note(mine, code, message, times)

    def to_json(self) -> dict[str, Any]:
        """As it is stored: `{rows, warnings: [{code, message, times}], errors}`."""
        return {
            "rows": dict(self.rows),
            "warnings": _listed(self.warnings),
            "errors": _listed(self.errors),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Findings":
        return cls(
            Counter(document["rows"]), _counted(document["warnings"]), _counted(document["errors"])
        )


def _note(notes: Counter[tuple[str, str]], code: str, message: str, times: int) -> None:
    key = (code, message)
    full = len(notes) >= MAX_NOTES and key not in notes
    notes[(_MORE, "There is more that is not listed.") if full else key] += times


def _listed(notes: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"code": code, "message": message, "times": times}
        for (code, message), times in notes.items()
    ]


def _counted(notes: Iterable[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter({(note["code"], note["message"]): note["times"] for note in notes})
