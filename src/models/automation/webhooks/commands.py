"""Calls of webhooks: each starts one run, however often it is repeated, and is kept in the inbox.

A run that waits for no slot, and is no part of a canary, takes one statement with all that belongs
to it. Only where that statement says that the call was made before, or for other runs, there is a
transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.automation.automation_runs import acceptance
from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.automations import runnable_versions
from models.automation.automations.queries import AUTOMATION, GRAPH
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import TriggerKind, WebhookTrigger
from models.automation.automations.tables import webhook_secret_place
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received, shortened
from models.automation.inbox.store import keep, keeping_start, start_values
from models.automation.secrets.rules import secret_place
from models.automation.secrets.store import sealed_secret
from models.automation.webhooks import rules
from models.core.base import Id, JsonObject, Shape
from models.core.purging import Retention
from runtime import errors
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork, Work
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.bounded_processes import evaluate_bounded


class WebhookReceipt(SQLModel, table=True):
    """A call and the run it started; until it expires, calls with the same key are this one.

    The run may be gone by then, so the row does not hold on to it.
    """

    __tablename__ = "webhook_receipt"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        sa.Index("ix_webhook_receipt_expires_at", "expires_at"),
    )

    automation_id: Id = Field(primary_key=True)
    key_hash: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    workspace_id: Id
    run_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)


webhook_receipt = table_of(WebhookReceipt)


purge_receipts = Retention(webhook_receipt, webhook_receipt.c.expires_at)
"""Receipts past their window."""


class WebhookReceiptBody(Shape):
    """The result of a call: the run it started, or why it started none.

    With `duplicate` the run was started by an earlier call; without a status it was deleted.
    """

    run_id: Id | None
    status: RunStatus | Literal["filtered", "skipped"] | None
    duplicate: bool


class UnverifiedError(errors.UnauthorizedError):
    """The call is not signed, not recent, or signed with another secret. It does not say which."""

    def __init__(self, *, basic: bool) -> None:
        super().__init__("The call could not be verified.")
        if basic:
            self.headers = {"WWW-Authenticate": 'Basic realm="webhook"'}  # type: ignore[misc]  # a class variable elsewhere


class WrongMethodError(errors.MethodNotAllowedError):
    """The webhook takes other methods (RFC 9110, 15.5.6)."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__("This webhook does not accept that method.")
        self.headers = {"Allow": ", ".join(allowed)}  # type: ignore[misc]  # a class variable elsewhere


class RunWithoutAnswerError(errors.InternalError):
    """The run that should have answered did not succeed."""

    def __init__(self, run_id: Id) -> None:
        super().__init__(f"The automation did not succeed. See run {run_id}.")


