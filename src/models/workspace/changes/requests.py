"""Requests that are proposed: one change set keeps one, with the changes of its dry run.

It is applied as it was sent, with the rights of who applies it, or refused because what it would
change is no longer what its author saw (docs/adr/0153).
"""

import json
import typing
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TypeAlias

import sqlalchemy as sa
from pydantic import JsonValue

from models.automation.automations.rules.language.bindings import written
from models.core.access.rules import MANAGERS, Actor
from models.core.base import Id, JsonObject
from models.core.http_requests import hidden
from models.core.lifecycle import commands as lifecycle
from models.core.repository import Bound
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify
from models.people.members import members_with
from models.people.users import display_name
from models.workspace.changes import queries, shapes
from models.workspace.changes.commands import LIFETIME, hold_waiting, set_applying
from models.workspace.changes.dry_runs import Trial, trial_of
from models.workspace.changes.rules import CHANGE_LIFECYCLE, WAITING, ChangeSource, ChangeStatus
from runtime import errors
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.redaction import without_named_secrets

MAX_BODY = 256 * 1024
"""Bytes of the body of a request that is proposed."""
PROPOSED = Bound(
    queries.change_set,
    200,
    "proposed requests",
    conditions=(
        queries.change_set.c.source == ChangeSource.REQUEST.value,
        queries.change_set.c.status.in_(WAITING),
    ),
    remedy="Apply or reject some first.",
)
QUIET = timedelta(hours=1)
"""Managers are notified of a person's proposals once in this time, while one of them waits."""


ProposalRow: TypeAlias = queries.ChangeSet
"""The row of a change set with a request."""


class OutdatedProposalError(errors.ConflictError):
    """Something that the request would change was changed after it was proposed."""

    retryable = False
    advice = "Review the changes, and propose the request again."
    code = "outdated_proposal"

    def __init__(self) -> None:
        super().__init__(
            "Resources that the request changes, or automations that it starts, have changed since"
            " it was proposed. Nothing was changed."
        )


