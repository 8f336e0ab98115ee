"""Logs of a workspace: its changes, its calls, and its usage."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import unquote
from uuid import UUID

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace.settings import (
    SETTINGS,
    reads,
    settings_page,
    turning,
)
from api.kernel.operation import Operation
from api.kernel.routing import ApiRequest, Cursor, Limit
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


@router.get(f"{SETTINGS}/audit", access=reads(Scope.WORKSPACE_UPDATE))
async def get_audit_log(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the changes made in a workspace."""
    wanted = request.page("audit log", DEFAULT_LIMIT, cursor)
    listed = await list_audit_log(request.work, request.actor, wanted)
    keys = {entry.api_key_id for entry in listed.entries if entry.api_key_id is not None}
    return await settings_page(
        request,
        "settings_audit.html",
        "audit",
        entries=await _audited(request, listed.entries),
        key_names=await key_names(request.work, request.actor, keys),
        turning=turning(request, cursor, listed.cursor),
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
    phrase = FORMS.get(operation.name) or inspect.getdoc(operation.endpoint) or operation.name
    sentence = in_words(phrase, _target(operation, values, labels), succeeded=succeeded)
    role = _new_role(entry, values.get("userId"), roles) if succeeded else None
    return sentence if role is None else f"{sentence} to {role.capitalize()}", operation.name


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
            noun = re.sub(r"(?=[A-Z])", " ", name.removesuffix("Id")).lower()
            return ("member", label) if noun == "user" else (noun, f"“{label}”")
    return None


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


_VERBS = re.compile(r"(?:[\w-]+(?:, [\w-]+)* (?:or|and) )?[\w-]+")
_END = re.compile(r"[.;:]\s|,\s(?!(?:the|a|an) )| \(| and become | whose |[.]$")
"""The end of the first clause of a description."""
_PAST = dict.fromkeys(("put", "set", "read", "let"), "") | {
    "begin": "began",
    "build": "built",
    "cancel": "cancelled",
    "get": "got",
    "give": "gave",
    "plan": "planned",
    "run": "ran",
    "send": "sent",
    "stop": "stopped",
    "submit": "submitted",
    "take": "took",
    "test-run": "test-ran",
    "undo": "undid",
    "write": "wrote",
}
"""Verbs with an irregular past; an empty one is the verb itself."""


def in_words(phrase: str, target: tuple[str, str] | None, *, succeeded: bool) -> str:
    """A deed from the description of an operation: `Delete a form.` → `deleted the form “F”`."""
    first = phrase.partition("\n\n")[0]
    whole = " ".join(first.split())
    verbs = _VERBS.match(whole)
    assert verbs is not None, "a description begins with what is done"
    end = _END.search(whole, verbs.end())
    phrase = whole[:1].lower() + whole[1 : None if end is None else end.start()]
    if target is not None:
        noun, label = target
        shown = label if noun == "member" else f"the {noun} {label}"
        named = re.sub(rf"\b(?:an?|the) {re.escape(noun)}\b", lambda _: shown, phrase, count=1)
        phrase = named if named != phrase else f"{phrase} of {shown}"
    if not succeeded:
        return f"tried to {phrase}"
    return _VERBS.sub(lambda verbs: re.sub(r"[\w-]+", _past, verbs[0]), phrase, count=1)


def _past(found: re.Match[str]) -> str:
    verb = found[0].lower()
    if verb in {"or", "and"}:
        return verb
    if verb in _PAST:
        return _PAST[verb] or verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}d" if verb.endswith("e") else f"{verb}ed"


