"""The table of calls whose repetition starts no second run, and its retention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.rules import RunStatus
from models.automation.automations import runnable_versions
from models.automation.automations.queries import AUTOMATION, GRAPH
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import TriggerKind, WebhookTrigger
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.automations.tables import webhook_secret_place
from models.automation.inbox.commands import keep
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received, shortened
from models.automation.secrets.rules import secret_place
from models.automation.secrets.store import sealed_secret
from models.automation.webhooks import rules
from models.core.base import Id, JsonObject, Shape
from models.core.purging import Retention
from runtime import errors
from runtime.crypto import KeyRing
from runtime.database import Work
from runtime.ids import new_id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


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


class HookedVersion(RunnableVersion, Protocol):
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
