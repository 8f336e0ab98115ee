"""Logs of a workspace: its changes as sentences, its calls, and its usage."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import unquote
from uuid import UUID

from starlette.responses import Response

from api.console.resource_pages import BY_FORM
from api.console.routing import page_router
from api.console.workspace import settings
from api.kernel.operation import Operation
from api.kernel.routing import ApiRequest, Cursor, Limit
from api.routers.messages import workspace_events
from api.routers.people import members, workspaces
from models.content.items.queries import titles_of
from models.core.access.rules import PrincipalType, Scope
from models.core.base import Id
from models.core.pagination import DEFAULT_LIMIT
from models.messages.workspace_events.log import RoleChange, role_changes
from models.people.api_keys import key_names
from models.people.request_logs import AuditEntryBody, list_audit_log, page_of_requests
from models.people.users import display_names
from models.workspace.usage import get_usage
from runtime.ids import parse_id

router = page_router()


@dataclass(frozen=True, slots=True)
class Audited:
    """An entry of the audit log as people read it, and its exact operation for who compares."""

    entry: AuditEntryBody
    caller: str
    sentence: str
    operation: str


@router.get(f"{settings.SETTINGS}/audit", access=settings.reads(Scope.WORKSPACE_UPDATE))
async def get_audit_log(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the changes made in a workspace."""
    wanted = request.page("audit log", DEFAULT_LIMIT, cursor)
    listed = await list_audit_log(request.work, request.actor, wanted)
    keys = {entry.api_key_id for entry in listed.entries if entry.api_key_id is not None}
    return await settings.settings_page(
        request,
        "settings_audit.html",
        "audit",
        workspaces.list_workspace_audit_log,
        workspace_events.list_workspace_events,
        entries=await _audited(request, listed.entries),
        key_names=await key_names(request.work, request.actor, keys),
        cursor=cursor,
        next=listed.cursor,
    )


async def _audited(request: ApiRequest, entries: Sequence[AuditEntryBody]) -> Sequence[Audited]:
    work, actor = request.work, request.actor
    operations = [request.app.operation_at(one.method, unquote(one.path)) for one in entries]
    ids = {one.user_id for one in entries}
    ids |= {id_ for operation in operations if operation for id_ in _ids_of(*operation)}
    labels = {**await titles_of(work, actor, ids), **await key_names(work, actor, ids)}
    labels |= await display_names(work, ids)
    roles: Sequence[RoleChange] = ()
    if any(operation and "userId" in operation[1] for operation in operations):
        roles = await role_changes(work, actor.workspace_id)
    return [
        Audited(entry, _caller(entry, labels), *_event(entry, operation, labels, roles))
        for entry, operation in zip(entries, operations, strict=True)
    ]


def _event(
    entry: AuditEntryBody,
    found: tuple[Operation, Mapping[str, str]] | None,
    labels: Mapping[Id, str],
    roles: Sequence[RoleChange],
) -> tuple[str, str]:
    """A request as a sentence, and the name of its operation; of an unknown path that itself."""
    if found is None:
        return f"sent {entry.method} {entry.path}", "unknown"
    operation, values = found
    succeeded = entry.status < _REFUSED
    is_proposed = succeeded and entry.dry_run
    succeeded = succeeded and not is_proposed
    target = _target(operation, values, labels)
    sentence = in_words(phrase_of(operation), target, succeeded=succeeded)
    if is_proposed:
        sentence = sentence.replace("tried to", "proposed to", 1)
    role = _new_role(entry, values.get("userId"), roles) if succeeded else None
    return sentence if role is None else f"{sentence} to {role.capitalize()}", name_of(operation)


def _ids_of(operation: Operation, values: Mapping[str, str]) -> Sequence[Id]:
    """The ids in the path, but for that of the workspace, from left to right."""
    ids = [values[name] for name in operation.parameters if name in operation.ids]
    return [UUID(id_) for id_ in ids if parse_id(id_) is not None]


