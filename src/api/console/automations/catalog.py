"""The catalog of the editor: kinds of nodes and triggers, functions and variables.

Schemas come from the configs. Titles, sentences, labels and hints are here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import Response

from api.console.automations.settings import TRIGGER_SENTENCES
from api.console.views.routes import OPERATOR_WORDS, operators_of
from api.kernel.representations import Prepared
from api.kernel.routing import ApiRequest, Data, Router
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from models.automation.automations import queries as automations
from models.automation.automations.rules.graph.catalog import NAMED
from models.automation.automations.rules.graph.configs import CONFIGS
from models.automation.automations.rules.graph.kinds import NODE_KINDS, EdgeOutcome, NodeKind
from models.automation.automations.rules.graph.node_checks import DECIDING, STATIC
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.graph.structure import OUTPUTS
from models.automation.automations.rules.language import bindings
from models.automation.automations.rules.triggers import kinds as triggers
from models.automation.automations.rules.triggers.configs import needed_keys
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.filters.grammar import ValueForm
from models.core.filters.operands import PERIODS, Direction, Unit
from models.data.fields.rules.values import KIND_RULES, RESULT_FORMS
from models.messages.realtime import leave_tab, report_tab
from models.people.users import display_names
from runtime.errors import ValidationError
from runtime.processes.bounded_processes import evaluate_bounded

router = Router(tags=["console"])

_KINDS: Mapping[NodeKind, tuple[str, str, str]] = {
    NodeKind.QUERY_RECORDS: (
        "Find records",
        "Records",
        "Reads the records of a database that match a filter.",
    ),
    NodeKind.CREATE_RECORD: (
        "Create record",
        "Records",
        "Adds a record to a database, or updates a matching one.",
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

_PAYLOADS: Mapping[TriggerKind, tuple[str, ...]] = {
    TriggerKind.SCHEDULE: ("scheduledAt", "timezone"),
    TriggerKind.WEBHOOK: ("body", "headers", "query", "method", "webhookId"),
    TriggerKind.FORM_SUBMITTED: ("record", "submission"),
    TriggerKind.RECORD_CREATED: ("record", "actor"),
    TriggerKind.RECORD_UPDATED: ("record", "before", "changedKeys", "actor"),
    TriggerKind.RECORD_DELETED: ("record", "actor"),
    TriggerKind.RECORD_MATCHES: ("record", "before"),
    TriggerKind.RECORD_DATE_REACHED: ("record", "dueAt"),
    TriggerKind.BUTTON_PRESSED: ("record", "user"),
    TriggerKind.DATA_SOURCE_FINISHED: ("run",),
    TriggerKind.AUTOMATION_FAILED: ("automationId", "runId", "nodeId", "error", "triggerPayload"),
    TriggerKind.TIME_ENTRY_COMPLETED: ("entry",),
}
"""The keys of the payload of a trigger, as far as they are always the same."""

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


_EDITOR = f"{AUTOMATION.removeprefix('/v1')}/edit"
_READ = replace(READ, cookie=True)


@router.get(f"{_EDITOR}/catalog", access=_READ, documented=False)
async def get_editor_catalog(request: ApiRequest) -> Response:
    """Get what the editor offers: kinds of nodes and triggers, functions and variables."""
    return _prepared().answer(request)


class Evaluation(Input):
    """A value as a config has it, and the data that it reads."""

    value: Any
    trigger: Any = None
    nodes: JsonObject = Field(default_factory=dict)
    run: JsonObject = Field(default_factory=dict)
    vars: JsonObject = Field(default_factory=dict)
    item: Any = None
    index: int | None = None


class Evaluated(Shape):
    """The value with its bindings resolved, or why it has none."""

    value: Any = None
    error: str | None = None
    invalid: bool | None = None
    """The binding can't be read, whatever the data is."""


@router.post(f"{_EDITOR}/evaluate", access=replace(_READ, heavy=True, safe=True), documented=False)
async def evaluate_value(body: Evaluation) -> Data[Evaluated]:
    """Evaluate a binding for the data of a run or a test."""
    # Each binding may take all the processor time of an evaluation, so a request has one.
    if not bindings.is_binding(body.value):
        raise ValidationError.at("value", "must be a binding")
    return Data(await evaluate_bounded(partial(evaluated, body)))


class Tab(Input):
    """A tab of a browser in which the draft is open; `leaves` when it is closed."""

    tab_id: InputId
    leaves: bool = False


class Other(Shape):
    """Another person, or the same one in another tab, who has the draft open."""

    user_id: Id
    name: str
    is_self: bool


class DraftNews(Shape):
    """The others who have the draft open, and the state of the draft as it is stored."""

    editors: list[Other]
    updated_at: Moment
    draft_version_id: Id | None = None
    changed_by: Other | None = None
    """The person who changed the draft last."""
    changed_at: Moment | None = None


