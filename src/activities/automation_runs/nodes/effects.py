"""The effects that leave the machine, by the kind of node or action step that asks for them."""

from collections.abc import Mapping
from functools import partial

from activities.automation_runs.nodes.email import send_email
from activities.automation_runs.nodes.http_request import http_request
from activities.automation_runs.nodes.invocation import Effect, NodeResult, Outgoing
from activities.automation_runs.nodes.saved_answers import SavedAnswers
from activities.automation_runs.nodes.webhook import WebhookNode
from models.automation.automations.rules.graph.kinds import NodeKind
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient


class Effects:
    """The effects with what they need: HTTP and mail clients, keys of workspace secrets, files."""

    def __init__(
        self,
        database: Database,
        keys: KeyRing,
        outbound: OutboundClient,
        mail: MailClient | None,
        store: ObjectStore,
    ) -> None:
        self._database = database
        self._keys = keys
        self._outbound = outbound
        self._mail = mail
        self._saved = SavedAnswers(database, store)

    def by_kind(self) -> Mapping[str, Effect]:
        """The effect of each kind; actions call theirs the same."""
        return {
            NodeKind.HTTP_REQUEST: self.http_request,
            NodeKind.SEND_EMAIL: partial(send_email, self._mail),
            NodeKind.SEND_WEBHOOK: WebhookNode(self._database, self._keys, self._outbound).send,
        }

    async def http_request(self, outgoing: Outgoing) -> NodeResult:
        """Call a URL; what is written carries the key of the effect."""
        return await http_request(self._outbound, self._saved, outgoing)
