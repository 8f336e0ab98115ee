"""The send_email node: one mail of plain text over the operator's server."""

from activities.automation_runs.nodes.http_request import storable
from activities.automation_runs.nodes.invocation import NodeResult, Outgoing
from models.automation.automation_runs.errors import NodeError
from models.automation.automations.rules.graph.configs import SendEmailConfig
from runtime.derived_ids import derived_id
from runtime.outbound.mail import Mail, MailClient, MailRefusedError


async def send_email(client: MailClient | None, outgoing: Outgoing) -> NodeResult:
    """`{messageId, accepted, refused}`, once the server took the mail for one recipient at least.

    While the server defers recipients and attempts are left, nobody gets the mail. Raises
    NodeError for a refusal (4xx is retryable) and OutboundError when there is no answer.
    """
    if client is None:
        raise NodeError(
            "email_not_configured",
            "No mail server is configured. An operator sets WORKSPACE_SMTP_URL and"
            " WORKSPACE_SMTP_FROM.",
        )
    config = SendEmailConfig.model_validate(storable(outgoing.parameters))
    domain = client.server.sender.rpartition("@")[2]
    message_id = f"<{derived_id('mail', outgoing.key)}@{domain}>"
    mail = Mail(
        to=list(dict.fromkeys(config.to)),
        subject=config.subject,
        body=config.body,
        message_id=message_id,
        whole=not outgoing.last,
    )
    try:
        handed = await client.send(mail)
    except MailRefusedError as error:
        retryable = 400 <= error.reply < 500
        raise NodeError(f"smtp_{error.reply}", error.message, retryable=retryable) from None
    return NodeResult(
        {
            "messageId": message_id,
            "accepted": list(handed.accepted),
            "refused": [{"address": one.address, "status": one.status} for one in handed.refused],
        }
    )
