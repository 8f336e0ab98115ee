"""Where a legacy import run goes next, given its workspaces (interface.md#legacy-import-states)."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.workspace.bundles.rules import Manifest
from models.workspace.legacy_imports.rules import (
    RUN_LIFECYCLE,
    Entry,
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    RollbackState,
    StepKind,
    is_within_tolerance,
    next_step,
)
from tests.support.bundles import manifest

S = LegacyImportStatus
ENTRY = Entry(
    UUID(int=1), True, ImportStage.QUEUED, LifecycleState.PENDING, RollbackState.NONE, False
)


def entry(stage: ImportStage, **changed: object) -> Entry:
    return replace(ENTRY, stage=stage, **changed)  # type: ignore[arg-type]  # fields of Entry


ENTRIES = st.lists(
    st.builds(
        Entry,
        st.uuids(),
        st.booleans(),
        st.sampled_from(ImportStage),
        st.sampled_from(LifecycleState),
        st.sampled_from(RollbackState),
        st.booleans(),
    ),
    max_size=4,
)


@given(st.sampled_from(LegacyImportStatus), ENTRIES)
def test_every_state_leads_along_the_table_to_work_a_person_or_the_end(
    status: LegacyImportStatus, entries: list[Entry]
) -> None:
    for _ in LegacyImportStatus:
        step = next_step(status, entries)
        if step.kind is not StepKind.MOVE:
            break
        assert step.status in RUN_LIFECYCLE.moves[status]
        status = step.status
    assert step.kind is not StepKind.MOVE, "it goes in circles"
    assert step.status is status
    assert (step.kind is StepKind.WORKSPACES) == bool(step.entries)


@pytest.mark.parametrize(
    ("status", "stages", "following"),
    [
        (S.DRY_RUNNING, [ImportStage.READY, ImportStage.BLOCKED], S.AWAITING_REVIEW),
        (S.IMPORTING, [ImportStage.VERIFYING, ImportStage.FAILED], S.VERIFYING),
        (S.IMPORTING, [ImportStage.FAILED, ImportStage.FAILED], S.FAILED),
        (S.VERIFYING, [ImportStage.DONE, ImportStage.DONE], S.COMPLETED),
        (S.VERIFYING, [ImportStage.DONE, ImportStage.FAILED], S.COMPLETED_WITH_WARNINGS),
        (S.VERIFYING, [ImportStage.FAILED], S.FAILED),
        (S.CANCELLING, [ImportStage.CANCELLED, ImportStage.DONE], S.CANCELLED),
    ],
)
def test_a_status_ends_as_its_workspaces_say(
    status: LegacyImportStatus, stages: list[ImportStage], following: LegacyImportStatus
) -> None:
    step = next_step(status, [entry(stage) for stage in stages])
    assert (step.kind, step.status) == (StepKind.MOVE, following)


def test_a_warning_makes_it_completed_with_warnings() -> None:
    step = next_step(S.VERIFYING, [entry(ImportStage.DONE, warned=True)])
    assert step.status is S.COMPLETED_WITH_WARNINGS


def test_the_bundle_is_compared_before_anything_is_written() -> None:
    assert next_step(S.IMPORTING, [ENTRY]).kind is StepKind.COMPARE
    begun = [ENTRY, entry(ImportStage.CREATING)]
    assert next_step(S.IMPORTING, begun).kind is StepKind.WORKSPACES


def test_a_workspace_that_is_not_selected_is_left_alone() -> None:
    left_out = entry(ImportStage.QUEUED, selected=False)
    for status, stage in ((S.DRY_RUNNING, ImportStage.READY), (S.IMPORTING, ImportStage.DONE)):
        assert next_step(status, [entry(stage), left_out]).kind is StepKind.MOVE


def test_one_row_of_a_hundred_may_differ() -> None:
    assert is_within_tolerance(100, 99)
    assert not is_within_tolerance(100, 98)
    assert is_within_tolerance(0, 0)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T02:00:00.1234+02:00", "2026-01-01T00:00:00.123Z"),
        ("last spring", "last spring"),
    ],
)
def test_the_moment_of_a_bundle_is_shown_as_every_other(written: str, shown: str) -> None:
    told = Manifest.model_validate_json(manifest({}, snapshotAt=written))
    assert told.snapshot_at == shown
