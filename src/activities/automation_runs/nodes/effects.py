"""The effects that leave the machine, by the kind of node or action step that asks for them."""

from collections.abc import Mapping
from functools import partial

from activities.automation_runs.nodes.email import send_email
from activities.automation_runs.nodes.http_request import http_request
from activities.automation_runs.nodes.invocation import Effect
from activities.automation_runs.nodes.saved_answers import SavedAnswers
from activities.automation_runs.nodes.webhook import WebhookNode
from models.automation.automations.rules.graph.kinds import NodeKind
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.mail import MailClient


def effects_by_kind(
    database: Database,
    keys: KeyRing,
    outbound: OutboundClient,
    mail: MailClient | None,
    store: ObjectStore,
) -> Mapping[str, Effect]:
    """The effect of each kind; actions call theirs the same."""
    return {
        NodeKind.HTTP_REQUEST: partial(http_request, outbound, SavedAnswers(database, store)),
        NodeKind.SEND_EMAIL: partial(send_email, mail),
        NodeKind.SEND_WEBHOOK: WebhookNode(database, keys, outbound).send,
    }
