"""The states of a run, what starts one, and what it counts (decisions C10). Pure."""

from datetime import timedelta
from enum import StrEnum

from models.core.lifecycle.rules import Lifecycle


class DataSourceRunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunTrigger(StrEnum):
    MANUAL = "manual"
    SCHEDULE = "schedule"
    ACTION = "action"
    AUTOMATION = "automation"
    IMPORT = "import"
    RETRY = "retry"


_ENDS = frozenset({DataSourceRunStatus.FAILED, DataSourceRunStatus.CANCELLED})

RUN_LIFECYCLE = Lifecycle(
    {
        DataSourceRunStatus.QUEUED: frozenset({DataSourceRunStatus.RUNNING}) | _ENDS,
        DataSourceRunStatus.RUNNING: frozenset({DataSourceRunStatus.SUCCEEDED}) | _ENDS,
        DataSourceRunStatus.SUCCEEDED: frozenset(),
        DataSourceRunStatus.FAILED: frozenset(),
        DataSourceRunStatus.CANCELLED: frozenset(),
    }
)
OPEN_RUN = RUN_LIFECYCLE.open


class ImportKind(StrEnum):
    """Where the rows of an import come from."""

    FILE = "file"
    URL = "url"
    INLINE = "inline"
    CONNECTION = "connection"


class ImportMode(StrEnum):
    INSERT = "insert"
    UPSERT = "upsert"
    REPLACE = "replace"


KEPT_RESULT = timedelta(hours=24)
"""How long a `clientMutationId` stands for the import that it named."""


class Stage(StrEnum):
    """What a run does at the moment."""

    FETCH = "fetch"
    STAGE = "stage"
    APPLY = "apply"


REVERTIBLE = timedelta(days=7)
"""How long after its end a run can be reverted."""

STATS = (
    "rowsFetched",
    "rowsInserted",
    "rowsUpdated",
    "rowsUnchanged",
    "rowsRemoved",
    "rowsSkipped",
    "bytesFetched",
    "durationMs",
)
"""What a run counts; the rows inserted, updated, unchanged and skipped are those fetched."""


def exceeds_guard(removed: int, known: int, percent: int) -> bool:
    """Whether more than `percent` of the rows known so far would be removed."""
    return removed * 100 > known * percent
