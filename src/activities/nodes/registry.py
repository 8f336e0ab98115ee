"""The handler of each quick kind."""

from collections.abc import Mapping

from activities.nodes import logic
from activities.nodes.invocation import Handler
from activities.nodes.records import RecordNodes
from models.automations.rules.kinds import NodeKind
from runtime.crypto import KeyRing


def quick_nodes(keys: KeyRing) -> Mapping[str, Handler]:
    """Every quick kind with what it does."""
    records = RecordNodes(keys)
    return {
        NodeKind.CONDITION: logic.condition,
        NodeKind.SWITCH: logic.switch,
        NodeKind.TRANSFORM: logic.transform,
        NodeKind.JOIN: logic.join,
        NodeKind.STOP: logic.stop,
        NodeKind.QUERY_RECORDS: records.query_records,
        NodeKind.CREATE_RECORD: records.create_record,
        NodeKind.UPDATE_RECORD: records.update_record,
        NodeKind.DELETE_RECORD: records.delete_record,
    }
