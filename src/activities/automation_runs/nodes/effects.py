"""The effects of nodes by kind: in their own transaction, or outside, without secrets."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pydantic

from activities.automation_runs.nodes import http_request as node_http_request
from activities.automation_runs.nodes import invocation
from activities.connections import ConnectionUseError, SignIn, noted_call, sign_in
from activities.database_errors import DATABASE_AWAY
from activities.turns import CallHeldError
from activities.webhook_calls import Receiver, WebhookCall
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.graph import configs
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language import bindings
from models.automation.secrets.store import secret_values
from models.core.base import Id, JsonObject
from models.core.http_requests import HIDDEN, Place, as_it_is, credentials_in, hidden
from models.data.records import commands, queries
from models.data.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from models.data.views.queries import through_its_view
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.webhook_endpoints.store import existing_endpoint, secrets_of
from models.messages.webhook_signing import signing_secret
from models.people.members import members_with, strangers
from runtime.clock import wire_timestamp
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError, PlatformError
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError
from runtime.outbound.mail import Mail, MailClient, MailRefusedError
from runtime.redaction import Redaction


class RecordNodes:
    """Handlers of the record kinds; `keys` sign the cursor of a query that has more to show."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def transactions(self) -> Mapping[str, invocation.Transaction]:
        """The handler of each record kind."""
        return {
            NodeKind.QUERY_RECORDS: self.query_records,
            NodeKind.CREATE_RECORD: self.create_record,
            NodeKind.UPDATE_RECORD: self.update_record,
            NodeKind.DELETE_RECORD: self.delete_record,
        }

    async def query_records(self, node: invocation.Invocation) -> invocation.NodeResult:
        """`{records, cursor, count}` of one page."""
        config = configs.QueryRecordsConfig.model_validate(node.parameters)
        place = node.work, node.actor, config.database_id
        query = await through_its_view(*place, config.query)
        found = await queries.ask_records(*place, query, self._keys)
        if found is None:
            raise queries.QueryTooSlowError
        rest = found.model_dump(mode="json", by_alias=True, exclude={"records"})
        records = [record.to_json() for record in found.records]
        return invocation.NodeResult({"records": records, **rest, "count": len(records)})

    async def create_record(self, node: invocation.Invocation) -> invocation.NodeResult:
        """`{record, created}`; with `upsertBy`, `created` tells whether it is new."""
        config = configs.CreateRecordConfig.model_validate(node.parameters)
        body = CreateRecord(title=config.title, data=config.data, relations=config.relations)
        if config.upsert_by:
            upserted = await commands.upsert_record(
                node.work, node.actor, config.database_id, config.upsert_by, body
            )
            return _written(upserted.record, created=upserted.created)
        record = await commands.create_record(node.work, node.actor, config.database_id, body)
        return _written(record, created=True)

    async def update_record(self, node: invocation.Invocation) -> invocation.NodeResult:
        """`{record}`, the values merged per key."""
        config = configs.UpdateRecordConfig.model_validate(node.parameters)
        given = config.model_dump(exclude_unset=True, include=_CHANGES)
        body = UpdateRecord.model_validate(given)
        record = await commands.update_record(node.work, node.actor, config.record_id, body)
        _require_database(record, config.database_id)
        return _written(record)

    async def delete_record(self, node: invocation.Invocation) -> invocation.NodeResult:
        """`{record}` as it was."""
        config = configs.DeleteRecordConfig.model_validate(node.parameters)
        record = await commands.delete_record(node.work, node.actor, config.record_id)
        _require_database(record, config.database_id)
        return _written(record)


_CHANGES = {"title", "data", "relations"}


def _require_database(record: RecordDetail, database_id: Id | None) -> None:
    """Raises NotFoundError for a record of another database; the transaction takes it back."""
    if database_id is not None and record.database_id != database_id:
        raise NotFoundError("record")


def _written(record: RecordDetail, **facts: bool) -> invocation.NodeResult:
    return invocation.NodeResult({"record": record.to_json(), **facts})


async def notify_members(node: invocation.Invocation) -> invocation.NodeResult:
    """`{notified}`: the ids of the notified members. Raises NotFoundError for a user who is not a
    member.
    """
    config = configs.NotifyConfig.model_validate(node.parameters)
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
    return invocation.NodeResult({"notified": [str(user_id) for user_id in notified]})


