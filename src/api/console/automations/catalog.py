"""The catalog of the editor: kinds of nodes and triggers, functions and variables.

The schemas are those of the configs. What people read beside them is here.
"""

import json
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel
from starlette.responses import Response

from api.console.automations.settings import TRIGGER_SENTENCES
from api.console.forms import paged
from api.console.routing import page_router
from api.kernel.representations import Prepared
from api.kernel.routing import ApiRequest
from api.routers.automation.automations import AUTOMATION, READ
from models.automation.automations.rules.graph.catalog import NAMED
from models.automation.automations.rules.graph.configs import CONFIGS
from models.automation.automations.rules.graph.kinds import NODE_KINDS, EdgeOutcome, NodeKind
from models.automation.automations.rules.graph.node_checks import DECIDING, STATIC
from models.automation.automations.rules.graph.outputs import OUTPUTS
from models.automation.automations.rules.language.bindings import RUN_FACTS, SENDERS
from models.automation.automations.rules.triggers import kinds as triggers
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import JsonObject
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.filters.grammar import OPERATOR_NOTES

router = page_router()

_KINDS: Mapping[NodeKind, tuple[str, str, str]] = {
    NodeKind.QUERY_RECORDS: (
        "Find records",
        "Records",
        "Reads the records of a table that match a filter.",
    ),
    NodeKind.CREATE_RECORD: (
        "Create record",
        "Records",
        "Adds a record to a table, or updates a matching one.",
    ),
    NodeKind.UPDATE_RECORD: ("Update record", "Records", "Changes fields of a record."),
    NodeKind.DELETE_RECORD: ("Delete record", "Records", "Moves a record to the trash."),
    NodeKind.CONDITION: ("Condition", "Logic", "Continues on one of two branches: true or false."),
    NodeKind.SWITCH: ("Switch", "Logic", "Continues on the first case that is true."),
    NodeKind.FOR_EACH: ("For each", "Logic", "Runs the nodes of a loop for each item of a list."),
    NodeKind.REPEAT: ("Repeat", "Logic", "Runs the nodes of a loop while an expression is true."),
    NodeKind.JOIN: ("Join", "Logic", "Waits for branches and continues as one."),
    NodeKind.TRANSFORM: ("Transform", "Logic", "Computes values for later nodes."),
    NodeKind.STOP: ("Stop", "Logic", "Ends the run as succeeded or failed."),
    NodeKind.APPROVAL: ("Approval", "Wait", "Asks people to approve or reject."),
    NodeKind.DELAY: ("Delay", "Wait", "Waits for a time or until a date."),
    NodeKind.WAIT_EVENT: (
        "Wait for event",
        "Wait",
        "Waits until someone or another system resumes the run.",
    ),
    NodeKind.NOTIFY: ("Notify", "Messages", "Sends a notification to members."),
    NodeKind.SEND_EMAIL: ("Send email", "Messages", "Sends an email to one or more addresses."),
    NodeKind.HTTP_REQUEST: ("HTTP request", "Calls", "Calls another service over HTTP."),
    NodeKind.SEND_WEBHOOK: (
        "Send webhook",
        "Calls",
        "Sends a signed event to a webhook endpoint or URL.",
    ),
    NodeKind.RESPOND: ("Respond", "Calls", "Sends a response to the webhook caller."),
    NodeKind.ACTION: ("Run action", "Calls", "Runs an action of the workspace."),
    NodeKind.CALL_AUTOMATION: ("Call automation", "Calls", "Runs another automation."),
}
"""Title, group and sentence of each kind, in the order in which the palette lists them."""

