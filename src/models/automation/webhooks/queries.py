"""Reading the webhook behind a token, and what the run of a call answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import Text, bindparam, select

from models.automation.automation_runs.outputs import FIRST_RESPONSE
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import runnable_versions
from models.automation.automations.rules.triggers.configs import read_trigger
from models.automation.automations.rules.triggers.kinds import TriggerKind, WebhookTrigger
from models.automation.automations.rules.webhook_secrets import webhook_secret_place
from models.automation.automations.runnable_versions import RunnableVersion
from models.automation.automations.tables import automation, automation_graph
from models.automation.secrets.rules import secret_place
from models.automation.secrets.tables import workspace_secret
from models.core.base import Id, JsonObject
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement


class HookedVersion(RunnableVersion, Protocol):
    """A version that a webhook runs, with the sealed secrets that verify a call."""

    @property
    def workspace_id(self) -> Id: ...
    @property
    def sealed_webhook_secret(self) -> bytes: ...
    @property
    def sealed_previous_webhook_secret(self) -> bytes | None: ...
    @property
    def previous_webhook_secret_until(self) -> datetime | None: ...
    @property
    def sealed_value(self) -> bytes | None: ...


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


_trigger = automation_graph.c.trigger_config

_HOOK = PreparedStatement(
    runnable_versions.LIVE.add_columns(
        automation.c.workspace_id,
        automation.c.sealed_webhook_secret,
        automation.c.sealed_previous_webhook_secret,
        automation.c.previous_webhook_secret_until,
        workspace_secret.c.sealed_value,
    )
    .outerjoin(
        workspace_secret,
        (workspace_secret.c.workspace_id == automation.c.workspace_id)
        & (workspace_secret.c.name == _trigger["secretName"].astext),
    )
    .where(
        automation.c.webhook_token == bindparam("token", type_=Text),
        _trigger["kind"].astext == TriggerKind.WEBHOOK.value,
    ),
    HookedVersion,
)


async def find_hook(work: UnitOfWork, token: str) -> Hook:
    """The webhook behind a token. Every reason for a refusal gives the same error.

    Raises NotFoundError unless a published, enabled automation with this trigger has the token.
    """
    row = await _HOOK.first(work, {"token": "" if "\x00" in token else token})
    if row is None:
        raise NotFoundError("webhook")
    trigger = read_trigger(row.trigger_config)
    assert isinstance(trigger, WebhookTrigger), "the statement asks for this kind"
    return Hook(row.workspace_id, row.automation_id, trigger, row)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """The state of a run; `response` is the output of its respond node, once one has run."""

    status: RunStatus
    output: JsonObject | None
    response: JsonObject | None

    @property
    def ended(self) -> bool:
        return self.status not in OPEN_RUN


_ANSWER = PreparedStatement(
    select(automation_run.c.status, automation_run.c.output, FIRST_RESPONSE).where(
        automation_run.c.workspace_id == bindparam("workspace_id"),
        automation_run.c.id == bindparam("run_id"),
    )
)


async def run_answer(work: UnitOfWork, workspace_id: Id, run_id: Id) -> RunAnswer | None:
    """The answer of a run so far; None when the run has been deleted."""
    row = await _ANSWER.first(work, {"workspace_id": workspace_id, "run_id": run_id})
    return None if row is None else RunAnswer(RunStatus(row[0]), row[1], row[2])