async def send_email(
    client: MailClient | None, outgoing: invocation.Outgoing
) -> invocation.NodeResult:
    """`{messageId, accepted, refused}`, once the server took the mail for one recipient at least.

    While the server defers recipients and attempts are left, the mail is sent to none of them.
    Raises NodeError for a refusal (4xx is retryable) and OutboundError when there is no answer.
    """
    if client is None:
        raise NodeError(
            "email_not_configured",
            "No mail server is configured. An operator can set WORKSPACE_SMTP_URL and"
            " WORKSPACE_SMTP_FROM.",
        )
    config = configs.SendEmailConfig.model_validate(node_http_request.storable(outgoing.parameters))
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
        # SMTP: 4xx is transient and 5xx is permanent (RFC 5321, 4.2.1).
        retryable = 400 <= error.reply < 500
        raise NodeError(f"smtp_{error.reply}", error.message, retryable=retryable) from None
    return invocation.NodeResult(
        {
            "messageId": message_id,
            "accepted": list(handed.accepted),
            "refused": [{"address": one.address, "status": one.status} for one in handed.refused],
        }
    )


class WebhookNode:
    """Sends events of runs."""

    def __init__(self, database: Database, keys: KeyRing, outbound: OutboundClient) -> None:
        self._database = database
        self._keys = keys
        self._outbound = outbound

    async def send(self, outgoing: invocation.Outgoing) -> invocation.NodeResult:
        """`{webhookId, status}` of an answer 2xx; id and body are constant over attempts.

        Raises NodeError for any other status, with the answer, and for an endpoint that takes
        nothing, and OutboundError when there is no answer.
        """
        config = configs.SendWebhookConfig.model_validate(outgoing.parameters)
        async with self._database.transaction() as work:
            receiver = await self._receiver(work, outgoing.workspace_id, config)
        call = WebhookCall(
            receiver,
            str(derived_id("webhook", outgoing.key)),
            {
                "type": config.type,
                "timestamp": wire_timestamp(outgoing.began_at),
                "data": node_http_request.storable(config.data),
            },
        )
        response = await call.send(self._outbound)
        if not 200 <= response.status < 300:
            failure = node_http_request.unexpected(response)
            failure.output = {"webhookId": call.message_id, **(failure.output or {})}
            raise failure
        return invocation.NodeResult({"webhookId": call.message_id, "status": response.status})

    async def _receiver(
        self, work: UnitOfWork, workspace_id: Id, config: configs.SendWebhookConfig
    ) -> Receiver:
        """An endpoint with its own secrets, or the URL with the workspace's."""
        if config.endpoint_id is None:
            assert config.url is not None, "the config has one of the two"
            return Receiver(config.url, [await signing_secret(work, self._keys, workspace_id)])
        endpoint = await existing_endpoint(work, workspace_id, config.endpoint_id)
        if endpoint is None:
            raise NodeError("endpoint_deleted", "The webhook endpoint was deleted.")
        if not endpoint.enabled:
            raise NodeError("endpoint_disabled", "The webhook endpoint is disabled.")
        return Receiver(endpoint.url, secrets_of(self._keys, endpoint, work.now))


def effects_by_kind(
    database: Database,
    keys: KeyRing,
    outbound: OutboundClient,
    mail: MailClient | None,
    store: ObjectStore,
) -> Mapping[str, invocation.Effect]:
    """The effect of each kind; actions call theirs the same."""
    return {
        NodeKind.HTTP_REQUEST: partial(
            node_http_request.http_request,
            outbound,
            node_http_request.SavedAnswers(database, store),
        ),
        NodeKind.SEND_EMAIL: partial(send_email, mail),
        NodeKind.SEND_WEBHOOK: WebhookNode(database, keys, outbound).send,
    }


RECOGNIZABLE = 6
"""Characters that credentials have at least to be looked for in what comes back."""
_FAILS = frozenset({"connection_error", "http_401", "http_403", "http_407"})
"""Codes of failures that make a connection fail: its credentials were deleted or refused."""
UNSAID = " The response is hidden, because the call sends a secret."


