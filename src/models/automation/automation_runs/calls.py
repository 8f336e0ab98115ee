"""Runs that a node of another run calls (decisions C8, call_automation)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import select

from models.automation.automation_runs.acceptance import TOO_LONG, RunRequest, accept, is_too_long
from models.automation.automation_runs.errors import NodeError
from models.automation.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.run_header import RunHeader
from models.automation.automation_runs.start_intents import accepted_start_request, start_request
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import runnable_versions
from models.automation.automations.joins import AUTOMATION, VERSION, automation_of, version_of
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.automation.automations.rules.triggers.payloads import check_payload
from models.core.base import Id, JsonObject
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from runtime.database import UnitOfWork
from runtime.derived_ids import derived_id
from runtime.outbox import StartRequest

CALLABLE = (TriggerKind.AUTOMATION_CALLED, TriggerKind.MANUAL)
"""Triggers of automations that another one can call."""

INPUT_LIMIT = 1024 * 1024
"""Bytes of a run's payload as JSON (decisions C3)."""

ENDED_OTHERWISE = {
    RunStatus.FAILED: "called_run_failed",
    RunStatus.CANCELLED: "called_run_cancelled",
    RunStatus.TIMED_OUT: "called_run_timed_out",
}
"""The code of a node whose called run did not succeed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A node that calls an automation. With `waits`, its run starts and awaits the called run."""

    caller: RunHeader
    node_id: str
    scope_key: str
    automation_id: Id
    payload: JsonObject
    waits: bool
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> Id:
        """The id of the called run: the same each time the node asks for it."""
        return called_run_id(self.caller.run_id, self.node_id, self.scope_key)

    @property
    def chain(self) -> tuple[Id, ...]:
        return (*self.caller.chain, self.caller.run_id)

    @property
    def is_too_deep(self) -> bool:
        """True when the chain of runs would be too long."""
        return is_too_long(self.chain)


def called_run_id(run_id: Id, node_id: str, scope_key: str) -> Id:
    """The id of the run that a node in a scope calls."""
    return derived_id(run_id, node_id, scope_key, "call")


async def accept_call(work: UnitOfWork, call: Call) -> StartRequest:
    """Accept the run; the request that starts it. Repeating it changes nothing.

    Raises NodeError, ValidationError for a payload that the called automation refuses, and
    RunError when its concurrency forbids the run.
    """
    earlier = await accepted_start_request(work, call.run_id)
    if earlier is not None:
        return earlier
    if len(json.dumps(call.payload, ensure_ascii=False).encode("utf-8", "replace")) > INPUT_LIMIT:
        raise NodeError("input_too_large", "The input of the called automation exceeds 1 MiB.")
    caller = call.caller
    version = await runnable_versions.live(work, caller.workspace_id, call.automation_id)
    if version is None:
        raise NodeError(
            "not_runnable",
            "The called automation does not exist, is archived, unpublished or disabled.",
        )
    kind = version.trigger_config["kind"]
    if kind not in CALLABLE:
        raise NodeError("not_callable", f"An automation with the trigger {kind} cannot be called.")
    check_payload(version.trigger_config, call.payload)
    request = RunRequest(
        RunSource.AUTOMATION,
        call.payload,
        attributes=call.attributes,
        run_id=call.run_id,
        parent_run_id=caller.run_id if call.waits else None,
        chain=call.chain,
        started_by_caller=call.waits,
    )
    accepted = await accept(work, caller.actor, version, request)
    return start_request(version, RunSource.AUTOMATION, accepted.attributes)


async def notify_call_loop(work: UnitOfWork, call: Call) -> None:
    """Notify the person who made the calling version that its calls have no end."""
    caller = call.caller
    row = await work.first(
        select(AUTOMATION.label, AUTOMATION.item_id, VERSION.created_by_user_id)
        .select_from(automation_run)
        .join(*automation_of(automation_run))
        .join(*version_of(automation_run))
        .where(automation_run.c.id == caller.run_id)
    )
    if row is None or row.created_by_user_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_LOOP,
        title=f"“{row.label}” was called in a loop",
        body=TOO_LONG,
        item_id=row.item_id,
        run_id=caller.run_id,
        data={"automationId": str(caller.automation_id), "runId": str(caller.run_id)},
        key=f"automation_loop/{call.run_id}",
    )
    await notify(work, caller.workspace_id, [row.created_by_user_id], notice)


class CalledRunEnd(Protocol):
    """The end of a called run, as far as it has come."""

    status: str
    output: JsonObject | None
    error: str | None


async def ended(work: UnitOfWork, run_id: Id) -> CalledRunEnd | None:
    """Status, output and error of a run that has ended; None while it is open."""
    run = automation_run.c
    return await work.first(
        select(run.status, run.output, run.error).where(
            run.id == run_id, run.status.not_in(OPEN_RUN)
        ),
        of=CalledRunEnd,
    )


async def outcome(work: UnitOfWork, workspace_id: Id, run_id: Id) -> CalledRunEnd | None:
    """Status, output and error of a run, open or not; None when it is gone."""
    run = automation_run.c
    return await work.first(
        select(run.status, run.output, run.error).where(
            run.workspace_id == workspace_id, run.id == run_id
        ),
        of=CalledRunEnd,
    )
