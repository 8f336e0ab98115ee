"""The parameters of each node kind: config overlaid with input, bindings resolved (C6, C8).

At run time these models check the resolved values; the compiler checks what is static with them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from models.automation.automations.rules.graph.configs.effects import (
    ActionInput,
    HttpAuth,
    HttpRequestConfig,
    NotifyConfig,
    RespondConfig,
    SaveAs,
    SendEmailConfig,
    SendWebhookConfig,
)
from models.automation.automations.rules.graph.configs.logic import (
    ConditionConfig,
    JoinConfig,
    StopConfig,
    SwitchConfig,
    TransformConfig,
)
from models.automation.automations.rules.graph.configs.loops import ForEachConfig, RepeatConfig
from models.automation.automations.rules.graph.configs.records import (
    CreateRecordConfig,
    DeleteRecordConfig,
    QueryRecordsConfig,
    UpdateRecordConfig,
)
from models.automation.automations.rules.graph.configs.waits import (
    ApprovalConfig,
    CallAutomationConfig,
    DelayConfig,
    WaitEventConfig,
)
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import Input

__all__ = [
    "CONFIGS",
    "ActionInput",
    "ApprovalConfig",
    "CallAutomationConfig",
    "ConditionConfig",
    "CreateRecordConfig",
    "DelayConfig",
    "DeleteRecordConfig",
    "ForEachConfig",
    "HttpAuth",
    "HttpRequestConfig",
    "JoinConfig",
    "NotifyConfig",
    "QueryRecordsConfig",
    "RepeatConfig",
    "RespondConfig",
    "SaveAs",
    "SendEmailConfig",
    "SendWebhookConfig",
    "StopConfig",
    "SwitchConfig",
    "TransformConfig",
    "UpdateRecordConfig",
    "WaitEventConfig",
]

CONFIGS: Mapping[NodeKind, type[Input]] = MappingProxyType(
    {
        NodeKind.ACTION: ActionInput,
        NodeKind.HTTP_REQUEST: HttpRequestConfig,
        NodeKind.QUERY_RECORDS: QueryRecordsConfig,
        NodeKind.CREATE_RECORD: CreateRecordConfig,
        NodeKind.UPDATE_RECORD: UpdateRecordConfig,
        NodeKind.DELETE_RECORD: DeleteRecordConfig,
        NodeKind.TRANSFORM: TransformConfig,
        NodeKind.CONDITION: ConditionConfig,
        NodeKind.SWITCH: SwitchConfig,
        NodeKind.FOR_EACH: ForEachConfig,
        NodeKind.REPEAT: RepeatConfig,
        NodeKind.JOIN: JoinConfig,
        NodeKind.DELAY: DelayConfig,
        NodeKind.WAIT_EVENT: WaitEventConfig,
        NodeKind.APPROVAL: ApprovalConfig,
        NodeKind.CALL_AUTOMATION: CallAutomationConfig,
        NodeKind.NOTIFY: NotifyConfig,
        NodeKind.SEND_EMAIL: SendEmailConfig,
        NodeKind.SEND_WEBHOOK: SendWebhookConfig,
        NodeKind.RESPOND: RespondConfig,
        NodeKind.STOP: StopConfig,
    }
)
