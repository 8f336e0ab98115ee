"""Reading the webhook behind a token, and what the run of a call answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Text, bindparam

from models.automation.automations import runnable_versions
from models.automation.automations.joins import AUTOMATION, GRAPH
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import TriggerKind, WebhookTrigger
from models.automation.automations.rules.webhook_secrets import webhook_secret_place
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.secrets.queries import sealed_secret
from models.automation.secrets.rules import secret_place
from models.core.base import Id
from runtime.crypto import KeyRing
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work


class HookedVersion(RunnableVersion, Protocol):
    """A version that a webhook runs, with the sealed secrets that verify a call."""

    workspace_id: Id
    sealed_webhook_secret: bytes
    sealed_previous_webhook_secret: bytes | None
    previous_webhook_secret_until: datetime | None
    sealed_value: bytes | None


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook that takes calls; `version` is what a call runs."""

    workspace_id: Id
    automation_id: Id
    trigger: WebhookTrigger
    version: HookedVersion

    def secrets(self, keys: KeyRing, now: datetime) -> list[str]:
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
        if previous is not None and until is not None and until > now:
            sealed.append(previous)
        place = webhook_secret_place(self.automation_id)
        return [keys.unseal(one, place).decode() for one in sealed]


_trigger = GRAPH.trigger_config

_HOOK = PreparedStatement(
    runnable_versions.LIVE.add_columns(
        AUTOMATION.workspace_id,
        AUTOMATION.sealed_webhook_secret,
        AUTOMATION.sealed_previous_webhook_secret,
        AUTOMATION.previous_webhook_secret_until,
        sealed_secret(AUTOMATION.workspace_id, _trigger["secretName"].astext),
    ).where(
        AUTOMATION.webhook_token == bindparam("token", type_=Text),
        _trigger["kind"].astext == TriggerKind.WEBHOOK.value,
    ),
    HookedVersion,
)


async def find_hook(work: Work, token: str) -> Hook:
    """The webhook behind a token. Every reason for a refusal gives the same error.

    Raises NotFoundError unless a published, enabled automation with this trigger has the token.
    """
    row = await _HOOK.first(work, {"token": "" if "\x00" in token else token})
    if row is None:
        raise NotFoundError("webhook")
    trigger = read_trigger(row.trigger_config)
    assert isinstance(trigger, WebhookTrigger), "the statement asks for this kind"
    return Hook(row.workspace_id, row.automation_id, trigger, row)