class HookedVersion(runnable_versions.RunnableVersion, Protocol):
    """A version that a webhook runs, with the sealed secrets that verify a call."""

    workspace_id: Id
    sealed_webhook_secret: bytes
    sealed_previous_webhook_secret: bytes | None
    previous_webhook_secret_until: datetime | None
    sealed_value: bytes | None


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook that takes calls; `version` is what a call runs, as it was at `read_at`."""

    workspace_id: Id
    automation_id: Id
    trigger: WebhookTrigger
    version: HookedVersion
    read_at: datetime

    def secrets(self, keys: KeyRing) -> list[str]:
        """The secrets that verify a call: the workspace secret it names, else the automation's own.

        After a rotation the previous one is valid for a while. Raises UnreadableError.
        """
        row = self.version
        if self.trigger.secret_name is not None:
            if row.sealed_value is None:
                return []
            place = secret_place(self.workspace_id, self.trigger.secret_name)
            return [keys.unseal(row.sealed_value, place).decode()]
        sealed = [row.sealed_webhook_secret]
        until = row.previous_webhook_secret_until
        previous = row.sealed_previous_webhook_secret
        if previous is not None and until is not None and until > self.read_at:
            sealed.append(previous)
        place = webhook_secret_place(self.automation_id)
        return [keys.unseal(one, place).decode() for one in sealed]


class _AddressedVersion(HookedVersion, runnable_versions.Dormant, Protocol): ...


_HOOK = PreparedStatement(
    runnable_versions.DORMANT.add_columns(
        AUTOMATION.workspace_id,
        AUTOMATION.sealed_webhook_secret,
        AUTOMATION.sealed_previous_webhook_secret,
        AUTOMATION.previous_webhook_secret_until,
        sealed_secret(AUTOMATION.workspace_id, GRAPH.trigger_config["secretName"].astext),
    ).where(AUTOMATION.webhook_token == sa.bindparam("token", type_=sa.Text)),
    _AddressedVersion,
)


@dataclass(frozen=True, slots=True)
class Closed:
    """A webhook that takes no calls, and the reason."""

    workspace_id: Id
    automation_id: Id
    outcome: EventOutcome


async def find_hook(work: Work, token: str) -> Hook | Closed | None:
    """The webhook behind a token; closed unless a published, enabled automation has it.

    None for a token of no automation. All refusals read the same.
    """
    row = await _HOOK.first(work, {"token": "" if "\x00" in token else token})
    if row is None:
        return None
    reason = runnable_versions.dormancy(row)
    config: JsonObject | None = row.trigger_config
    if config is None or config["kind"] != TriggerKind.WEBHOOK:
        # Its address is known, but no version of it is called by it.
        reason = runnable_versions.Dormancy.NO_PUBLISHED_VERSION
    if config is None or reason is not None:
        return Closed(
            row.workspace_id, row.automation_id, EventOutcome(reason or EventOutcome.DISABLED)
        )
    trigger = read_trigger(config)
    assert isinstance(trigger, WebhookTrigger), "its kind says so"
    return Hook(row.workspace_id, row.automation_id, trigger, row, work.now)


def call_event(workspace_id: Id, automation_id: Id, payload: JsonObject) -> Received:
    """A call as the inbox has it."""
    return Received(new_id(), workspace_id, EventSource.WEBHOOK, automation_id, payload)


_REFUSED: Mapping[type[errors.PlatformError], EventOutcome] = {
    WrongMethodError: EventOutcome.WRONG_METHOD,
    UnverifiedError: EventOutcome.UNVERIFIED,
    errors.PayloadTooLargeError: EventOutcome.TOO_LARGE,
}


async def keep_refused(
    work: Work,
    keys: KeyRing,
    hook: Hook | Closed,
    delivery: rules.Delivery,
    refusal: errors.PlatformError,
) -> None:
    """Keep a call that was refused, by a statement of its own: its transaction is undone."""
    if isinstance(hook, Closed):
        payload = rules.refused_call(None, delivery, [])
        judgement = Judgement(hook.outcome)
    else:
        payload = rules.refused_call(hook.trigger, delivery, hook.secrets(keys))
        outcome = _REFUSED.get(type(refusal), EventOutcome.INVALID)
        judgement = Judgement(outcome, detail={"message": shortened(refusal.message)})
    call = call_event(hook.workspace_id, hook.automation_id, payload)
    await keep(work, call, {hook.automation_id: judgement})


FILTERED = WebhookReceiptBody(run_id=None, status="filtered", duplicate=False)
"""The call was valid, but the trigger's filter does not match it."""
SKIPPED = WebhookReceiptBody(run_id=None, status="skipped", duplicate=False)
"""As many runs are open as the automation's concurrency allows."""


@dataclass(frozen=True, slots=True)
class _Key:
    """The key by which a call is recognized for some seconds."""

    hash: bytes
    seconds: int


@dataclass(frozen=True, slots=True)
class _Call:
    """A genuine call that its trigger lets through."""

    hook: Hook
    run_id: Id
    payload: JsonObject
    event: Received
    key: _Key | None

    @property
    def request(self) -> acceptance.RunRequest:
        """The run that it asks for."""
        return acceptance.RunRequest(RunSource.WEBHOOK, self.payload, run_id=self.run_id)

    def claim(self, work: Work) -> dict[str, Any]:
        """The parameters of the statements of its receipt; none without a key."""
        if self.key is None:
            return {}
        return {
            "automation_id": self.hook.automation_id,
            "workspace_id": self.hook.workspace_id,
            "subject_id": self.run_id,
            "key_hash": self.key.hash,
            "expires_at": work.now_after(self.key.seconds),
            "now": work.now,
        }


async def receive(
    database: Database, keys: KeyRing, hook: Hook, delivery: rules.Delivery, run_id: Id
) -> WebhookReceiptBody:
    """Start the run of a call, unless the same call did so before; the inbox keeps the call.

    Raises WrongMethodError, UnverifiedError, and ValidationError for a body that cannot be read.
    """
    trigger = hook.trigger
    if delivery.method not in trigger.methods:
        raise WrongMethodError(trigger.methods)
    secrets = hook.secrets(keys)
    if not rules.is_genuine(trigger, secrets, delivery, hook.read_at):
        raise UnverifiedError(basic=trigger.auth == "basic")
    payload = rules.read_payload(trigger, delivery)
    kept = rules.kept_call(payload, delivery, secrets)
    event = call_event(hook.workspace_id, hook.automation_id, kept)
    if not await evaluate_bounded(lambda: rules.lets_through(trigger, payload, hook.read_at)):
        term = await evaluate_bounded(lambda: rules.unmet_term(trigger, payload, hook.read_at))
        judgement = Judgement(EventOutcome.FILTERED, detail=term)
        async with database.statement() as work:
            await keep(work, event, {hook.automation_id: judgement})
        return FILTERED
    call = _Call(hook, run_id, payload, event, await _key_of(hook, delivery, payload))
    if acceptance.is_free(hook.version, call.request):
        receipt = await _accepted_at_once(database, call)
        if receipt is not None:
            return receipt
    async with database.transaction() as transaction:
        receipt, judgement = await _judged(transaction, call)
        await keep(transaction, event, {hook.automation_id: judgement})
    return receipt


