"""Fault injection for tests: named points at which a process kills itself.

The tests under tests/chaos use it to prove that work which a process leaves behind is finished by
another one. Nothing happens unless two environment variables are set: WORKSPACE_FAULT names points,
separated by commas, and WORKSPACE_FAULT_MARKS names a directory. A point kills once: the file that
it leaves in the directory lets every later process pass. WORKSPACE_FAULT_VICTIM names the pid file
of another process that dies instead.
"""

import os
import signal
from enum import StrEnum
from functools import cache
from pathlib import Path


class FaultPoint(StrEnum):
    AFTER_COMMIT_BEFORE_START = "after_commit_before_start"
    """A run is accepted and its start is claimed; Temporal has not been called."""
    AFTER_START_BEFORE_MARK = "after_start_before_mark"
    """The workflow is started; the outbox still holds its start."""
    AFTER_EFFECT_BEFORE_COMPLETION = "after_effect_before_completion"
    """A record is written; the workflow has not received the result."""
    AFTER_CALL_BEFORE_END = "after_call_before_end"
    """A foreign server has answered; the node's end is not written."""
    DISPATCHED_BEFORE_COMMIT = "dispatched_before_commit"
    """Runs that answer events are written; nothing is committed. The mark names an event."""
    DISPATCHED_AFTER_COMMIT = "dispatched_after_commit"
    """Runs that answer events are committed; the mark names an event."""
    AFTER_PAGE_BEFORE_PROGRESS = "after_page_before_progress"
    """A page of a source is kept; the run does not say so."""
    AFTER_BATCH_OF_ROWS = "after_batch_of_rows"
    """A batch of rows is staged and committed; the activity continues."""
    AFTER_ROWS_BEFORE_COMMIT = "after_rows_before_commit"
    """The rows of a run are applied; nothing is committed."""
    AFTER_ENTRIES_BEFORE_COMMIT = "after_entries_before_commit"
    """The entries of a mounted folder are written; nothing is committed."""
    AFTER_CONTENTS_BEFORE_COMMIT = "after_contents_before_commit"
    """A batch of resources is imported; nothing is committed."""
    AFTER_RUNS_BEFORE_COMMIT = "after_runs_before_commit"
    """Runs of an operation are treated; nothing is committed."""
    AFTER_CHUNK_BEFORE_REPLY = "after_chunk_before_reply"
    """A chunk of a job is committed; the workflow has not received the result."""
    AFTER_GROUPING_BEFORE_COMMIT = "after_grouping_before_commit"
    """Failed runs are grouped into incidents; nothing is committed."""
    AFTER_RELEASE_BEFORE_COMMIT = "after_release_before_commit"
    """Work that rested under a pause is released; nothing is committed."""
    AFTER_BREAKER_BEFORE_COMMIT = "after_breaker_before_commit"
    """A circuit breaker has moved on, with all that follows; nothing is committed."""
    AFTER_ALERTS_BEFORE_COMMIT = "after_alerts_before_commit"
    """Alert rules are evaluated and told; nothing is committed."""
    BEFORE_TERMINAL_WRITE = "before_terminal_write"
    """A run's work is done; its row does not say so."""
    AFTER_TERMINAL_WRITE = "after_terminal_write"
    """A run's row is terminal; the workflow has not received the result."""

    IMPORT_UNPACKED = "import_unpacked"
    """A bundle is taken apart; its run does not say so."""
    IMPORT_VALIDATING = "import_validating"
    IMPORT_DRY_RUN = "import_dry_run"
    IMPORT_CREATING = "import_creating"
    IMPORT_SCHEMA = "import_schema"
    IMPORT_RECORDS = "import_records"
    IMPORT_RELATIONS = "import_relations"
    IMPORT_FILES = "import_files"
    IMPORT_CONTENT = "import_content"
    IMPORT_AUTOMATIONS = "import_automations"
    IMPORT_VERIFYING = "import_verifying"
    IMPORT_ROLLBACK = "import_rollback"
    """A chunk of this stage of a legacy import is committed; the activity continues."""


def stage_of_import(stage: str) -> FaultPoint:
    """The point behind a chunk of a stage of a legacy import."""
    return FaultPoint(f"import_{stage}")


def inject_fault(point: FaultPoint, subject_id: object) -> None:
    """Kill this process, or the victim, with SIGKILL if the point is armed and has not killed yet.

    The id of what the process was working on is written to the point's mark.
    """
    if point in _armed():
        _die(Path(os.environ["WORKSPACE_FAULT_MARKS"]) / point, str(subject_id))


@cache
def _armed() -> frozenset[str]:
    return frozenset(filter(None, os.environ.get("WORKSPACE_FAULT", "").split(",")))


def _die(mark: Path, subject_id: str) -> None:
    try:
        with mark.open("x") as file:
            file.write(subject_id)
    except FileExistsError:
        return
    os.kill(_victim(), signal.SIGKILL)


def _victim() -> int:
    pid_file = os.environ.get("WORKSPACE_FAULT_VICTIM")
    if pid_file is None:
        return os.getpid()
    return int(Path(pid_file).read_text(encoding="ascii").split()[0])
