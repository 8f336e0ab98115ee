"""Logs of a workspace: its changes, its calls, and its usage."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import unquote
from uuid import UUID

from starlette.responses import Response

from api.console.routing import page_router
from api.console.workspace import settings
from api.console.workspace.audit_sentences import in_words, name_of, phrase_of
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
        turning=settings.turning(request, cursor, listed.cursor),
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
    sentence = in_words(
        phrase_of(operation), _target(operation, values, labels), succeeded=succeeded
    )
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
        turning=settings.turning(request, cursor, listed.cursor, limit=limit),
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
