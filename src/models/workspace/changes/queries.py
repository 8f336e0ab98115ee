"""Change sets: their tables with what dry runs write, their lifecycle, and reading them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from models.core.access.rules import MANAGERS, Actor, Scope
from models.core.base import Id, JsonObject
from models.core.lifecycle.commands import WorkTable
from models.core.pagination import Page, PageRequest
from models.core.repository import Repository
from models.workspace.changes import rules, shapes
from models.workspace.changes.differences import readable_kinds
from runtime.crypto import sealed
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of


def credentials_place(change_id: Id) -> str:
    """The place that the sealed credentials of a change set are bound to."""
    return f"change_set|{change_id}|sealed_credentials"


def request_place(change_id: Id) -> str:
    """The place that the sealed request of a change set is bound to."""
    return f"change_set|{change_id}|sealed_request"


class ChangeSet(SQLModel, table=True):
    """One change set: operations, or one request. `outcomes` stand in the order of `operations`.

    `names` are the ids of what its operations made, by the names others refer to. The credentials
    that stood in its operations are sealed, and deleted when it is closed; so is the request.
    `request` is that request as it is shown, `changes` are the ones that its dry run made,
    `own_changes` the ones among them that its author could read, and `digest` is made
    of the rows it would have changed (`dry_runs`).
    """

    __tablename__ = "change_set"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("status", rules.ChangeStatus),
        one_of("source", rules.ChangeSource),
        sa.CheckConstraint(
            "sealed_credentials IS NULL OR completed_at IS NULL", name="closed_without_credentials"
        ),
        sa.CheckConstraint(
            "sealed_request IS NULL OR completed_at IS NULL", name="closed_without_request"
        ),
        sa.Index("ix_change_set_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        sa.Index(
            "ix_change_set_expires_at",
            "expires_at",
            postgresql_where=sa.text(f"status IN ({listed(rules.WAITING)})"),
        ),
        sa.Index("ix_change_set_completed_at", "completed_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    source: str
    title: str
    instruction: str | None = None
    status: str
    operations: list[dict[str, Any]] = Field(sa_type=JSONB)
    outcomes: list[dict[str, Any]] = Field(sa_type=JSONB)
    sealed_credentials: bytes | None = Field(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: credentials_place(row.id)),
    )
    request: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    sealed_request: bytes | None = Field(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: request_place(row.id)),
    )
    changes: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    own_changes: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    digest: str | None = None
    names: dict[str, Any] = Field(sa_type=JSONB)
    rejected_reason: str | None = None
    created_by_user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class DryRunChange(SQLModel, table=True):
    """A row that a dry run has written, before and after one statement; a trigger captures it.

    `source` is its table and `subject` its key there. Its item, which decides who sees it, follows
    from `place` and `place_id`. No row is ever committed, so there is neither WAL nor a retention.
    """

    __tablename__ = "dry_run_change"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    transaction_id: int = Field(sa_type=sa.BigInteger, primary_key=True)
    position: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    source: str
    subject: str
    workspace_id: Id | None = None
    place: str | None = None
    place_id: Id | None = None
    before: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    after: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    created: list[Id] | None = Field(default=None, sa_type=ARRAY(sa.Uuid))


change_set = table_of(ChangeSet)
dry_run_change = table_of(DryRunChange)

CHANGE_SETS = WorkTable(change_set, rules.CHANGE_LIFECYCLE)


def _sees(actor: Actor) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of the change sets an actor sees: their own; an owner or administrator, all.

    An operation may name what only its author sees.
    """
    return () if actor.role in MANAGERS else (change_set.c.created_by_user_id == actor.user_id,)


AI_RUNS = Repository("run", change_set, ChangeSet, _sees)


async def get_changes(work: UnitOfWork, actor: Actor, change_id: Id) -> shapes.ChangeSetDetail:
    """A change set with its operations and what became of them. Raises `NotFoundError`."""
    return detail(await AI_RUNS.find(work, actor, change_id), work.now, actor)


async def list_changes(work: UnitOfWork, actor: Actor, page: PageRequest) -> shapes.ChangeSetList:
    """The change sets that the actor sees, newest first."""
    found = await AI_RUNS.page(work, actor, page)
    return shapes.ChangeSetList(changes=_summaries(found, work.now), cursor=found.cursor)


async def list_runs(work: UnitOfWork, actor: Actor, page: PageRequest) -> shapes.AiRunList:
    """The same change sets, as runs."""
    found = await AI_RUNS.page(work, actor, page)
    return shapes.AiRunList(runs=_summaries(found, work.now), cursor=found.cursor)


