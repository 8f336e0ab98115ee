"""Taking a call to a webhook: it starts one run, and a repeated call gives the same run."""

from typing import Any

from sqlalchemy import LargeBinary, and_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.acceptance import RunRequest, accept
from models.automation.automation_runs.joins import RUN, run_of
from models.automation.automation_runs.rules import RunSource, RunStatus
from models.automation.automation_runs.run_header import automation_actor
from models.automation.webhooks.errors import UnverifiedError, WrongMethodError
from models.automation.webhooks.queries import Hook
from models.automation.webhooks.rules.delivery import Delivery
from models.automation.webhooks.rules.payloads import read_payload
from models.automation.webhooks.rules.selection import call_key, deduplication, lets_through
from models.automation.webhooks.rules.verification import is_genuine
from models.automation.webhooks.shapes import WebhookReceiptBody
from models.automation.webhooks.tables import webhook_receipt
from models.core.base import Id, JsonObject
from runtime.bounded_processes import evaluate_bounded
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

FILTERED = WebhookReceiptBody(run_id=None, status="filtered", duplicate=False)
"""The call was valid, but the trigger's filter does not match it."""
SKIPPED = WebhookReceiptBody(run_id=None, status="skipped", duplicate=False)
"""As many runs are open as the automation's concurrency allows."""


async def receive(
    work: UnitOfWork, keys: KeyRing, hook: Hook, delivery: Delivery
) -> WebhookReceiptBody:
    """Start the run of a call, unless the same call did so before.

    Raises WrongMethodError, UnverifiedError, and ValidationError for a body that cannot be read.
    """
    trigger = hook.trigger
    if delivery.method not in trigger.methods:
        raise WrongMethodError(trigger.methods)
    if not is_genuine(trigger, hook.secrets(keys, work.now), delivery, work.now):
        raise UnverifiedError(basic=trigger.auth == "basic")
    payload = read_payload(trigger, delivery)
    if not await evaluate_bounded(lambda: lets_through(trigger, payload, work.now)):
        return FILTERED
    rule = deduplication(trigger, delivery)
    key = None
    if rule is not None:
        key = await evaluate_bounded(lambda: call_key(rule, delivery, payload))
    run_id = new_id()
    if rule is None or key is None:
        return await _start(work, hook, payload, run_id)
    earlier = await _claim(work, hook, key, run_id, rule.window_seconds)
    if earlier is not None:
        return earlier
    receipt = await _start(work, hook, payload, run_id)
    if receipt is SKIPPED:
        # The call started no run, so the same call may try again.
        await _FORGET.execute(work, _place(hook, key))
    return receipt


async def _start(
    work: UnitOfWork, hook: Hook, payload: JsonObject, run_id: Id
) -> WebhookReceiptBody:
    actor = automation_actor(hook.workspace_id, hook.automation_id)
    request = RunRequest(RunSource.WEBHOOK, payload, run_id=run_id)
    accepted = await accept(work, actor, hook.version, request)
    if accepted.skipped:
        return SKIPPED
    return WebhookReceiptBody(run_id=run_id, status=RunStatus.QUEUED, duplicate=False)


_receipt = webhook_receipt.c
_run, _is_its_run = run_of(_receipt.run_id)
_THIS = (
    _receipt.automation_id == bindparam("automation_id"),
    _receipt.key_hash == bindparam("key_hash", type_=LargeBinary),
)
_NEW = upsert(webhook_receipt).values(
    automation_id=bindparam("automation_id"),
    key_hash=bindparam("key_hash", type_=LargeBinary),
    workspace_id=bindparam("workspace_id"),
    run_id=bindparam("run_id"),
    expires_at=bindparam("expires_at", type_=Timestamp),
)
_CLAIM = PreparedStatement(
    _NEW.on_conflict_do_update(
        index_elements=["automation_id", "key_hash"],
        set_={"run_id": _NEW.excluded.run_id, "expires_at": _NEW.excluded.expires_at},
        where=_receipt.expires_at <= bindparam("now", type_=Timestamp),
    )
)
"""Inserting a key that another call has taken waits for the commit of that call."""
_EARLIER = PreparedStatement(
    select(_receipt.run_id, RUN.status)
    .outerjoin(_run, and_(_is_its_run, RUN.workspace_id == _receipt.workspace_id))
    .where(*_THIS)
)
_FORGET = PreparedStatement(delete(webhook_receipt).where(*_THIS))


async def _claim(
    work: UnitOfWork, hook: Hook, key: bytes, run_id: Id, window_seconds: int
) -> WebhookReceiptBody | None:
    """Take the key for a run. Returns the receipt of the call that has it already, or None."""
    claim = {
        **_place(hook, key),
        "workspace_id": hook.workspace_id,
        "run_id": run_id,
        "expires_at": work.now_after(window_seconds),
        "now": work.now,
    }
    while not await _CLAIM.execute(work, claim):
        row = await _EARLIER.first(work, _place(hook, key))
        if row is not None:
            return WebhookReceiptBody(run_id=row.run_id, status=row.status, duplicate=True)
    return None


def _place(hook: Hook, key: bytes) -> dict[str, Any]:
    return {"automation_id": hook.automation_id, "key_hash": key}
