"""The rows that a dry run reports: their kinds, who may read them, and which values are shown.

Triggers capture rows of many tables (`capture_dry_run`). Only the columns that are listed here are
shown: what holds a secret, or belongs to the platform itself, is in no list.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from pydantic.alias_generators import to_camel

from models.core.access.rules import Scope
from models.core.base import JsonObject


class ChangeOperation(StrEnum):
    """The change of a resource: into the trash it is deleted, out of it restored."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Reported:
    """A kind of resource: the scope that reads it, and the columns whose values are shown.

    One that is `placed` is shown only to callers who see its item; without an item, to managers.
    One with an `owner`, named by this column, is shown only to that person.
    """

    scope: Scope
    columns: tuple[str, ...] = ()
    placed: bool = True
    owner: str | None = None


def _unplaced(scope: Scope, *columns: str, owner: str | None = None) -> Reported:
    return Reported(scope, columns, placed=False, owner=owner)


REPORTED: Mapping[str, Reported] = {
    "workspace": _unplaced(Scope.WORKSPACE_READ, "name", "slug", "icon"),
    "workspace_member": _unplaced(Scope.MEMBERS_READ, "user_id", "role"),
    "invitation": _unplaced(Scope.MEMBERS_READ, "role", "revoked_at"),
    "api_key": _unplaced(Scope.API_KEYS_READ, "name", "scopes", "expires_at", "revoked_at"),
    "pause": _unplaced(Scope.AUTOMATIONS_READ, "subject_kind", "subject_id", "reason"),
    "webhook_endpoint": _unplaced(Scope.WEBHOOKS_READ, "description", "event_types", "enabled"),
    "item": Reported(
        Scope.RESOURCES_READ,
        ("kind", "title", "icon", "color", "parent_item_id", "position", "archived", "access_mode"),
    ),
    "item_grant": Reported(Scope.RESOURCES_READ, ("item_id", "user_id", "level")),
    "file": _unplaced(Scope.FILES_READ, "name", "mime_type", "byte_size"),
    "surface": Reported(Scope.SURFACES_READ, ("kind", "version", "settings")),
    "block": Reported(Scope.BLOCKS_READ, ("kind", "position", "content", "parent_block_id")),
    "surface_comment": Reported(Scope.SURFACES_READ, ("body", "resolved_at")),
    "share_link": Reported(
        Scope.RESOURCES_READ, ("kind", "expires_at", "max_uses", "allow_download", "revoked_at")
    ),
    "database": Reported(Scope.DATABASES_READ, ("key", "label", "description", "record_layout")),
    "field": Reported(
        Scope.DATABASES_READ,
        ("key", "label", "kind", "required", "default_value", "options", "settings", "position"),
    ),
    "view": Reported(
        Scope.VIEWS_READ,
        ("key", "label", "kind", "manifest", "scope", "locked", "position"),
        owner="owner_user_id",
    ),
    "record": Reported(Scope.RECORDS_READ, ("title", "data", "computed", "archived")),
    "record_link": Reported(Scope.RECORDS_READ, ("record_id", "field_id", "target_id")),
    "record_template": Reported(Scope.RECORDS_READ, ("label", "data", "relations", "is_default")),
    "record_comment": Reported(Scope.RECORDS_READ, ("body", "resolved_at")),
    "form": Reported(
        Scope.DATABASES_READ,
        ("title", "description", "fields", "public", "accepting", "closes_at", "max_submissions"),
    ),
    "time_entry": _unplaced(
        Scope.TIME_ENTRIES_READ, "status", "started_at", "ended_at", "summary", owner="user_id"
    ),
    "connection": _unplaced(Scope.INTEGRATIONS_READ),
    "provider_switch": _unplaced(Scope.INTEGRATIONS_READ, "provider", "enabled"),
    "outbound_place": _unplaced(Scope.INTEGRATIONS_READ, "host", "per_second", "at_once"),
    "mount": Reported(Scope.INTEGRATIONS_READ, ("status", "recursive")),
    "data_source": Reported(Scope.DATA_SOURCES_READ, ("key", "kind", "write_mode", "enabled")),
    "data_source_run": Reported(Scope.DATA_SOURCES_READ, ("status", "trigger")),
    "action": Reported(Scope.ACTIONS_READ, ("key", "kind", "enabled")),
    "action_run": Reported(Scope.ACTIONS_READ, ("status", "action_id")),
    "automation": Reported(
        Scope.AUTOMATIONS_READ,
        ("key", "label", "enabled", "draft_version_id", "published_version_id"),
    ),
    "automation_version": Reported(
        Scope.AUTOMATIONS_READ, ("automation_id", "version", "status", "note", "checksum")
    ),
    "automation_run": Reported(Scope.AUTOMATIONS_READ, ("automation_id", "status", "source")),
    "circuit_breaker": Reported(Scope.AUTOMATIONS_READ, ("failures", "pause_seconds", "state")),
    "incident": Reported(Scope.AUTOMATIONS_READ, ("closed_at", "assignee_user_id", "muted")),
    "run_operation": _unplaced(Scope.AUTOMATIONS_READ, "action", "status", "selected"),
    "saved_run_filter": _unplaced(Scope.AUTOMATIONS_READ, "label", owner="owner_user_id"),
    "alert_rule": _unplaced(Scope.AUTOMATIONS_READ),
    "workspace_secret": _unplaced(Scope.AUTOMATIONS_READ),
    "change_set": _unplaced(Scope.WORKSPACE_CHANGES_READ, "title", "status"),
    "model_settings": _unplaced(Scope.AI_READ, "enabled"),
}
"""By table, which is also the name of the kind."""