async def _key_of(hook: Hook, delivery: rules.Delivery, payload: JsonObject) -> _Key | None:
    rule = rules.deduplication(hook.trigger, delivery)
    if rule is None:
        return None
    key = await evaluate_bounded(lambda: rules.call_key(rule, delivery, payload))
    return None if key is None else _Key(key, rule.window_seconds)


_receipt = webhook_receipt.c
_run, _is_its_run = run_of(_receipt.run_id)
_AUTOMATION_ID = sa.bindparam("automation_id", type_=_receipt.automation_id.type)
_NOW = sa.bindparam("now", type_=Timestamp)
_THIS = (
    _receipt.automation_id == _AUTOMATION_ID,
    _receipt.key_hash == sa.bindparam("key_hash", type_=sa.LargeBinary),
)
_VALUES = {
    "automation_id": _AUTOMATION_ID,
    "key_hash": sa.bindparam("key_hash", type_=sa.LargeBinary),
    "workspace_id": sa.bindparam("workspace_id", type_=_receipt.workspace_id.type),
    "run_id": sa.bindparam("subject_id", type_=_receipt.run_id.type),
    "expires_at": sa.bindparam("expires_at", type_=Timestamp),
}


def _claiming(new: Insert) -> Insert:
    """Insert a key; where another call has taken it, this waits for the commit of that call."""
    return new.on_conflict_do_update(
        index_elements=["automation_id", "key_hash"],
        set_={"run_id": new.excluded.run_id, "expires_at": new.excluded.expires_at},
        where=_receipt.expires_at <= _NOW,
    )


_as_read = sa.select(*_VALUES.values()).select_from(runnable_versions.AS_READ)
_CLAIMED = (
    _claiming(upsert(webhook_receipt).from_select(list(_VALUES), _as_read))
    .returning(_receipt.run_id)
    .cte("claimed")
)
_ACCEPT_NEW, _ACCEPT_EVERY = (
    keeping_start(acceptance.accepting_free(one)) for one in (_CLAIMED, runnable_versions.AS_READ)
)
"""A run, its start and the kept call, with and without a key."""


async def _accepted_at_once(database: Database, call: _Call) -> WebhookReceiptBody | None:
    """Accept a call whose run is free; None for one that was made before."""
    hook = call.hook
    # Before the connection is taken, which must not wait for an expression.
    attributes = await acceptance.attributes_of(hook.version, call.request)
    actor = automation_actor(hook.workspace_id, hook.automation_id)
    async with database.statement() as work:
        run = acceptance.free_run(work, actor, hook.version, call.request, call.run_id, attributes)
        values = {
            **run,
            **call.claim(work),
            **start_values(work, call.event, hook.automation_id),
        }
        statement = _ACCEPT_EVERY if call.key is None else _ACCEPT_NEW
        if await statement.first(work, values) is None:
            work.notify_workers = False
            return None
    return _started(call.run_id)


_CLAIM = PreparedStatement(_claiming(upsert(webhook_receipt).values(_VALUES)))
_EARLIER = PreparedStatement(
    sa.select(_receipt.run_id, RUN.status)
    .outerjoin(_run, sa.and_(_is_its_run, RUN.workspace_id == _receipt.workspace_id))
    .where(*_THIS)
)
_FORGET = PreparedStatement(sa.delete(webhook_receipt).where(*_THIS))


async def _judged(work: UnitOfWork, call: _Call) -> tuple[WebhookReceiptBody, Judgement]:
    """Accept a call step by step, unless it was made before."""
    claim = call.claim(work)
    earlier = await _claim(work, claim) if claim else None
    if earlier is not None:
        return earlier, Judgement(EventOutcome.DUPLICATE, earlier.run_id)
    hook = call.hook
    actor = automation_actor(hook.workspace_id, hook.automation_id)
    accepted: acceptance.Accepted = await acceptance.accept_live(
        work, actor, hook.version, call.request
    )
    if not accepted.skipped:
        return _started(accepted.run_id), accepted.judgement
    if claim:
        # The call started no run, so the same call may try again.
        await _FORGET.execute(work, claim)
    return SKIPPED, accepted.judgement


async def _claim(work: UnitOfWork, claim: Mapping[str, Any]) -> WebhookReceiptBody | None:
    """Take the key for a run. Returns the receipt of the call that has it already, or None."""
    while not await _CLAIM.execute(work, claim):
        row = await _EARLIER.first(work, claim)
        if row is not None:
            return WebhookReceiptBody(run_id=row.run_id, status=row.status, duplicate=True)
    return None


def _started(run_id: Id) -> WebhookReceiptBody:
    return WebhookReceiptBody(run_id=run_id, status=RunStatus.QUEUED, duplicate=False)
