"""Calls of webhooks: each starts one run, however often it is repeated, and is kept in the inbox.

A run that waits for no slot, and is no part of a canary, takes one statement with all that belongs
to it. Only where that statement says that the call was made before, or for other runs, there is a
transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs import acceptance
from models.automation.automation_runs.queries import RUN, run_of
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.inbox.commands import keep, keeping_start, start_values
from models.automation.inbox.rules import EventOutcome, Judgement, Received
from models.automation.webhooks import commands, rules
from models.core.base import Id, JsonObject
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork, Work
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.bounded_processes import evaluate_bounded

FILTERED = commands.WebhookReceiptBody(run_id=None, status="filtered", duplicate=False)
"""The call was valid, but the trigger's filter does not match it."""
SKIPPED = commands.WebhookReceiptBody(run_id=None, status="skipped", duplicate=False)
"""As many runs are open as the automation's concurrency allows."""


@dataclass(frozen=True, slots=True)
class _Key:
    """The key by which a call is recognized for some seconds."""

    hash: bytes
    seconds: int


@dataclass(frozen=True, slots=True)
class _Call:
    """A genuine call that its trigger lets through."""

    hook: commands.Hook
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
    database: Database, keys: KeyRing, hook: commands.Hook, delivery: rules.Delivery, run_id: Id
) -> commands.WebhookReceiptBody:
    """Start the run of a call, unless the same call did so before; the inbox keeps the call.

    Raises WrongMethodError, UnverifiedError, and ValidationError for a body that cannot be read.
    """
    trigger = hook.trigger
    if delivery.method not in trigger.methods:
        raise commands.WrongMethodError(trigger.methods)
    secrets = hook.secrets(keys)
    if not rules.is_genuine(trigger, secrets, delivery, hook.read_at):
        raise commands.UnverifiedError(basic=trigger.auth == "basic")
    payload = rules.read_payload(trigger, delivery)
    kept = rules.kept_call(payload, delivery, secrets)
    event = commands.call_event(hook.workspace_id, hook.automation_id, kept)
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


async def _key_of(
    hook: commands.Hook, delivery: rules.Delivery, payload: JsonObject
) -> _Key | None:
    rule = rules.deduplication(hook.trigger, delivery)
    if rule is None:
        return None
    key = await evaluate_bounded(lambda: rules.call_key(rule, delivery, payload))
    return None if key is None else _Key(key, rule.window_seconds)


_receipt = commands.webhook_receipt.c
_run, _is_its_run = run_of(_receipt.run_id)
_AUTOMATION_ID = sa.bindparam("automation_id", type_=_receipt.automation_id.type)
_NOW = sa.bindparam("now", type_=Timestamp)
_THIS = (
    _receipt.automation_id == _AUTOMATION_ID,
    _receipt.key_hash == sa.bindparam("key_hash", type_=sa.LargeBinary),
)
_NEW = upsert(commands.webhook_receipt).values(
    automation_id=_AUTOMATION_ID,
    key_hash=sa.bindparam("key_hash", type_=sa.LargeBinary),
    workspace_id=sa.bindparam("workspace_id", type_=_receipt.workspace_id.type),
    run_id=sa.bindparam("subject_id", type_=_receipt.run_id.type),
    expires_at=sa.bindparam("expires_at", type_=Timestamp),
)
_CLAIM_KEY = _NEW.on_conflict_do_update(
    index_elements=["automation_id", "key_hash"],
    set_={"run_id": _NEW.excluded.run_id, "expires_at": _NEW.excluded.expires_at},
    where=_receipt.expires_at <= _NOW,
)
"""Inserting a key that another call has taken waits for the commit of that call."""


_CLAIMED = _CLAIM_KEY.returning(_receipt.run_id).cte("claimed")
_ALWAYS = sa.select(sa.literal(True).label("always")).cte("claimed")
_ACCEPT_NEW, _ACCEPT_EVERY = (
    keeping_start(acceptance.accepting_free(one)) for one in (_CLAIMED, _ALWAYS)
)
"""A run, its start and the kept call, with and without a key."""


async def _accepted_at_once(database: Database, call: _Call) -> commands.WebhookReceiptBody | None:
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


_CLAIM = PreparedStatement(_CLAIM_KEY)
_EARLIER = PreparedStatement(
    sa.select(_receipt.run_id, RUN.status)
    .outerjoin(_run, sa.and_(_is_its_run, RUN.workspace_id == _receipt.workspace_id))
    .where(*_THIS)
)
_FORGET = PreparedStatement(sa.delete(commands.webhook_receipt).where(*_THIS))


async def _judged(work: UnitOfWork, call: _Call) -> tuple[commands.WebhookReceiptBody, Judgement]:
    """Accept a call step by step, unless it was made before."""
    claim = call.claim(work)
    earlier = await _claim(work, claim) if claim else None
    if earlier is not None:
        return earlier, Judgement(EventOutcome.DUPLICATE, earlier.run_id)
    hook = call.hook
    actor = automation_actor(hook.workspace_id, hook.automation_id)
    accepted: acceptance.Accepted = await acceptance.accept(work, actor, hook.version, call.request)
    if not accepted.skipped:
        return _started(accepted.run_id), accepted.judgement
    if claim:
        # The call started no run, so the same call may try again.
        await _FORGET.execute(work, claim)
    return SKIPPED, accepted.judgement


async def _claim(work: UnitOfWork, claim: Mapping[str, Any]) -> commands.WebhookReceiptBody | None:
    """Take the key for a run. Returns the receipt of the call that has it already, or None."""
    while not await _CLAIM.execute(work, claim):
        row = await _EARLIER.first(work, claim)
        if row is not None:
            return commands.WebhookReceiptBody(run_id=row.run_id, status=row.status, duplicate=True)
    return None


def _started(run_id: Id) -> commands.WebhookReceiptBody:
    return commands.WebhookReceiptBody(run_id=run_id, status=RunStatus.QUEUED, duplicate=False)
