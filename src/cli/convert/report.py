"""The report of a conversion: what came over, and what has no equivalent."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Rows by kind, and what was left out or changed, with how often."""

    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def lose(self, loss: str, times: int = 1) -> None:
        """Say that something has no equivalent."""
        if times:
            self.left_out[loss] += times

    def text(self) -> str:
        rows = [f"- {kind}: {count}" for kind, count in sorted(self.rows.items())]
        lost = [f"- {loss} ({times})" for loss, times in self.left_out.most_common()]
        return "\n".join(
            ["# What came over", "", *rows, "", "# What has no equivalent", "", *(lost or ["-"])]
        )