FORMS: Mapping[str, str] = {
    "enable_alert_rule": "Enable an alert rule",
    "disable_alert_rule": "Disable an alert rule",
    "try_alert_rule": "Test an alert rule",
    "check_draft": "Validate a draft",
    "enable_automation": "Enable or disable an automation",
    "restore_by_hand": "Restore a version",
    "run_by_hand": "Run an automation",
    "test_by_hand": "Test an automation",
    "rename_automation": "Rename an automation",
    "rotate_webhook_secret_by_form": "Rotate the webhook secret of an automation",
    "duplicate_by_hand": "Duplicate an automation",
    "set_breaker_by_form": "Set the circuit breaker of an automation",
    "remove_breaker_by_form": "Remove the circuit breaker of an automation",
    "start_canary_by_form": "Start a canary of an automation",
    "promote_canary_by_form": "Promote the canary of an automation",
    "stop_canary_by_form": "Roll back the canary of an automation",
    "plan_by_form": "Plan changes",
    "apply_by_form": "Apply changes",
    "reject_by_form": "Reject changes",
    "dismiss_first_steps": "Dismiss the first steps",
    "preview_by_form": "Preview an import",
    "preview_sheet": "Preview an import",
    "check_mapping": "Preview an import",
    "start_import_by_form": "Start an import",
    "move_field": "Move a field",
    "reopen_incident": "Reopen an incident",
    "preview_retry": "Preview a retry of an incident",
    "edit_incident": "Update an incident",
    "start_by_form": "Start authorization",
    "finish_by_form": "Finish authorization",
    "test_by_form": "Test a connection",
    "share": "Share a connection",
    "switch": "Enable or disable a provider",
    "edit_connection_by_form": "Update a connection",
    "browse_by_form": "Browse a connection",
    "read_by_form": "Read a resource",
    "sync": "Sync a mount",
    "change_form_settings": "Update a form",
    "add_question": "Add a question to a form",
    "change_question": "Update a question of a form",
    "move_question": "Move a question of a form",
    "remove_question": "Remove a question from a form",
    "answer_form": "Submit a form",
    "edit": "Update a record",
    "restore": "Restore a record",
    "remove_file": "Remove a file from a record",
    "retry_run": "Retry a run",
    "confirm_run_undo": "Undo a run",
    "send_event": "Send an event to a run",
    "run_from_chosen_node": "Start a run from a node",
    "preview_operation_by_form": "Preview an operation over runs",
    "begin_operation": "Start an operation over runs",
    "resume_operation": "Resume an operation",
    "undo_operation": "Undo an operation",
    "undo_run_operation": "Undo an operation over runs",
    "rename_filter": "Rename a saved filter",
    "open_shared": "Open a share link",
    "enable": "Enable or disable a data source",
    "retry": "Retry a run of a data source",
    "revert": "Revert a run of a data source",
    "preview_described": "Preview a data source",
    "preview_stored": "Preview a data source",
    "change_experiment_status": "Change the status of an experiment",
    "accept_invitation_by_form": "Accept an invitation",
    "put_secret_by_form": "Set a secret",
    "delete_workspace_by_form": "Delete a workspace",
    "enable_webhook_endpoint": "Enable a webhook endpoint",
    "disable_webhook_endpoint": "Disable a webhook endpoint",
    "rotate_webhook_secret": "Rotate the secret of a webhook endpoint",
    "test_webhook_endpoint_by_form": "Test a webhook endpoint",
    "redeliver_by_form": "Redeliver an event to a webhook endpoint",
}
"""Forms of pages whose docstrings say more than the log, by the names of their operations."""


@router.get(f"{SETTINGS}/request-logs", access=reads(Scope.API_KEYS_READ))
async def get_request_logs(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """Look through the calls made in a workspace."""
    wanted = request.page("pages of request logs", limit, cursor)
    listed = await page_of_requests(request.work, request.actor, wanted)
    keys = {one.api_key_id for one in listed.items if one.api_key_id is not None}
    people = {one.principal_id for one in listed.items if one.principal_id is not None}
    return await settings_page(
        request,
        "settings_request_logs.html",
        "request-logs",
        calls=listed.items,
        key_names=await key_names(request.work, request.actor, keys),
        names=await display_names(request.work, people - keys),
        limit=limit,
        limits=(30, 50, 100),
        turning=turning(request, cursor, listed.cursor, limit=limit),
    )


@router.get(f"{SETTINGS}/usage", access=reads(Scope.BILLING_READ))
async def get_usage_page(request: ApiRequest) -> Response:
    """Look at what a workspace holds, and what it did this month."""
    usage = await get_usage(request.work, request.actor)
    return await settings_page(
        request,
        "settings_usage.html",
        "usage",
        usage=usage,
        holds=usage.holds.model_dump(exclude={"file_bytes"}),
    )
