"""Approvals: the people asked and reminded, and decisions by a link of a mail.

The link (ADR 0087) gives the present rights of the person, and only as an assignee of the node. It
is void once they left, lost the role, or decided, and once the approval, its run or its automation
is over.
"""

from dataclasses import dataclass
from datetime import datetime

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.run_header import RunHeader
from models.automation.automations.queries import item_of_automation, visible
from models.automation.automations.rules.graph.configs import ApprovalConfig
from models.automation.waits.commands import ResumeNode, resume
from models.automation.waits.links import read_decision_link
from models.automation.waits.queries import PendingApproval, pending_approval
from models.automation.waits.rules import UnknownLinkError, VoidLinkError
from models.automation.waits.store import find_wait, read_responses
from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.core.base import Id
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.members import members_with, role_of
from models.people.users import display_name
from models.people.workspaces import is_open_workspace
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A node that asks people to decide; `label` is what a person calls it."""

    run: RunHeader
    key: NodeKey
    label: str


async def ask_approvers(work: UnitOfWork, request: ApprovalRequest) -> None:
    """Notify everyone who may decide."""
    await _notify_approvers(work, request, "asked")


async def remind_approvers(work: UnitOfWork, request: ApprovalRequest, number: int) -> bool:
    """Notify again everyone who has not decided. Returns False when the wait is over."""
    return await _notify_approvers(work, request, f"reminded/{number}")


async def _notify_approvers(work: UnitOfWork, request: ApprovalRequest, occasion: str) -> bool:
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
    """The assignees, and the members with the role; the starter of the run only if allowed."""
    deciders = set(config.assignees)
    if config.role is not None:
        deciders.update(await members_with(work, run.workspace_id, Role(config.role)))
    return deciders if config.allow_self else deciders - {run.created_by_user_id}


async def _notice(
    work: UnitOfWork, request: ApprovalRequest, config: ApprovalConfig, occasion: str
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


@dataclass(frozen=True, slots=True)
class Question:
    """The approval that a link is about, the person who is asked, and the end of the link."""

    approval: PendingApproval
    actor: Actor
    person: str
    expires_at: datetime


async def question_of(work: UnitOfWork, keys: KeyRing, token: str) -> Question:
    """The question that a link asks. Raises UnknownLinkError and VoidLinkError."""
    link = read_decision_link(keys, token)
    if link is None:
        raise UnknownLinkError
    role = await role_of(work, link.workspace_id, link.user_id)
    if role is None or link.expires_at <= work.now:
        raise VoidLinkError
    if not await is_open_workspace(work, link.workspace_id):
        raise VoidLinkError
    principal = Principal(type=PrincipalType.SESSION, id=link.user_id, user_id=link.user_id)
    # Without a scope: the link decides this one thing, and reads nothing else.
    actor = Actor(principal=principal, workspace_id=link.workspace_id, role=role)
    approval = await pending_approval(work, actor, link.address)
    if approval is None:
        raise VoidLinkError
    places = [link.workspace_id]
    if await visible(work, places, approval.automation_id, link.user_id) is None:
        raise VoidLinkError
    person = await display_name(work, link.user_id)
    return Question(approval, actor, person, link.expires_at)


async def decide_by_link(work: UnitOfWork, question: Question, response: ResumeNode) -> None:
    """Take the decision of the person. Raises ValidationError, and ConflictError for a late one."""
    approval = question.approval
    await resume(
        work,
        question.actor,
        approval.automation_id,
        approval.run_id,
        approval.node_id,
        response.model_copy(update={"scope_key": approval.scope_key}),
    )
