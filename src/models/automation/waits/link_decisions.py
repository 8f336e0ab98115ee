"""Deciding an approval by a link of a mail (ADR 0087).

A link gives what the person has now, and only as somebody the node asks: it is void once they left,
lost the role, or decided, and once the approval, its run or its automation is over.
"""

from dataclasses import dataclass
from datetime import datetime

from models.automation.automations.queries import visible
from models.automation.waits.commands import resume
from models.automation.waits.decision_links import read_link
from models.automation.waits.errors import UnknownLinkError, VoidLinkError
from models.automation.waits.pending import PendingApproval, pending_approval
from models.automation.waits.shapes import ResumeNode
from models.core.access.rules import Actor, Principal, PrincipalType
from models.people.members.queries import role_of
from models.people.users.queries import display_name
from models.people.workspaces.queries import is_open_workspace
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork


@dataclass(frozen=True, slots=True)
class Question:
    """The approval that a link is about, the person who is asked, and the end of the link."""

    approval: PendingApproval
    actor: Actor
    person: str
    expires_at: datetime


async def question_of(work: UnitOfWork, keys: KeyRing, token: str) -> Question:
    """The question that a link asks. Raises UnknownLinkError and VoidLinkError."""
    link = read_link(keys, token)
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
