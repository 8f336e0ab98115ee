"""Alert rules that are evaluated at once, and what they told."""

from datetime import timedelta
from typing import Any

from pydantic_core import to_json
from sqlalchemy import select, update

from models.automation.alert_rules.commands import create_rule, evaluate_rules
from models.automation.alert_rules.queries import alert_firing, alert_rule, get_rule
from models.automation.alert_rules.shapes import AlertRuleShape, CreateAlertRule
from models.core.access.rules import Actor, Principal, PrincipalType
from models.core.base import Id
from models.messages.notifications.queries import notification
from models.messages.workspace_events.log import workspace_event
from models.people.members import role_of
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.support.patience import eventually
from tests.support.spaces import Space


async def make_rule(
    space: Space, condition: dict[str, Any], actor: Actor | None = None, **values: Any
) -> AlertRuleShape:
    """A rule with a condition."""
    fields = to_json({"label": "Watch it", "condition": condition, **values})
    body = CreateAlertRule.model_validate_json(fields)
    async with space.database.transaction() as work:
        return await create_rule(work, actor or space.actor, new_id(), body)


async def actor_of(space: Space, user_id: Id) -> Actor:
    """A member in a session, with the rights of their role."""
    async with space.database.transaction() as work:
        role = await role_of(work, space.id, user_id)
    assert role is not None
    principal = Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)
    scopes = principal.effective_scopes(role)
    return Actor(principal=principal, workspace_id=space.id, role=role, scopes=scopes)


async def evaluated(space: Space) -> None:
    """Evaluate all rules of a workspace, as if a minute had passed.

    A worker beside may evaluate some, and not have committed yet: it is waited for.
    """
    long_ago = utc_now() - timedelta(minutes=1)
    of_it = alert_rule.c.workspace_id == space.id
    async with space.database.transaction() as work:
        await work.execute(update(alert_rule).where(of_it).values(due_at=long_ago))

    async def none_due() -> bool:
        async with space.database.transaction() as work:
            await evaluate_rules(work)
        due = select(alert_rule.c.id).where(
            of_it, alert_rule.c.enabled, alert_rule.c.due_at <= long_ago
        )
        async with space.database.reading() as work:
            return await work.scalar(due.limit(1)) is None

    await eventually(none_due, what="the evaluation of all rules")


async def state_of(space: Space, rule_id: Id) -> AlertRuleShape:
    """A rule as its owner sees it now."""
    async with space.database.transaction() as work:
        return await get_rule(work, space.actor, rule_id)


async def alerts(space: Space, user_id: Id | None = None) -> list[str]:
    """The titles of the alerts of a member, in the order in which they were told."""
    own = select(notification.c.title).where(
        notification.c.workspace_id == space.id,
        notification.c.kind == "alert",
        notification.c.user_id == (user_id or space.user_id),
    )
    async with space.database.transaction() as work:
        rows = await work.rows(own.order_by(notification.c.created_at, notification.c.id))
    return [row.title for row in rows]


async def alert_events(space: Space) -> list[Any]:
    """The alerts in the log of the workspace, in their order."""
    of_it = select(workspace_event).where(
        workspace_event.c.workspace_id == space.id, workspace_event.c.type.like("alert.%")
    )
    async with space.database.transaction() as work:
        return list(await work.rows(of_it.order_by(workspace_event.c.seq)))


async def firings(space: Space) -> list[Any]:
    """The firings of the rules of a workspace, the first first."""
    of_it = select(alert_firing).where(alert_firing.c.workspace_id == space.id)
    async with space.database.transaction() as work:
        return list(await work.rows(of_it.order_by(alert_firing.c.fired_at)))
