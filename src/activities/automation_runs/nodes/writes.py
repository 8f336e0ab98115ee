"""Nodes whose effect is part of their own transaction: records and notifications."""

from collections.abc import Mapping

from activities.automation_runs.nodes.invocation import Invocation, NodeResult, Transaction
from models.automation.automations.rules.graph import configs
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import Id
from models.data.records import commands, queries
from models.data.records.queries import QueryTooSlowError
from models.data.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from models.data.views.queries import through_its_view
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.people.members import members_with, strangers
from runtime.crypto import KeyRing
from runtime.errors import NotFoundError


class RecordNodes:
    """Handlers of the record kinds; `keys` sign the cursor of a query that has more to show."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def transactions(self) -> Mapping[str, Transaction]:
        """The handler of each record kind."""
        return {
            NodeKind.QUERY_RECORDS: self.query_records,
            NodeKind.CREATE_RECORD: self.create_record,
            NodeKind.UPDATE_RECORD: self.update_record,
            NodeKind.DELETE_RECORD: self.delete_record,
        }

    async def query_records(self, node: Invocation) -> NodeResult:
        """`{records, cursor, count}` of one page."""
        config = configs.QueryRecordsConfig.model_validate(node.parameters)
        place = node.work, node.actor, config.database_id
        query = await through_its_view(*place, config.query)
        found = await queries.ask_records(*place, query, self._keys)
        if found is None:
            raise QueryTooSlowError
        rest = found.model_dump(mode="json", by_alias=True, exclude={"records"})
        records = [record.to_json() for record in found.records]
        return NodeResult({"records": records, **rest, "count": len(records)})

    async def create_record(self, node: Invocation) -> NodeResult:
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

    async def update_record(self, node: Invocation) -> NodeResult:
        """`{record}`, the values merged per key."""
        config = configs.UpdateRecordConfig.model_validate(node.parameters)
        given = config.model_dump(exclude_unset=True, include=_CHANGES)
        body = UpdateRecord.model_validate(given)
        record = await commands.update_record(node.work, node.actor, config.record_id, body)
        _require_database(record, config.database_id)
        return _written(record)

    async def delete_record(self, node: Invocation) -> NodeResult:
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


def _written(record: RecordDetail, **facts: bool) -> NodeResult:
    return NodeResult({"record": record.to_json(), **facts})


async def notify_members(node: Invocation) -> NodeResult:
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
    return NodeResult({"notified": [str(user_id) for user_id in notified]})