@router.post(
    f"{_EDITOR}/presence",
    access=replace(WRITE, cookie=True, idempotent=False, safe=True),
    documented=False,
)
async def report_editor(request: ApiRequest, body: Tab) -> Data[DraftNews]:
    """Say that the draft is open in a tab, and learn who else has it open."""
    work, user_id = request.work, request.actor.user_id
    automation = await automations.summary(work, request.actor, request.ids["automationId"])
    place = request.actor.workspace_id, automation.id, body.tab_id
    if body.leaves:
        await leave_tab(work, *place)
        users: list[Id] = []
    else:
        users = await report_tab(work, *place, user_id)
    change = await automations.last_change(work, request.actor, automation.id)
    named = users if change is None else [*users, change.user_id]
    names = await display_names(work, named)
    people = {
        one: Other(user_id=one, name=names.get(one, "Someone"), is_self=one == user_id)
        for one in named
    }
    return Data(
        DraftNews(
            editors=[people[one] for one in users],
            updated_at=automation.updated_at,
            draft_version_id=automation.draft_version_id,
            changed_by=None if change is None else people[change.user_id],
            changed_at=None if change is None else change.at,
        )
    )


def evaluated(body: Evaluation) -> Evaluated:
    """The value for this data. Secrets stay names."""
    context = bindings.BindingContext(
        trigger=body.trigger,
        nodes=body.nodes,
        run=body.run,
        vars=body.vars,
        item=body.item,
        index=body.index,
        sends_secrets=True,
    )
    try:
        problem = next(bindings.problems(body.value), None)
        if problem is not None:
            return Evaluated(error=problem[1], invalid=True)
        return Evaluated(value=bindings.resolve(body.value, context))
    except bindings.BindingError as error:
        return Evaluated(error=error.message)


@cache
def _prepared() -> Prepared:
    kept = {"Cache-Control": "private, no-cache"}
    return Prepared.of(json.dumps(catalog()).encode(), "application/json", kept)


def catalog() -> JsonObject:
    """The catalog, which is the same for every automation."""
    return {
        "graph": Graph.model_json_schema(by_alias=True),
        "kinds": [_kind(kind, *row) for kind, row in _KINDS.items()],
        "triggers": [_trigger(kind, *row) for kind, row in _TRIGGERS.items()],
        "functions": [
            {"name": one.name, "signature": one.call, "description": one.says} for one in FUNCTIONS
        ],
        "variables": [
            {"name": name, "description": says, "keys": list(keys)}
            for name, says, keys in _VARIABLES
        ],
        "filters": _filters(),
    }


def _filters() -> JsonObject:
    """The operators of filters by the form of a field, with the operands that are chosen."""
    return {
        "all": [{"op": op.value, "label": label} for op, label in OPERATOR_WORDS.items()],
        "forms": {form.value: operators_of(form) for form in ValueForm},
        "kinds": {kind.value: rule.form.value for kind, rule in KIND_RULES.items()},
        "results": {str(kind): form.value for kind, form in RESULT_FORMS.items()},
        "periods": list(PERIODS),
        "units": [unit.value for unit in Unit],
        "directions": [direction.value for direction in Direction],
    }


_VARIABLES = (
    ("trigger", "The data that started the run.", ()),
    ("nodes", "The outputs of earlier nodes, by their ids.", ()),
    ("item", "The item of the loop around the node.", ()),
    ("index", "The number of the iteration, from 0.", ()),
    ("run", "Facts of the run.", bindings.RUN_FACTS),
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
        "schema": _labelled(CONFIGS[kind], kind.value),
        "fixed": sorted(_fixed(kind)),
        "secrets": kind in bindings.SENDERS,
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
        "keys": list(_PAYLOADS.get(kind, ())),
        # A draft may lack them, so the schema requires none.
        "schema": {**_labelled(model, kind.value), "x-needed": needed_keys(kind, model)},
    }