_TRIGGERS: Mapping[TriggerKind, tuple[str, type[BaseModel]]] = {
    TriggerKind.MANUAL: ("Manual", triggers.ManualTrigger),
    TriggerKind.SCHEDULE: ("Schedule", triggers.ScheduleTrigger),
    TriggerKind.WEBHOOK: ("Webhook", triggers.WebhookTrigger),
    TriggerKind.FORM_SUBMITTED: ("Form submitted", triggers.FormSubmittedTrigger),
    TriggerKind.RECORD_CREATED: ("Record created", triggers.RecordTrigger),
    TriggerKind.RECORD_UPDATED: ("Record updated", triggers.RecordTrigger),
    TriggerKind.RECORD_DELETED: ("Record deleted", triggers.RecordTrigger),
    TriggerKind.RECORD_MATCHES: ("Record matches", triggers.RecordMatchesTrigger),
    TriggerKind.RECORD_DATE_REACHED: ("Date reached", triggers.RecordDateReachedTrigger),
    TriggerKind.BUTTON_PRESSED: ("Button pressed", triggers.ButtonPressedTrigger),
    TriggerKind.DATA_SOURCE_FINISHED: (
        "Data source refreshed",
        triggers.DataSourceFinishedTrigger,
    ),
    TriggerKind.AUTOMATION_FAILED: ("Automation failed", triggers.AutomationFailedTrigger),
    TriggerKind.AUTOMATION_CALLED: ("Called by automation", triggers.AutomationCalledTrigger),
    TriggerKind.TIME_ENTRY_COMPLETED: (
        "Time entry completed",
        triggers.TimeEntryCompletedTrigger,
    ),
}

_OUTCOMES: Mapping[EdgeOutcome, str] = {
    EdgeOutcome.ALWAYS: "Next",
    EdgeOutcome.SUCCESS: "On success",
    EdgeOutcome.TRUE: "True",
    EdgeOutcome.FALSE: "False",
    EdgeOutcome.CASE: "Case",
    EdgeOutcome.DEFAULT: "Otherwise",
    EdgeOutcome.ITEM: "For each item",
    EdgeOutcome.DONE: "Done",
    EdgeOutcome.APPROVED: "Approved",
    EdgeOutcome.REJECTED: "Rejected",
    EdgeOutcome.TIMEOUT: "Timed out",
    EdgeOutcome.FAILURE: "On failure",
    EdgeOutcome.FINALLY: "Finally",
}


@router.get(f"{AUTOMATION.removeprefix('/v1')}/edit/catalog", access=paged(READ))
async def get_editor_catalog(request: ApiRequest) -> Response:
    """Get what the editor offers: kinds of nodes and triggers, functions and variables."""
    return _prepared().answer(request)


@cache
def _prepared() -> Prepared:
    kept = {"Cache-Control": "private, no-cache"}
    return Prepared.of(json.dumps(catalog()).encode(), "application/json", kept)


def catalog() -> JsonObject:
    """The catalog, which is the same for every automation."""
    return {
        "kinds": [_kind(kind, *row) for kind, row in _KINDS.items()],
        "triggers": [_trigger(kind, *row) for kind, row in _TRIGGERS.items()],
        "functions": [
            {"name": one.name, "signature": one.call, "description": one.says} for one in FUNCTIONS
        ],
        "variables": [
            {"name": name, "description": says, "keys": list(keys)}
            for name, says, keys in _VARIABLES
        ],
        "operators": [
            {"name": op, "description": note.says} for op, note in OPERATOR_NOTES.items()
        ],
    }


_VARIABLES = (
    ("trigger", "The data that started the run.", ()),
    ("nodes", "The outputs of earlier nodes, by their ids.", ()),
    ("item", "The item of the loop around the node.", ()),
    ("index", "The number of the iteration, from 0.", ()),
    ("run", "Facts of the run.", RUN_FACTS),
    ("vars", "The variables of the automation.", ()),
)


def _kind(kind: NodeKind, title: str, group: str, says: str) -> JsonObject:
    outcomes = NODE_KINDS[kind].outcomes
    output = OUTPUTS[kind]
    return {
        "kind": kind.value,
        "title": title,
        "group": group,
        "description": says,
        "outcomes": [
            {"name": one.value, "label": label}
            for one, label in _OUTCOMES.items()
            if one in outcomes
        ],
        "schema": CONFIGS[kind].model_json_schema(by_alias=True),
        "fixed": sorted(_fixed(kind)),
        "secrets": kind in SENDERS,
        "output": {
            "keys": [
                {"name": key, "description": schema.get("description", "")}
                for key, schema in output.keys.items()
            ],
            "parameter": output.parameter,
        },
    }


def _fixed(kind: NodeKind) -> set[str]:
    """The keys of a config whose value is no binding."""
    named = {NAMED[kind]} if kind in NAMED else set()
    return {*STATIC.get(kind, ()), *DECIDING.get(kind, ()), *named}


def _trigger(kind: TriggerKind, title: str, model: type[BaseModel]) -> JsonObject:
    return {
        "kind": kind.value,
        "title": title,
        "description": TRIGGER_SENTENCES[kind],
        "schema": model.model_json_schema(by_alias=True),
    }