def readable_kinds(scopes: Set[Scope]) -> Set[str]:
    """The kinds that these scopes read."""
    return {kind for kind, reported in REPORTED.items() if reported.scope in scopes}


IN_TRASH = "deleted_at"
"""The column that says when a resource went to the trash."""
_BY_KEY = frozenset({"data", "computed"})
"""Columns of records whose keys are the fields: they are compared key by key."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A resource before and after, with the keys whose values changed.

    Both sides hold the values of these keys, as far as they are shown.
    """

    operation: ChangeOperation
    changed_keys: Sequence[str]
    before: JsonObject | None
    after: JsonObject | None


def difference(kind: str, before: JsonObject | None, after: JsonObject | None) -> Difference | None:
    """The difference between two rows of a table; None where nothing that is shown changed."""
    operation = operation_of(before, after)
    old = None if operation is ChangeOperation.RESTORED else _shown(kind, before)
    new = None if operation is ChangeOperation.DELETED else _shown(kind, after)
    if old is None or new is None:
        return Difference(operation, sorted((old or new or {}).keys()), old, new)
    changed = sorted(key for key in {**old, **new} if _differ(old, new, key))
    if operation is ChangeOperation.UPDATED and not changed:
        return None
    return Difference(operation, changed, _only(old, changed), _only(new, changed))


def operation_of(before: JsonObject | None, after: JsonObject | None) -> ChangeOperation:
    """The operation that leads from one row to the other."""
    if before is None:
        return ChangeOperation.CREATED
    if after is None:
        return ChangeOperation.DELETED
    was_in_trash, is_in_trash = (row.get(IN_TRASH) is not None for row in (before, after))
    if was_in_trash == is_in_trash:
        return ChangeOperation.UPDATED
    return ChangeOperation.DELETED if is_in_trash else ChangeOperation.RESTORED


def _shown(kind: str, row: JsonObject | None) -> JsonObject | None:
    if row is None:
        return None
    values: JsonObject = {}
    for column, key in _keys(kind):
        value = row.get(column)
        if key is None:
            values.update(value or {})
        elif value is not None:
            values[key] = value
    return values


@cache
def _keys(kind: str) -> Sequence[tuple[str, str | None]]:
    """The shown columns, with their keys on the wire; None where the column has keys itself."""
    by_key = _BY_KEY if kind == "record" else frozenset()
    columns = REPORTED[kind].columns
    return [(column, None if column in by_key else to_camel(column)) for column in columns]


def _differ(old: JsonObject, new: JsonObject, key: str) -> bool:
    return (key in old) != (key in new) or bool(old.get(key) != new.get(key))


def _only(values: JsonObject, keys: Sequence[str]) -> JsonObject:
    return {key: values[key] for key in keys if key in values}
