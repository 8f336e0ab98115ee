"""The families of durable work, and the names Temporal knows them by (decisions D2).

A command names a family; only the worker knows which workflow executes it.
"""

import uuid
from enum import StrEnum
from urllib.parse import quote


class Family(StrEnum):
    """One kind of durable work; the value is the first part of its workflow id."""

    AUTOMATION_RUN = "automation-run"
    ACTION_RUN = "action-run"
    AUTOMATION_SCHEDULE = "automation-schedule"
    DATA_SOURCE_SCHEDULE = "data-source-schedule"
    MOUNT_SCHEDULE = "mount-schedule"
    CHANGE_APPLICATION = "change-application"
    CHANGE_PLAN = "change-plan"
    MAINTENANCE = "maintenance"
    DATA_SOURCE_REFRESH = "data-source-refresh"
    DATA_SOURCE_PREVIEW = "data-source-preview"
    DATA_SOURCE_REVERSAL = "data-source-reversal"
    DATABASE_DUPLICATE = "database-duplicate"
    DELIVERY = "delivery"
    EXPORT = "export"
    FIELD_CONVERSION = "field-conversion"
    FIELD_INDEX = "field-index"
    FIELD_REMOVAL = "field-removal"
    FORM_IMPORT = "form-import"
    MOUNT_SYNC = "mount-sync"
    OAUTH_EXCHANGE = "oauth-exchange"
    OAUTH_REVOCATION = "oauth-revocation"
    PROVIDER_CALL = "provider-call"
    RESOURCE_IMPORT = "resource-import"
    LEGACY_IMPORT = "legacy-import"
    RECOMPUTATION = "recomputation"
    RETENTION = "retention"
    SPREADSHEET_IMPORT = "spreadsheet-import"
    STARTER_SEED = "starter-seed"
    TIMER_DUE = "timer-due"
    WORKSPACE_EXPORT = "workspace-export"
    WORKSPACE_DRAFT = "workspace-draft"

    def workflow_id(self, subject_id: uuid.UUID | str, execution: str = "") -> str:
        """The business id of one piece of work, which makes a repeated start harmless.

        `execution` tells apart the executions of work that goes on after it had ended.
        """
        return f"{self.value}/{subject_id}/{execution}".rstrip("/")


JOB_FAMILIES = (
    Family.CHANGE_APPLICATION,
    Family.CHANGE_PLAN,
    Family.DATA_SOURCE_PREVIEW,
    Family.DATA_SOURCE_REVERSAL,
    Family.DATABASE_DUPLICATE,
    Family.EXPORT,
    Family.FIELD_CONVERSION,
    Family.FIELD_INDEX,
    Family.FIELD_REMOVAL,
    Family.FORM_IMPORT,
    Family.MOUNT_SYNC,
    Family.OAUTH_EXCHANGE,
    Family.OAUTH_REVOCATION,
    Family.PROVIDER_CALL,
    Family.RECOMPUTATION,
    Family.RESOURCE_IMPORT,
    Family.WORKSPACE_EXPORT,
    Family.STARTER_SEED,
    Family.WORKSPACE_DRAFT,
)
"""The families whose rows are in the job table."""


class Queue(StrEnum):
    """Task queues, split by what their workers need."""

    AUTOMATION = "automation"
    """Workflows and short database activities."""

    IO = "io"
    """Whatever leaves the machine."""

    BULK = "bulk"
    """Chunks of long work on our own tables."""


class SearchAttribute(StrEnum):
    """The attributes that an operator can filter workflows by; all of type Keyword."""

    WORKSPACE_ID = "WorkspaceId"
    RESOURCE_ID = "ResourceId"
    RUN_KIND = "RunKind"
    RUN_SOURCE = "RunSource"


def temporal_ui_url(base: str, namespace: str, workflow_id: str) -> str:
    """The page of a workflow in the Temporal UI."""
    return f"{base.rstrip('/')}/namespaces/{namespace}/workflows/{quote(workflow_id, safe='')}"