def _target(
    operation: Operation, values: Mapping[str, str], labels: Mapping[Id, str]
) -> tuple[str, str] | None:
    """The noun and the label of the last thing in the path that has one."""
    for name in reversed(operation.parameters):
        label = labels.get(parse_id(values[name]) or UUID(int=0))
        if name in operation.ids and name != "workspaceId" and label is not None:
            words = re.sub(r"(?=[A-Z])", " ", name.removesuffix("Id")).lower()
            noun = _NOUNS.get(words, words)
            return (noun, label) if noun == "member" else (noun, f"“{label}”")
    return None


_NOUNS = {"user": "member", "surface": "page", "api key": "API key", "change": "change set"}
"""The nouns of parameters that are named otherwise."""


def _caller(entry: AuditEntryBody, labels: Mapping[Id, str]) -> str:
    """A member by name; who is none, by what let them in."""
    of = f" of “{labels[entry.user_id]}”" if entry.user_id in labels else ""
    match entry.principal_type:
        case PrincipalType.SHARE_LINK:
            return "Visitor of a share link"
        case PrincipalType.WEBHOOK:
            return f"Webhook{of}"
        case PrincipalType.SYSTEM:
            return f"Automation{of}"
    return labels.get(entry.user_id, "Former member")


_REFUSED = 400
"""The statuses of refusals begin here."""
_WRITTEN_WITHIN = timedelta(minutes=1)
"""A change is written before its request is logged, within this time."""


def _new_role(
    entry: AuditEntryBody, user_id: str | None, roles: Sequence[RoleChange]
) -> str | None:
    """The role that a member was given by a request, if it is known."""
    for one in roles:
        is_near = timedelta() <= entry.created_at - one.at < _WRITTEN_WITHIN
        if is_near and one.actor_user_id == entry.user_id and one.user_id == user_id:
            return one.role
    return None