class Secrecy:
    """Gives effects the secrets their parameters are marked with, and keeps them from the run."""

    def __init__(self, database: Database, keys: KeyRing) -> None:
        self._database = database
        self._keys = keys

    def around(self, effects: Mapping[str, invocation.Effect]) -> Mapping[str, invocation.Effect]:
        """The same effects; neither their results nor their failures hold a secret."""
        return {kind: partial(self._send, effect) for kind, effect in effects.items()}

    async def _send(
        self, effect: invocation.Effect, outgoing: invocation.Outgoing
    ) -> invocation.NodeResult:
        connection_id = outgoing.parameters.get("connectionId")
        place = (self._database, outgoing.workspace_id)
        async with noted_call(*place, connection_id and Id(connection_id), _reason):
            return await self._sent(effect, outgoing)

    async def _sent(
        self, effect: invocation.Effect, outgoing: invocation.Outgoing
    ) -> invocation.NodeResult:
        secrets = await self._named(outgoing)
        parameters = await self._signed_in(
            outgoing, bindings.revealed(outgoing.parameters, secrets)
        )
        marks = {secret: bindings.SecretMark.of(name) for name, secret in secrets.items()}
        redaction = Redaction({**dict.fromkeys(credentials(parameters), HIDDEN), **marks})
        if not redaction:
            return await effect(replace(outgoing, parameters=parameters))
        try:
            result = await effect(replace(outgoing, parameters=parameters, redaction=redaction))
        # Neither is a failure of the effect, and neither quotes what was sent.
        except (*DATABASE_AWAY, CallHeldError):
            raise
        except Exception as error:  # noqa: BLE001  # its text may quote the request
            raise discreet(error, redaction) from None
        return replace(result, output=redaction.value(result.output))

    async def _signed_in(self, outgoing: invocation.Outgoing, parameters: JsonObject) -> JsonObject:
        """The parameters with the credentials of the connection they are sent with, if any.

        Raises NodeError for a connection that is of no use.
        """
        values, workspace_id = dict(parameters), outgoing.workspace_id
        connection_id = values.pop("connectionId", None)
        if connection_id is None:
            return values
        try:
            async with self._database.statement() as work:
                url = str(values.get("url"))
                found = await sign_in(work, self._keys, workspace_id, Id(connection_id), url)
        except ConnectionUseError as error:
            raise NodeError("connection_error", error.message) from None
        return values if found.scheme == "none" else {**values, "auth": _auth_of(found)}

    async def _named(self, outgoing: invocation.Outgoing) -> Mapping[str, str]:
        """The named secrets, by name. Raises BindingError for one that was deleted."""
        names = frozenset(bindings.marked_names(outgoing.parameters))
        if not names:
            return {}
        async with self._database.statement() as work:
            secrets = await secret_values(work, self._keys, outgoing.workspace_id, names)
        for name in sorted(names - secrets.keys()):
            raise bindings.BindingError(bindings.no_secret(name))
        return secrets


def _reason(error: Exception) -> str | None:
    """The reason that a call failed for, if another call through its connection would, too."""
    if not isinstance(error, NodeError | OutboundError):
        return None
    fails = error.code in _FAILS or error.code.startswith("http_5")
    if not error.code.startswith("http_"):
        fails = fails or error.retryable
    return error.message if fails else None


def _auth_of(found: SignIn) -> JsonObject:
    """The sign-in of a connection, in the form of a call's config."""
    match found.scheme:
        case "bearer":
            return {"type": "bearer", "token": found.credential}
        case "basic":
            username, _, password = found.credential.partition(":")
            return {"type": "basic", "username": username, "password": password}
        case _:
            return {"type": "header", "name": found.header_name, "value": found.credential}


def discreet(error: Exception, redaction: Redaction) -> Exception:
    """The failure of an effect that sent a secret: what the other side said is left out.

    It may hold a part of the secret, or the secret in a spelling that the redaction does not know.
    """
    if not isinstance(error, PlatformError | pydantic.ValidationError):
        # An unexpected error is logged, and its text may quote anything.
        return RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
    failure = invocation.failure_of(error)
    message = failure.message
    if isinstance(error, NodeError) and error.quoted:
        message = error.message + UNSAID
    return NodeError(
        failure.code,
        redaction.text(message),
        retryable=failure.retryable,
        retry_after=failure.retry_after,
        output=failure.output and redaction.value(failure.output),
    )


def credentials(parameters: JsonObject) -> Iterator[str]:
    """The credentials a call sends, whether it names a secret or has it from data."""
    auth = parameters.get("auth")
    given = dict(auth) if isinstance(auth, dict) else {}
    if given.get("type") == "basic":
        given["pair"] = f"{given.get('username')}:{given.get('password')}"
    values = [given.get(key) for key in ("token", "password", "value", "pair")]
    for value in values + [one.value for one in credentials_in(_sent(parameters, _NAMED))]:
        if isinstance(value, str):
            # The secret part of an Authorization header follows its scheme.
            parts = {value, value.partition(" ")[2]}
            yield from (part for part in parts if len(part) >= RECOGNIZABLE)


def without_credentials(parameters: JsonObject) -> JsonObject:
    """Parameters as a run may show them."""
    shown = {**parameters, **hidden(_sent(parameters, (*_NAMED, "url")), _unmarked)}
    if auth := shown.get("auth"):
        kind = auth.get("type") if isinstance(auth, dict) else None
        shown["auth"] = {"type": kind, "redacted": True}
    return shown


def _unmarked(value: object) -> Iterator[tuple[Place, object]]:
    """The value written out in a parameter: a mark only names a secret."""
    if not isinstance(value, bindings.SecretMark):
        yield from as_it_is(value)


_NAMED = ("headers", "query")


def _sent(parameters: JsonObject, keys: Collection[str]) -> JsonObject:
    """These of the parameters, as far as they are there."""
    return {key: parameters[key] for key in keys if key in parameters}
