"""The states of a run, what starts one, and what is known of its source. Pure.

See interface.md#data-source-run-states.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from models.messages.jobs.rules import JOB_LIFECYCLE, OPEN_JOB, JobStatus
from runtime.temporal.workflow_kinds import WorkflowKind


class RunTrigger(StrEnum):
    MANUAL = "manual"
    SCHEDULE = "schedule"
    ACTION = "action"
    AUTOMATION = "automation"
    IMPORT = "import"
    RETRY = "retry"


RUN_LIFECYCLE = JOB_LIFECYCLE
"""A run moves as a job does."""

OPEN_RUN = OPEN_JOB
RETRIED = frozenset({JobStatus.FAILED, JobStatus.CANCELLED})
"""The ends after which a run may be tried again."""


class ImportKind(StrEnum):
    """The origin of the rows of an import."""

    FILE = "file"
    URL = "url"
    INLINE = "inline"
    CONNECTION = "connection"


class ImportMode(StrEnum):
    INSERT = "insert"
    UPSERT = "upsert"
    REPLACE = "replace"


KEPT_RESULT = timedelta(hours=24)
"""The time a `clientMutationId` stands for the import that it named."""


class Stage(StrEnum):
    """The step that a run is at."""

    FETCH = "fetch"
    STAGE = "stage"
    APPLY = "apply"


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column of a source, and the field that it filled.

    `kind` is what its cells last suggested, where that was asked. `found` says that the source had
    it when it was last read.
    """

    source_path: str
    field_key: str
    label: str
    kind: str | None = None
    field_id: str = ""
    found: bool = True


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """The known columns of a source; none before it was first read.

    `headers` names all that were ever there. `config` is the digest of the config they were read
    with, empty where it is unknown; `json_path` is where the rows were.
    """

    columns: Sequence[KnownColumn] = ()
    headers: Sequence[str] = ()
    config: str = ""
    json_path: str | None = None


def workflow_kind_of(data_source_id: uuid.UUID | None) -> WorkflowKind:
    """The workflow kind of a run's execution: a run without a data source is an import."""
    return (
        WorkflowKind.SPREADSHEET_IMPORT
        if data_source_id is None
        else WorkflowKind.DATA_SOURCE_REFRESH
    )


REVERTIBLE = timedelta(days=7)
"""The time after its end in which a run can be reverted."""


def missing_rows(count: int) -> str:
    """The remark on rows that a source states to have, and did not give."""
    return (
        f"The source states a total of rows that is {count:,} more than it returned."
        " Check its pagination."
    )


def exceeds_guard(removed: int, known: int, percent: int) -> bool:
    """True when more than `percent` of the rows known so far would be removed."""
    return removed * 100 > known * percent
