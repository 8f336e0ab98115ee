"""The notify node and the send_notification step: they notify in the node's own transaction."""

from activities.automation_runs.nodes.invocation import Invocation, NodeResult
from models.automation.automations.rules.graph.configs import NotifyConfig
from models.messages.notification_preferences.kinds import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.members.queries import members_with, strangers
from runtime.errors import NotFoundError


async def notify_members(node: Invocation) -> NodeResult:
    """`{notified}`: the ids of the members told. Raises NotFoundError for one who is no member."""
    config = NotifyConfig.model_validate(node.parameters)
    workspace_id, principal = node.actor.workspace_id, node.actor.principal
    if config.role is not None:
        user_ids = await members_with(node.work, workspace_id, config.role)
    else:
        user_ids = config.user_ids or []
        if await strangers(node.work, workspace_id, user_ids):
            raise NotFoundError("user")
    origin = "actionId" if principal.run_id is None else "automationId"
    notice = Notice(
        kind=NotificationKind.SYSTEM,
        title=config.title,
        body=config.body,
        run_id=principal.run_id,
        actor_user_id=node.actor.person,
        data={origin: str(principal.id)},
    )
    notified = await notify(node.work, workspace_id, user_ids, notice)
    return NodeResult({"notified": [str(user_id) for user_id in notified]})
