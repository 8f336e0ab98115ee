"""Workflow kinds: the names Temporal knows, bounds, queues, attributes, memos (ADR 0074).

A command names a workflow kind; only the worker knows its workflow (`cli/work_handlers`).
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Bounds:
    """The work of a workflow kind that a workspace has at most; None for no bound.

    More than `running` waits in the outbox, more than `open` is refused. For automation runs the
    operator sets `running` by `WORKSPACE_RUNNING_CAP`. Legacy imports, which belong to no
    workspace, are counted by user.
    """

    running: int | None = None
    open: int | None = None


UNBOUNDED = Bounds()
LONG = Bounds(running=2, open=100)
"""Half of the chunks of long work that a worker executes at once, so that others find room."""
SHORT = Bounds(running=20, open=100)
BOUNDED_BY_CHANGES = Bounds(running=2)
"""Of what a change brings with it, which is bounded itself: refusing it would refuse the change."""


class WorkflowKind(StrEnum):
    """One kind of durable work; the value is the first part of its workflow id."""

    bounds: Bounds

    def __new__(cls, name: str, bounds: Bounds = UNBOUNDED) -> "WorkflowKind":
        member = str.__new__(cls, name)
        member._value_ = name
        member.bounds = bounds
        return member

    AUTOMATION_RUN = "automation-run"
    ACTION_RUN = "action-run", Bounds(running=50, open=1_000)
    AUTOMATION_SCHEDULE = "automation-schedule"
    DATA_SOURCE_SCHEDULE = "data-source-schedule"
    MOUNT_SCHEDULE = "mount-schedule"
    CHANGE_APPLICATION = "change-application", LONG
    CHANGE_PLAN = "change-plan", LONG
    MAINTENANCE = "maintenance"
    DATA_SOURCE_REFRESH = "data-source-refresh", Bounds(running=2, open=1_000)
    # Most of its time is that of servers, which the slots for calls of them are shared by.
    DATA_SOURCE_PREVIEW = "data-source-preview", SHORT
    DATA_SOURCE_REVERSAL = "data-source-reversal", LONG
    DATABASE_DUPLICATE = "database-duplicate", LONG
    DELIVERY = "delivery"
    EXPORT = "export", LONG
    FIELD_CONVERSION = "field-conversion", BOUNDED_BY_CHANGES
    FIELD_INDEX = "field-index", BOUNDED_BY_CHANGES
    FIELD_REMOVAL = "field-removal", BOUNDED_BY_CHANGES
    FORM_IMPORT = "form-import", LONG
    MOUNT_SYNC = "mount-sync", LONG
    OAUTH_EXCHANGE = "oauth-exchange", SHORT
    OAUTH_REVOCATION = "oauth-revocation", BOUNDED_BY_CHANGES
    PROVIDER_CALL = "provider-call", SHORT
    RESOURCE_IMPORT = "resource-import", LONG
    LEGACY_IMPORT = "legacy-import", Bounds(open=20)
    RECOMPUTATION = "recomputation", BOUNDED_BY_CHANGES
    RETENTION = "retention"
    RUN_OPERATION = "run-operation", LONG
    SPREADSHEET_IMPORT = "spreadsheet-import", LONG
    STARTER_SEED = "starter-seed", LONG
    TIMER_DUE = "timer-due"
    WORKSPACE_EXPORT = "workspace-export", LONG
    WORKSPACE_DRAFT = "workspace-draft", LONG

    def workflow_id(self, subject_id: uuid.UUID | str, execution: str = "") -> str:
        """The business id of one piece of work, which makes a repeated start harmless.

        `execution` distinguishes the executions of work that continues after it had ended.
        """
        return f"{self.value}/{subject_id}/{execution}".rstrip("/")


class Queue(StrEnum):
    """Task queues by kind of work."""

    AUTOMATION = "automation"
    """Workflows and short database activities."""

    IO = "io"
    """Activities that leave the machine, unless the worker that schedules them serves this queue,
    too.
    """

    IO_OVERFLOW = "io-overflow"
    """The same, of workspaces that hold their share of `io`."""

    BULK = "bulk"
    """Chunks of long work on our own tables."""


class SearchAttribute(StrEnum):
    """The attributes that an operator can filter workflows by; all of type Keyword."""

    WORKSPACE_ID = "WorkspaceId"
    RESOURCE_ID = "ResourceId"
    RUN_KIND = "RunKind"
    RUN_SOURCE = "RunSource"


def temporal_ui_url(base: str, namespace: str, workflow_id: str) -> str:
    return f"{base.rstrip('/')}/namespaces/{namespace}/workflows/{quote(workflow_id, safe='')}"


RESTARTS_IN_MEMO = "restarts"
"""For work that begins again: the number of executions that ended without closing its row."""

ATTRIBUTES_IN_MEMO = "attributes"
"""For runs: the short texts by which people know them."""

TIME_MOVED = "time_moved"
"""The signal to the execution of a time entry: it is due at another moment, or has ended."""


def memo_of(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The memo of an execution that a request to start one asks for."""
    memo = {
        name: request[name] for name in (RESTARTS_IN_MEMO, ATTRIBUTES_IN_MEMO) if name in request
    }
    return memo or None