class RefusedProposalError(errors.ConflictError):
    """The operation refuses the request that was proposed."""

    retryable = False
    advice = "Reject the changes, and propose another request."
    code = "refused_proposal"

    def __init__(self, refusal: errors.PlatformError) -> None:
        super().__init__(f"The request is refused with {refusal.status}: {refusal.message}"[:1_000])


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it was sent; `headers` are the ones that decide what it does."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def address(self) -> str:
        """The path with the query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def check_size(self) -> None:
        """Raise PayloadTooLargeError for a body that is not kept."""
        if len(self.body) > MAX_BODY:
            raise errors.PayloadTooLargeError(
                f"The body of a proposed request can have at most {MAX_BODY // 1024} KiB."
            )


async def propose_request(
    work: UnitOfWork,
    actor: Actor,
    keys: KeyRing,
    change_id: Id,
    original: SentRequest,
    display: shapes.ProposedRequest,
    trial: Trial,
    *,
    title: str,
) -> shapes.ChangeSetSummary:
    """Keep a request and the changes of its dry run, and notify the managers.

    Raises ConflictError when too many of the workspace wait.
    """
    await _notify_managers(work, actor, change_id, title)
    async with PROPOSED.place(work, actor.workspace_id):
        row = await work.first(
            sa.insert(queries.change_set)
            .values(
                id=change_id,
                workspace_id=actor.workspace_id,
                source=ChangeSource.REQUEST.value,
                title=title,
                status=CHANGE_LIFECYCLE.initial.value,
                operations=[],
                outcomes=[],
                names={},
                request=display.model_dump(mode="json", by_alias=True),
                sealed_request=keys.seal(_packed(original), queries.request_place(change_id)),
                changes=trial.changes.model_dump(mode="json", by_alias=True),
                own_changes=trial.own_changes.model_dump(mode="json", by_alias=True),
                digest=trial.digest,
                created_by_user_id=actor.user_id,
                expires_at=work.now + LIFETIME,
                created_at=work.now,
                updated_at=work.now,
            )
            .returning(queries.change_set),
            of=queries.ChangeSet,
        )
    assert row is not None
    return queries.summary(row, work.now)


def shown_body(body: bytes) -> JsonValue:
    """The body of a request without credentials, and without what is named like a secret."""
    if not body:
        return None
    return typing.cast("JsonValue", without_named_secrets(hidden(json.loads(body), written)))


def _packed(original: SentRequest) -> bytes:
    return json.dumps({**asdict(original), "body": original.body.decode("latin-1")}).encode()


def opened_request(keys: KeyRing, row: queries.ChangeSet) -> SentRequest:
    """The request as it was proposed. Raises `UnreadableError`."""
    assert row.sealed_request is not None, "it is deleted when the change set is closed"
    values: JsonObject = json.loads(keys.unseal(row.sealed_request, queries.request_place(row.id)))
    return SentRequest(**{**values, "body": values["body"].encode("latin-1")})


async def _notify_managers(work: UnitOfWork, actor: Actor, change_id: Id, title: str) -> None:
    waiting = sa.select(queries.change_set.c.id).where(
        queries.change_set.c.workspace_id == actor.workspace_id,
        queries.change_set.c.created_by_user_id == actor.user_id,
        queries.change_set.c.source == ChangeSource.REQUEST.value,
        queries.change_set.c.status.in_(WAITING),
        queries.change_set.c.created_at > work.now - QUIET,
    )
    if await work.scalar(sa.select(waiting.exists())):
        return
    managers = [
        user_id
        for role in sorted(MANAGERS)
        for user_id in await members_with(work, actor.workspace_id, role)
    ]
    notice = Notice(
        kind=NotificationKind.APPROVAL_REQUEST,
        title=about(f"{await display_name(work, actor.person)} proposed a change: {title}"),
        actor_user_id=actor.person,
        data={"changeId": str(change_id)},
    )
    await notify(work, actor.workspace_id, managers, notice)


async def find_request(work: UnitOfWork, actor: Actor, change_id: Id) -> queries.ChangeSet | None:
    """The change set of a request that waits to be applied, locked; None for one of operations.

    Raises as `hold_waiting`.
    """
    row = await hold_waiting(work, actor, change_id)
    return None if row.request is None else row


@asynccontextmanager
async def as_proposed(
    work: UnitOfWork, actor: Actor, row: queries.ChangeSet, *, is_kept: bool
) -> AsyncIterator[None]:
    """Let the block carry out the request, and compare what it changes with what was seen.

    A transaction that is not kept is a dry run already, and captures what it writes for itself.
    Raises DeniedError and NotFoundError of the request, RefusedProposalError for its other
    refusals, and OutdatedProposalError.
    """
    if is_kept:
        await _capture(work, "on")
    try:
        yield
    except (errors.DeniedError, errors.NotFoundError):
        raise
    except errors.PlatformError as refusal:
        raise RefusedProposalError(refusal) from refusal
    async with undone(work):
        trial = await trial_of(work, actor.principal, actor)
    if trial.digest != row.digest:
        raise OutdatedProposalError
    if is_kept:
        await _capture(work, "off")
        mine = sa.cast(sa.cast(sa.func.pg_current_xact_id_if_assigned(), sa.Text), sa.BigInteger)
        await work.execute(
            sa.delete(queries.dry_run_change).where(queries.dry_run_change.c.transaction_id == mine)
        )


async def _capture(work: UnitOfWork, state: str) -> None:
    """Let triggers capture what is written, in a transaction that is kept."""
    await work.execute(
        sa.select(
            sa.func.set_config("workspace.dry_run", state, True),
            sa.func.set_config("workspace.kept", state, True),
        )
    )


@asynccontextmanager
async def undone(work: UnitOfWork) -> AsyncIterator[None]:
    """A savepoint that is rolled back: runs that would start are accepted to be counted."""
    savepoint = await (await work.get_connection()).begin_nested()
    try:
        yield
    finally:
        await savepoint.rollback()


async def close_request(
    work: UnitOfWork, row: queries.ChangeSet, status: int, content: bytes
) -> shapes.ApplyResult:
    """Note that the request was applied; its answer."""
    await set_applying(work, row.id, [])
    await lifecycle.finish(
        work,
        queries.CHANGE_SETS,
        [row.id],
        ChangeStatus.APPLIED,
        sealed_request=None,
        updated_at=work.now,
    )
    data = json.loads(content).get("data") if content else None
    result = queries.apply_result(row, [], ChangeStatus.APPLIED)
    return result.model_copy(update={"response": shapes.RequestAnswer(status=status, data=data)})