async def apply_outcome(
    work: UnitOfWork, actor: Actor, change_id: Id, *, last: bool
) -> shapes.ApplyResult | None:
    """The result of applying, None while more is applied.

    Gives how far it came when this is the last time to ask.
    """
    found = await AI_RUNS.find(work, actor, change_id)
    if found.status == rules.ChangeStatus.APPLYING and not last:
        return None
    return apply_result(found, read_outcomes(found), rules.ChangeStatus(found.status))


def _summaries(found: Page[ChangeSet], now: datetime) -> list[shapes.ChangeSetSummary]:
    return [summary(row, now) for row in found.items]


def summary(row: ChangeSet, now: datetime) -> shapes.ChangeSetSummary:
    """A change set as it is shown in lists."""
    return shapes.ChangeSetSummary(**_summary_values(row, now))


def detail(row: ChangeSet, now: datetime, actor: Actor) -> shapes.ChangeSetDetail:
    """A change set as it is shown alone."""
    operations = read_operations(row)
    status = status_of(row, now)
    result = apply_result(row, read_outcomes(row), status)
    return shapes.ChangeSetDetail(
        **_summary_values(row, now),
        request=None if row.request is None else shapes.ProposedRequest.model_validate(row.request),
        changes=_changes(row, actor),
        operations=[
            shapes.PlannedOperation(
                index=index,
                kind=one.kind,
                stake=rules.stake_of(one.kind, one.input),
                ref=one.ref,
                input=one.input,
            )
            for index, one in enumerate(operations)
        ],
        results=result.results,
        applied_count=result.applied_count,
        skipped_count=result.skipped_count,
        failed_count=result.failed_count,
    )


def _changes(row: ChangeSet, actor: Actor) -> shapes.DryRunChanges | None:
    """The changes of its request, of kinds that the actor can read.

    Its author sees of them what they could read when they proposed it; managers see all items.
    """
    changes = row.changes if actor.role in MANAGERS else row.own_changes
    if changes is None:
        return None
    result = shapes.DryRunChanges.model_validate(changes, strict=False)
    kinds = readable_kinds(actor.scopes)
    return result.model_copy(
        update={
            "counts": [count for count in result.counts if count.kind in kinds],
            "resources": [resource for resource in result.resources if resource.kind in kinds],
            "automations": result.automations if Scope.AUTOMATIONS_READ in actor.scopes else [],
            "messages": [
                message
                for message in result.messages
                if message.endpoint_id is None or Scope.WEBHOOKS_READ in actor.scopes
            ],
        }
    )


def status_of(row: ChangeSet, now: datetime) -> rules.ChangeStatus:
    """The state; what waited too long has expired, also before that is written down."""
    status = rules.ChangeStatus(row.status)
    return (
        rules.ChangeStatus.EXPIRED if status in rules.WAITING and row.expires_at <= now else status
    )


def _summary_values(row: ChangeSet, now: datetime) -> dict[str, Any]:
    names = shapes.ChangeSetSummary.model_fields.keys() - {"status", "operation_count"}
    return {
        **{name: getattr(row, name) for name in names},
        "status": status_of(row, now),
        "operation_count": len(row.operations) if row.request is None else 1,
    }


def read_operations(row: ChangeSet) -> list[shapes.Operation]:
    """The operations, which were checked when the change set was proposed."""
    return [shapes.Operation.model_validate(one) for one in row.operations]


def read_outcomes(row: ChangeSet) -> list[rules.Outcome]:
    """The outcome of each operation."""
    return [
        rules.Outcome(**{**one, "status": rules.ResultStatus(one["status"])})
        for one in row.outcomes
    ]


def stored_outcomes(outcomes: Sequence[rules.Outcome]) -> list[JsonObject]:
    """The same as they are result."""
    return [asdict(one) for one in outcomes]


def apply_result(
    row: ChangeSet, outcomes: Sequence[rules.Outcome], status: rules.ChangeStatus
) -> shapes.ApplyResult:
    """The answer of apply."""
    results = [
        shapes.OperationResult(
            index=index,
            kind=rules.OperationKind(operation["kind"]),
            stake=_stake(operation),
            status=outcome.status,
            needs_approval=outcome.needs_approval,
            error=outcome.error,
            subject_id=outcome.subject_id,
        )
        for index, (operation, outcome) in enumerate(zip(row.operations, outcomes, strict=True))
    ]
    count = dict.fromkeys(rules.ResultStatus, 0)
    for outcome in outcomes:
        count[outcome.status] += 1
    return shapes.ApplyResult(
        run_id=row.id,
        status=status,
        results=results,
        applied_count=count[rules.ResultStatus.APPLIED],
        skipped_count=count[rules.ResultStatus.SKIPPED],
        failed_count=count[rules.ResultStatus.FAILED],
    )


def _stake(operation: JsonObject) -> rules.Stake:
    return rules.stake_of(rules.OperationKind(operation["kind"]), operation["input"])
