"""The progress of an import of resources: what became of them, and from where it goes on."""

from dataclasses import asdict

from models.core.base import JsonObject
from models.sources.resource_imports.outcomes import Outcome, PartCounts
from models.sources.resource_imports.rules import MAX_SKIPPED


class ImportProgress:
    """The facts of a job's progress, which a chunk adds to."""

    def __init__(self, before: JsonObject) -> None:
        self.facts: JsonObject = {
            **before,
            "counts": dict(before["counts"]),
            "skipped": list(before["skipped"]),
        }

    def skip(self, name: str, reason: str) -> None:
        """Say of a resource why it is left out, as far as there is room."""
        if len(self.facts["skipped"]) < MAX_SKIPPED:
            self.facts["skipped"].append({"name": name, "reason": reason})

    def count(
        self, outcome: Outcome, kind: str = "", parts: PartCounts | None = None, *, times: int = 1
    ) -> None:
        """Count resources of an outcome, and the parts of one."""
        self.facts["counts"][outcome.value] += times
        if parts is not None:
            before = self.facts.get(kind, {})
            self.facts[kind] = {
                name: before.get(name, 0) + count for name, count in asdict(parts).items()
            }
