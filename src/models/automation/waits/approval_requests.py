"""Requests to the people who may decide an approval, and reminders."""

from dataclasses import dataclass

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.run_header import RunHeader
from models.automation.automations.queries import item_of_automation
from models.automation.automations.rules.graph.configs import ApprovalConfig
from models.automation.waits.store import find_wait, read_responses
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.members.queries import members_with
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Request:
    """A node that asks people to decide; `label` is what a person calls it."""

    run: RunHeader
    key: NodeKey
    label: str


async def ask(work: UnitOfWork, request: Request) -> None:
    """Notify everybody who may decide."""
    await _notify_approvers(work, request, "asked")


async def remind(work: UnitOfWork, request: Request, number: int) -> bool:
    """Notify again everyone who has not decided. Returns False when the wait is over."""
    return await _notify_approvers(work, request, f"reminded/{number}")


async def _notify_approvers(work: UnitOfWork, request: Request, occasion: str) -> bool:
    row = await find_wait(work, request.key)
    if row is None or row.outcome is not None:
        return False
    config = ApprovalConfig.model_validate(row.terms)
    decided = {one.user_id for one in read_responses(row)}
    deciders = await _deciders(work, request.run, config)
    undecided = {user_id for user_id in deciders if str(user_id) not in decided}
    await notify(
        work,
        request.run.workspace_id,
        undecided,
        await _notice(work, request, config, occasion),
    )
    return True


async def _deciders(work: UnitOfWork, run: RunHeader, config: ApprovalConfig) -> set[Id]:
    """The assignees, and the members with the role; whoever started the run only if allowed."""
    deciders = set(config.assignees)
    if config.role is not None:
        deciders.update(await members_with(work, run.workspace_id, Role(config.role)))
    return deciders if config.allow_self else deciders - {run.created_by_user_id}


async def _notice(
    work: UnitOfWork, request: Request, config: ApprovalConfig, occasion: str
) -> Notice:
    run, key = request.run, request.key
    item_id = await item_of_automation(work, run.workspace_id, run.automation_id)
    return Notice(
        kind=NotificationKind.APPROVAL_REQUEST,
        title=config.title or f"“{request.label}” needs your decision",
        body=config.message,
        item_id=item_id,
        run_id=run.run_id,
        actor_user_id=run.created_by_user_id,
        data={
            "automationId": str(run.automation_id),
            "runId": str(run.run_id),
            "nodeId": key.node_id,
            "scopeKey": key.scope_key,
        },
        key=f"{occasion}/{key.run_id}/{key.node_id}/{key.scope_key}",
    )
