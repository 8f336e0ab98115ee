"""Legacy import runs on the wire (interface.md#legacy-import-run)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, Moment, Shape, example
from models.core.pagination import Listed
from models.workspace.legacy_imports.rules import (
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    Mode,
    Outcome,
    RollbackState,
)

CHECKSUM = r"^[0-9a-f]{64}$"
OBJECT_KEY = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$"

Words = Annotated[str, Field(min_length=1, max_length=2000)]
"""The words an administrator writes beside a decision."""

EntryIds = Annotated[list[InputId], Field(max_length=1000)]


class CreateLegacyImport(Input):
    """Body of create legacy import: a bundle that is in the object store already.

    `bundleChecksum` is the SHA-256 of the bundle in hexadecimal digits. `mode` can only be
    `dry_run`: nothing is written before the run is approved and started.
    """

    model_config = example(
        {
            "bundleObjectKey": "bundles/acme-2026-10-01.zip",
            "bundleChecksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        }
    )

    bundle_object_key: Annotated[str, Field(max_length=1024, pattern=OBJECT_KEY)]
    bundle_checksum: Annotated[str, Field(pattern=CHECKSUM)]
    mode: Mode | None = None


class ApproveLegacyImport(Input):
    """Body of approve: `selectedWorkspaceIds` are ids of entries, which replace the selection."""

    model_config = example({"note": "Counts compared with the old system."})

    note: Words | None = None
    selected_workspace_ids: EntryIds | None = None


class CancelLegacyImport(Input):
    """Body of cancel."""

    model_config = example({"reason": "The wrong bundle."})

    reason: Words | None = None


class RollBackLegacyImport(Input):
    """Body of roll back.

    `workspaceIds` are ids of entries; without them all imported ones are rolled back. Data edited
    since the import is kept, unless `force` is set.
    """

    model_config = example({"reason": "The old system stays.", "force": False})

    reason: Words
    force: bool = False
    workspace_ids: Annotated[EntryIds, Field(min_length=1)] | None = None


class UpdateImportWorkspace(Input):
    """Body of update.

    A selected workspace is imported into a new workspace, or into `targetWorkspaceId`; null resets
    it.
    """

    model_config = example({"selected": True})

    selected: bool | None = None
    target_workspace_id: InputId | None = None


class VerifiedCount(Shape):
    """Rows of one kind: in the bundle, imported, and existing."""

    source: int | None = None
    imported: int
    found: int | None = None


class VerifiedSample(Shape):
    """`equal` of `rows` rows match the bundle; `hash` is of the existing rows."""

    rows: int
    equal: int
    hash: str


class Verification(Shape):
    """The verification of an import; empty before."""

    outcome: Outcome | None = None
    counts: dict[str, VerifiedCount] = Field(default_factory=dict)
    samples: dict[str, VerifiedSample] = Field(default_factory=dict)


class StageProgress(Shape):
    """The chunks of a stage that are done, and their total; a chunk is up to 5,000 rows."""

    stage: str
    done: int
    total: int


class ImportWorkspaceEntry(Shape):
    """One workspace of a bundle.

    `counts` are numbers by kind: of the dry run, later of the import. `verification`
    compares numbers and samples of the contents after the import.
    """

    id: Id
    source_workspace_id: str
    source_name: str
    target_workspace_id: Id | None
    selected: bool
    stage: ImportStage
    lifecycle_state: LifecycleState
    source_counts: dict[str, int]
    counts: dict[str, int]
    warnings: list[str]
    errors: list[str]
    verification: Verification
    progress: StageProgress | None
    rollback_state: RollbackState
    attempt: int
    last_error: str | None


class LegacyImport(Shape):
    """A legacy import run; it has as many `workspaces` as its bundle.

    `errors` are why it cannot be imported as it is, the errors of its workspaces among them.
    """

    id: Id
    bundle_object_key: str
    bundle_checksum: str
    source_snapshot_timestamp: str | None
    source_version: str | None
    converter_version: str | None
    status: LegacyImportStatus
    mode: Mode
    selected_workspace_count: int
    source_counts: dict[str, int]
    target_counts: dict[str, int]
    warnings: list[str]
    errors: list[str]
    approved_at: Moment | None
    approved_by_user_id: Id | None
    approval_note: str | None
    canceled_by_user_id: Id | None
    cancellation_reason: str | None
    rollback_requested_by_user_id: Id | None
    rollback_reason: str | None
    rollback_until: Moment | None
    created_by_user_id: Id
    started_at: Moment | None
    completed_at: Moment | None
    created_at: Moment
    updated_at: Moment
    waiting_for_worker_since: Moment | None = None
    page_url: str
    temporal_workflow_id: str
    temporal_url: str | None = None
    workspaces: list[ImportWorkspaceEntry]


class LegacyImportList(Listed):
    """A page of runs, newest first."""

    legacy_imports: list[LegacyImport]
