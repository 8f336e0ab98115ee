"""The table of stages an operator sees as the current details of a run in the Temporal UI."""

from collections.abc import Mapping

from temporalio import workflow

from models.sources.data_source_runs.rules import Stage
from workflows.marks import MARKS


class StageTable:
    """One line per stage: its state, and what it counted once it is over.

    What a stage has counted so far stands in the heartbeats of its pending activity.
    """

    def __init__(self) -> None:
        self._states: dict[Stage, str] = {}
        self._counts: dict[Stage, Mapping[str, int]] = {}
        self.stage = Stage.FETCH

    def begin(self, stage: Stage) -> None:
        self.stage = stage
        self._show("running")

    def end(self, counts: Mapping[str, int]) -> None:
        self._counts[self.stage] = counts
        self._show("succeeded")

    def stop(self, state: str) -> None:
        """The run ends in this stage."""
        self._show(state)

    def markdown(self) -> str:
        """A table with one line per stage, in their order."""
        lines = ["| Stage | State | Counts |", "|---|---|---|"]
        for stage in Stage:
            state = self._states.get(stage)
            shown = "-" if state is None else f"{MARKS[state]} {state}"
            lines.append(f"| {stage} | {shown} | {_in_words(self._counts.get(stage, {}))} |")
        return "\n".join(lines)

    def _show(self, state: str) -> None:
        self._states[self.stage] = state
        workflow.set_current_details(self.markdown())


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "-"