@router.get(f"{settings.SETTINGS}/request-logs", access=settings.reads(Scope.API_KEYS_READ))
async def get_request_logs(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Look through the calls made in a workspace."""
    wanted = request.page("pages of request logs", limit, cursor)
    listed = await page_of_requests(request.work, request.actor, wanted)
    keys = {one.api_key_id for one in listed.items if one.api_key_id is not None}
    people = {one.principal_id for one in listed.items if one.principal_id is not None}
    return await settings.settings_page(
        request,
        "settings_request_logs.html",
        "request-logs",
        (members.list_request_logs, {"limit": limit}),
        calls=listed.items,
        key_names=await key_names(request.work, request.actor, keys),
        names=await display_names(request.work, people - keys),
        limit=limit,
        limits=(30, 50, 100),
        cursor=cursor,
        next=listed.cursor,
    )


@router.get(f"{settings.SETTINGS}/usage", access=settings.reads(Scope.BILLING_READ))
async def get_usage_page(request: ApiRequest) -> Response:
    """Look at what a workspace holds, and what it did this month."""
    usage = await get_usage(request.work, request.actor)
    return await settings.settings_page(
        request,
        "settings_usage.html",
        "usage",
        workspaces.get_workspace_usage,
        usage=usage,
        holds=usage.holds.model_dump(exclude={"file_bytes"}),
    )


_VERBS = re.compile(r"(?:[\w-]+(?:, [\w-]+)* (?:or|and) )?[\w-]+")
_END = re.compile(
    r"[.;:]\s|,\s(?!(?:the|a|an) )| \(| and become | and its | whose | with (?:its|what) "
    r"| of the values | (?:now|again|immediately|for good)[.]?$|[.]$"
)
"""The end of the first clause of a description, and of what it says of the act."""
_PAST = dict.fromkeys(("put", "set", "read", "let"), "") | {
    "begin": "began",
    "build": "built",
    "cancel": "cancelled",
    "get": "got",
    "give": "gave",
    "plan": "planned",
    "run": "ran",
    "say": "said",
    "send": "sent",
    "stop": "stopped",
    "submit": "submitted",
    "take": "took",
    "test-run": "test-ran",
    "undo": "undid",
    "write": "wrote",
}
"""Verbs with an irregular past; an empty one is the verb itself."""


def name_of(operation: Operation) -> str:
    """The name of an operation; a form has that of the operation which it calls."""
    return operation.name.removesuffix(BY_FORM)


def phrase_of(operation: Operation) -> str:
    """The deed of an operation: `Delete a form.`"""
    name = name_of(operation)
    return PHRASES.get(name) or inspect.getdoc(operation.endpoint) or name


def in_words(phrase: str, target: tuple[str, str] | None, *, succeeded: bool) -> str:
    """A deed from the description of an operation: `Delete a form.` → `deleted the form “F”`."""
    first = phrase.partition("\n\n")[0]
    whole = " ".join(first.split())
    verbs = _VERBS.match(whole)
    assert verbs is not None, "a description begins with what is done"
    end = _END.search(whole, verbs.end())
    phrase = whole[:1].lower() + whole[1 : None if end is None else end.start()]
    phrase = phrase.replace("one's own", "their own")
    if target is not None:
        phrase = _with_label(phrase, *target)
    if not succeeded:
        return f"tried to {phrase}"
    return _VERBS.sub(lambda verbs: re.sub(r"[\w-]+", _past, verbs[0]), phrase, count=1)


def _with_label(phrase: str, noun: str, label: str) -> str:
    """A phrase that names what it is about: `retry a failed run` → `retry the failed run “R”`."""
    adjectives = r"((?:(?!(?:an?|the|of|to|from|for)\b)[\w-]+ ){0,4})"
    subject = re.compile(rf"\b(?:an?|the|their own) {adjectives}{re.escape(noun)}\b")
    if subject.search(phrase) is None:
        return f"{phrase} of {label}" if noun == "member" else f"{phrase} of the {noun} {label}"
    if noun == "member":
        return subject.sub(lambda _: label, phrase, count=1)
    return subject.sub(lambda match: f"the {match[1]}{noun} {label}", phrase, count=1)


def _past(found: re.Match[str]) -> str:
    verb = found[0].lower()
    if verb in {"or", "and"}:
        return verb
    if verb in _PAST:
        return _PAST[verb] or verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


PHRASES: Mapping[str, str] = {
    "enable_alert_rule": "Enable an alert rule",
    "disable_alert_rule": "Disable an alert rule",
    "try_alert_rule": "Test an alert rule",
    "check_draft": "Validate a draft",
    "report_editor": "Open the draft of an automation",
    "enable_automation": "Enable or disable an automation",
    "run_by_hand": "Run an automation",
    "test_by_hand": "Test an automation",
    "rename_automation": "Rename an automation",
    "rotate_webhook_secret": "Rotate the webhook secret of an automation",
    "set_breaker": "Set the circuit breaker of an automation",
    "remove_breaker": "Remove the circuit breaker of an automation",
    "start_canary": "Start a canary of an automation",
    "promote_canary": "Promote the canary of an automation",
    "stop_canary": "Roll back the canary of an automation",
    "plan": "Plan changes",
    "apply": "Apply a change set",
    "reject": "Reject a change set",
    "dismiss_first_steps": "Dismiss the first steps",
    "preview": "Preview an import",
    "preview_sheet": "Preview an import",
    "check_mapping": "Preview an import",
    "start_import": "Start an import",
    "move_field": "Move a field",
    "reopen_incident": "Reopen an incident",
    "preview_retry": "Preview a retry of an incident",
    "edit_incident": "Update an incident",
    "start": "Start authorization",
    "finish": "Finish authorization",
    "test": "Test a connection",
    "share": "Share a connection",
    "switch": "Enable or disable a provider",
    "edit_connection": "Update a connection",
    "browse": "Browse a connection",
    "read": "Read a resource",
    "change_form_settings": "Update a form",
    "add_question": "Add a question to a form",
    "change_question": "Update a question of a form",
    "move_question": "Move a question of a form",
    "remove_question": "Remove a question from a form",
    "answer_form": "Submit a form",
    "edit": "Update a record",
    "remove_file": "Remove a file from a record",
    "retry_run": "Retry a run",
    "confirm_run_undo": "Undo a run",
    "send_event": "Send an event to a run",
    "run_from_chosen_node": "Start a run from a node",
    "preview_operation": "Preview an operation over runs",
    "begin_operation": "Start an operation over runs",
    "undo_run_operation": "Undo an operation over runs",
    "rename_filter": "Rename a saved filter",
    "open_shared": "Open a share link",
    "enable": "Enable or disable a data source",
    "preview_described": "Preview a data source",
    "preview_stored": "Preview a data source",
    "change_experiment_status": "Change the status of an experiment",
    "accept_invitation": "Accept an invitation",
    "put_secret": "Set a secret",
    "delete_workspace": "Delete the workspace",
    "enable_webhook_endpoint": "Enable a webhook endpoint",
    "disable_webhook_endpoint": "Disable a webhook endpoint",
    "rotate_endpoint_secret": "Rotate the secret of a webhook endpoint",
    "repeat_dry_run": "Repeat the dry run of an import",
    "roll_back_legacy_import": "Roll back an import",
    "start_legacy_import": "Start an import",
    "approve_legacy_import": "Approve an import",
    "test_webhook_endpoint": "Test a webhook endpoint",
    "roll_back_by_force": "Roll back an import",
    "change_import_workspace": "Update a workspace of an import",
    "update_import_workspace": "Update a workspace of an import",
    "release_legacy_import": "Publish the workspaces of an import",
    "create_alert_rule": "Create an alert rule",
    "decide": "Decide an approval",
    "change_settings": "Update the workspace",
    "update_workspace": "Update the workspace",
    "change_profile": "Change the appearance of pages",
    "create_form_by_hand": "Create a form",
    "create_outbound_limit": "Create an outbound limit",
    "create_experiment": "Create an experiment",
    "edit_experiment": "Update an experiment",
    "create_segment": "Create a segment",
    "replace_preferences": "Change notification preferences",
    "publish_release_notice": "Publish a release notice",
    "evaluate_value": "Evaluate a binding of an automation",
    "publish_written_draft": "Publish an automation",
    "publish_automation": "Publish an automation",
    "publish_draft": "Publish an automation",
    "run_automation_batch": "Start a batch of runs of an automation",
    "backfill_automation": "Backfill runs of an automation",
    "validate_automation": "Validate a draft of an automation",
    "preview_schedule": "Preview a schedule",
    "retry_automation_run": "Retry a run",
    "undo_automation_run": "Undo a run",
    "query_records": "Query the records of a database",
    "write_records": "Write records of a database",
    "pause_run_operation": "Pause an operation over runs",
    "resume_run_operation": "Resume an operation over runs",
    "get_impact": "Check the impact of a change",
    "test_alert_rule": "Test an alert rule",
    "put_model_settings": "Set the language model",
    "put_model": "Set the language model",
    "change_webhook_endpoint": "Update a webhook endpoint",
    "invite": "Invite a person by email",
    "restore_automation_version": "Restore a version",
    "cancel_automation_runs": "Cancel open runs of an automation",
    "cancel_workspace_automation_runs": "Cancel open runs of the workspace",
    "restore_item": "Restore an item from the trash",
    "create_webhook_endpoint": "Create a webhook endpoint",
    "replace_surface": "Replace the content of a page",
    "add_blocks": "Add blocks to a page",
    "create_ai_run": "Plan changes",
    "reject_ai_run": "Reject changes",
    "apply_ai_run": "Apply changes",
    "apply_changes": "Apply a change set",
    "replay": "Replay an event",
    "replay_trigger_event": "Replay an event",
    "export_records": "Export the records of a database",
    "begin_export": "Export the records of a database",
    "seed_from_draft": "Create what a draft plans",
    "seed_from_template": "Create a starter",
}
"""Phrases of operations whose docstrings say more than the log, by their names."""