_WORDS: Mapping[str, tuple[str, str]] = {
    "aggregates": ("Totals", "Computed over all matching records."),
    "allowEditors": ("Editors can decide", "Members who can edit the automation."),
    "allowSelf": ("The person who started the run can decide", ""),
    "approval.form": ("Questions", "Answers are in the output of this node."),
    "approval.required": ("Approvals needed", "One rejection rejects."),
    "assignees": ("Approvers", ""),
    "attributes": ("Attributes of the run", "Short texts by which you find the run."),
    "auth": ("Authentication", ""),
    "automationId": ("Automation", ""),
    "automationIds": ("Automations", "Default: any."),
    "call_automation.input": ("Input", "The trigger data of the other automation."),
    "call_automation.wait": ("Wait for the result", ""),
    "cases": ("Cases", "The first case that is true is taken."),
    "catchupWindowSeconds": ("Catch up", "Runs due during an outage start within this time."),
    "collect": ("Collect results", "The outputs of each iteration, in order."),
    "Concurrency.limit": ("Runs at a time", ""),
    "Concurrency.policy": ("When the limit is reached", ""),
    "concurrency": ("Concurrency", "Limits how many runs execute at the same time."),
    "connectionId": ("Connection", ""),
    "count": ("Branches", ""),
    "cron": ("Cron expression", "Minute, hour, day of month, month, day of week."),
    "cursor": ("Continue after", "The cursor of an earlier page."),
    "databaseId": ("Database", ""),
    "data": ("Values", ""),
    "dataSourceId": ("Data source", ""),
    "debounceSeconds": ("Quiet period", "Merges changes until the record is unchanged this long."),
    "dedupe": ("Ignore repeated calls", ""),
    "Deduplication.name": ("Header or path", ""),
    "Deduplication.source": ("Recognize calls by", ""),
    "delaySeconds": ("Delay between iterations", ""),
    "endAt": ("End", ""),
    "endpointId": ("Webhook endpoint", ""),
    "eventKey": ("Event", "The name by which others resume this run."),
    "expectStatus": ("Expected status", "Other statuses are failures. Such as 2xx or 409."),
    "fieldKey": ("Field", ""),
    "fieldKeys": ("Fields", "Only changes of these fields count. Default: all."),
    "fields": ("Fields to return", "Default: all."),
    "formItemId": ("Form", ""),
    "includeArchived": ("Include archived records", ""),
    "includeSystemChanges": ("Include imports and refreshes", ""),
    "inputSchema": ("Input", ""),
    "items": ("Items", "A list, such as the records of an earlier node."),
    "jitterSeconds": ("Random delay", "Spreads runs over up to this time."),
    "key": ("Name", ""),
    "keyExpression": ("Per", "Counts runs of each value of this expression apart."),
    "maxItems": ("Item limit", ""),
    "maxIterations": ("Iteration limit", ""),
    "methods": ("Methods", "Default: POST."),
    "mode": ("Wait for", ""),
    "offsetMinutes": ("Offset", "Before the date if negative."),
    "on": ("Result", ""),
    "onItemError": ("If an item fails", ""),
    "op": ("Function", ""),
    "overlap": ("If the last run is still open", ""),
    "parallelism": ("Items at a time", ""),
    "parentItemId": ("Folder", "The ID of an item. Default: the list of files."),
    "query_records.query": ("Filter and order", ""),
    "recordId": ("Record", "The ID of a record."),
    "relations": ("Linked records", "The IDs of records for each relation."),
    "reminderSeconds": ("Remind every", ""),
    "resumeUrl": ("Create a URL that resumes the run", ""),
    "role": ("Role", "All members with this role or a stronger one."),
    "respond": ("Response", ""),
    "saveAs": ("Save response as a file", ""),
    "secretName": ("Secret", ""),
    "seconds": ("Duration", ""),
    "send_webhook.type": ("Event type", "Such as order.shipped."),
    "signedContent": ("Signed content", "With {body}, and {timestamp} if there is one."),
    "sorts": ("Sort", ""),
    "startAt": ("Start", ""),
    "status": ("Status code", ""),
    "stop.output": ("Output", "The output of the run."),
    "targetKind": ("Time spent on", ""),
    "timezone": ("Time zone", "Such as Europe/Berlin. Default: UTC."),
    "toleranceSeconds": ("Tolerance", "The oldest call that is accepted."),
    "transform.output": ("Values", "Later nodes read them by their names."),
    "upsertBy": ("Update if these fields match", "Default: always create."),
    "url": ("URL", ""),
    "userIds": ("Members", ""),
    "versionPolicy": ("Version", ""),
    "viewId": ("View", ""),
    "waitSeconds": ("Wait for", ""),
    "while": ("While", "Evaluated before each iteration."),
    "windowSeconds": ("Within", ""),
}
"""Labels and hints of fields whose names do not say it, by name, by kind or shape and name."""

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _labelled(model: type[BaseModel], kind: str) -> JsonObject:
    """The schema of a config whose properties have titles and descriptions for people."""
    schema = model.model_json_schema(by_alias=True)
    shapes = {kind: schema, **schema.get("$defs", {})}
    for shape, part in shapes.items():
        part.pop("examples", None)
        part.pop("description", None)
        for name, described in part.get("properties", {}).items():
            words = _WORDS.get(f"{shape}.{name}") or _WORDS.get(name)
            described["title"], hint = words or (_humanized(name), "")
            if hint:
                described["description"] = hint
    return schema


def _humanized(name: str) -> str:
    return _CAPITAL.sub(" ", name.removesuffix("Seconds")).capitalize()
