"""For every operation, one call that succeeds in a furnished workspace.

An operation without a line here fails the isolation matrix: nothing is added unseen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.contract.furnished import Furnished


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """How to call an operation; ids in the path come from the furnished workspace.

    `credential` is who makes the successful call; `unswapped` names ids of the body that are data
    to the operation; `works` says that the answer needs a running worker.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    """Where a path parameter is called otherwise in the furnished workspace."""
    body: Callable[[Furnished], Any] | None = None
    query: Callable[[Furnished], Mapping[str, str]] = lambda _: {}
    headers: Callable[[Furnished], Mapping[str, str]] = lambda _: {}
    content: bytes | None = None
    unswapped: frozenset[str] = field(default_factory=frozenset)
    private: bool = False
    """What one member made is not there for others but owners and administrators."""
    works: bool = False
    ends: bool = False
    """The call takes away what further calls would need."""


def body(value: Any) -> Example:
    """A call whose body is the same everywhere."""
    return Example(body=lambda _: value)


GET = Example()
EMPTY = body({})

VARIANTS = [{"label": "As it is", "split": 50}, {"label": "Other", "split": 50}]

_GRAPH = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}], "edges": []}

_RESOURCE = {
    "externalType": "document",
    "externalId": "welcome",
    "name": "Welcome.md",
    "surfaceKind": "document",
    "capabilities": ["read", "mount", "import"],
}

_FORM = {
    "externalType": "form",
    "externalId": "survey",
    "name": "Team survey",
    "surfaceKind": "form",
    "capabilities": ["read", "import_form"],
}


def _delivery(_: Furnished) -> Mapping[str, str]:
    return {"X-Delivery": uuid4().hex}


EXAMPLES: Mapping[str, Example] = {
    # callers and workspaces
    "get_me": GET,
    "get_my_scopes": GET,
    "create_workspace": body({"name": "Another"}),
    "list_workspaces": GET,
    "list_my_workspaces": GET,
    "get_workspace": GET,
    "update_workspace": body({"name": "Renamed"}),
    "delete_workspace": Example(ends=True),
    "list_workspace_events": GET,
    "create_realtime_ticket": GET,
    "open_realtime_stream": Example(
        query=lambda one: {"ticket": one.secrets["ticket"], "since": "0"}
    ),
    "list_workspace_audit_log": GET,
    "get_workspace_usage": GET,
    "change_workspace_plan": body({"plan": "team"}),
    "get_system_state": GET,
    "get_webhook_signing_secret": GET,
    # webhook endpoints
    "create_webhook_endpoint": body({"url": "https://hooks.example.test/"}),
    "list_webhook_endpoints": GET,
    "get_webhook_endpoint": GET,
    "update_webhook_endpoint": body({"description": "Changed"}),
    "delete_webhook_endpoint": GET,
    "rotate_webhook_endpoint_secret": GET,
    "test_webhook_endpoint": GET,
    "list_webhook_deliveries": GET,
    "redeliver_webhook": GET,
    # notifications
    "list_notifications": GET,
    "list_inbox": GET,
    "mark_notifications_read": Example(
        body=lambda one: {"notificationIds": [one.ids["notificationId"]]}
    ),
    "mark_inbox_read": Example(body=lambda one: {"notificationId": one.ids["notificationId"]}),
    "archive_notifications": Example(
        body=lambda one: {"notificationIds": [one.ids["notificationId"]]}
    ),
    # preferences
    "get_home_layout": GET,
    "replace_home_layout": body(
        {"widgets": [{"id": "a", "kind": "recent", "x": 0, "y": 0, "w": 6, "h": 2}]}
    ),
    # release notices
    "get_whats_new": GET,
    "acknowledge_whats_new": Example(
        body=lambda one: {"channel": "web", "releaseId": one.ids["releaseId"]},
        unswapped=frozenset({"releaseId"}),
    ),
    "publish_release_notice": body({"channel": "web", "title": "New", "body": "Words"}),
    "list_release_notices": GET,
    "get_notification_preferences": GET,
    "replace_notification_preferences": body({"preferences": {"comment": {"push": False}}}),
    # push devices
    "list_push_devices": GET,
    "get_web_push_key": GET,
    **dict.fromkeys(
        ("register_push_device", "register_a_push_device"),
        body({"installationId": "mine", "platform": "android", "token": "a" * 16}),
    ),
    "revoke_push_device": body({"installationId": "mine"}),
    # members
    "list_members": GET,
    "update_member": body({"role": "viewer"}),
    "remove_member": Example(ends=True),
    "list_invitations": GET,
    "create_invitation": body({"email": "somebody@example.test", "role": "viewer"}),
    "revoke_invitation": GET,
    "accept_invitation": Example(),
    "get_item_access": GET,
    "replace_item_access": Example(
        body=lambda one: {
            "accessMode": "open",
            "grants": [{"userId": one.ids["userId"], "level": "view"}],
        }
    ),
    # API keys
    "list_api_keys": GET,
    "create_api_key": body({"name": "k", "scopes": ["records:read"]}),
    "list_request_logs": GET,
    "revoke_api_key": GET,
    # experiments and segments
    "create_experiment": Example(
        body=lambda _: {
            "name": "New",
            "targetType": "flag",
            "flagKey": uuid4().hex,
            "variants": VARIANTS,
        }
    ),
    "list_experiments": GET,
    "get_experiment": GET,
    "update_experiment": body({"hypothesis": "Changed"}),
    "list_audience_segments": GET,
    "create_audience_segment": Example(
        body=lambda _: {
            "key": f"segment_{uuid4().hex}",
            "label": "Large",
            "rule": {"field": "workspace.memberCount", "op": "gte", "value": 50},
        }
    ),
    "assign_experiments": body({"flagKeys": ["unknown"]}),
    "record_experiment_events": body({"events": [{"flagKey": "unknown", "event": "exposure"}]}),
    # legacy imports
    "create_legacy_import": body(
        {"bundleObjectKey": "bundles/one.zip", "bundleChecksum": "0" * 64}
    ),
    "list_legacy_imports": GET,
    "get_legacy_import": Example(ids={"runId": "openImportId"}),
    "watch_legacy_import": Example(ids={"runId": "failedImportId"}),
    "approve_legacy_import": Example(
        ids={"runId": "reviewedImportId"}, body=lambda _: {"note": "Counts compared"}
    ),
    "cancel_legacy_import": Example(
        ids={"runId": "openImportId"}, body=lambda _: {"reason": "Not yet"}
    ),
    "start_legacy_import": Example(ids={"runId": "approvedImportId"}, ends=True),
    "repeat_dry_run": Example(ids={"runId": "reviewedImportId"}, ends=True),
    "release_legacy_import": Example(ids={"runId": "finishedImportId"}, ends=True),
    "roll_back_legacy_import": Example(
        ids={"runId": "failedImportId"}, body=lambda _: {"reason": "Not yet"}, ends=True
    ),
    "update_import_workspace": Example(
        ids={"runId": "reviewedImportId", "entryId": "reviewedImportEntryId"},
        body=lambda _: {"selected": True},
        ends=True,
    ),
    "retry_import_workspace": Example(
        ids={"runId": "failedImportId", "entryId": "failedImportEntryId"}, ends=True
    ),
    # databases
    "create_database": Example(
        body=lambda one: {"label": "New", "parentItemId": one.ids["folderId"]}
    ),
    "list_databases": GET,
    "get_database": GET,
    # records
    "create_record": body({"title": "New"}),
    "list_records": GET,
    "query_records": body(
        {
            "filter": {"field": "price", "op": "gte", "value": 2},
            "sorts": [{"field": "price", "direction": "desc"}],
            "limit": 10,
        }
    ),
    "get_record": GET,
    "update_record": body({"title": "Changed"}),
    # automations
    "create_automation": Example(
        body=lambda one: {
            "label": "New",
            "triggerConfig": {"kind": "manual"},
            "graph": _GRAPH,
            "parentItemId": one.ids["folderId"],
        }
    ),
    "list_automations": GET,
    "get_automation": GET,
    "update_automation": body({"label": "Renamed"}),
    "delete_automation": Example(ends=True),
    "duplicate_automation": GET,
    "export_automation": Example(query=lambda one: {"versionId": one.ids["versionId"]}),
    "import_automation": Example(
        body=lambda one: {
            "document": {
                "format": "workspace-automation",
                "formatVersion": 1,
                "label": "New",
                "triggerConfig": {"kind": "manual"},
                "graph": _GRAPH,
            },
            "parentItemId": one.ids["folderId"],
        }
    ),
    "validate_automation": body({"triggerConfig": {"kind": "manual"}, "graph": _GRAPH}),
    "publish_automation": Example(body=lambda one: {"versionId": one.ids["versionId"]}),
    "discard_draft": Example(ids={"automationId": "draftAutomationId"}),
    "list_automation_versions": GET,
    "get_automation_version": GET,
    "restore_automation_version": GET,
    "get_canary": GET,
    "start_canary": Example(
        ids={"automationId": "startedAutomationId"}, body=lambda _: {"percent": 10}, ends=True
    ),
    "promote_canary": Example(ids={"automationId": "canaryAutomationId"}, ends=True),
    "stop_canary": Example(ids={"automationId": "otherCanaryAutomationId"}, ends=True),
    "get_schedule_preview": Example(ids={"automationId": "scheduledAutomationId"}),
    "preview_schedule": body({"triggerConfig": {"kind": "schedule", "cron": "30 2 * * *"}}),
    "backfill_automation": Example(
        ids={"automationId": "scheduledAutomationId"},
        body=lambda _: {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T02:00:00Z"},
    ),
    "run_automation": body({"triggerPayload": {"order": 17}}),
    "run_automation_batch": body({"payloads": [{"order": 17}, {"order": 18}]}),
    "test_run_automation": body({"payload": {"order": 17}, "simulate": True}),
    "run_automation_from_node": Example(
        body=lambda one: {"nodeId": "a", "automationVersionId": one.ids["versionId"]},
    ),
    "list_automation_runs": GET,
    "get_run_statistics": GET,
    "get_automation_statistics": GET,
    "get_automation_run": GET,
    "cancel_automation_run": Example(ends=True),
    "list_workspace_automation_runs": Example(
        query=lambda one: {"automationId": one.ids["automationId"]}
    ),
    "list_automation_node_runs": GET,
    "compare_automation_runs": Example(query=lambda one: {"with": one.ids["runId"]}),
    # pages of runs; what watches a run ends with it
    "get_run": GET,
    "watch_run": Example(works=True),
    "list_run_filters": GET,
    "create_run_filter": Example(
        body=lambda one: {
            "label": "Failed",
            "query": {"status": "failed", "automationId": one.ids["automationId"]},
        }
    ),
    "update_run_filter": body({"label": "Declined"}),
    "delete_run_filter": Example(ends=True),
    "retry_automation_run": body({"from": "start", "cancelFirst": True}),
    "cancel_automation_runs": Example(body=lambda _: {"status": "queued"}, ends=True),
    "cancel_workspace_automation_runs": Example(body=lambda _: {"limit": 100}, ends=True),
    # trigger events
    "list_trigger_events": Example(query=lambda one: {"automationId": one.ids["automationId"]}),
    "get_trigger_event": GET,
    "replay_trigger_event": Example(
        body=lambda one: {"automationId": one.ids["automationId"], "version": "published"}
    ),
    "explain_automation_events": GET,
    # incidents
    "list_incidents": Example(query=lambda one: {"automationId": one.ids["automationId"]}),
    "get_incident": GET,
    "list_incident_runs": GET,
    "list_incident_records": GET,
    "update_incident": Example(
        body=lambda one: {"assigneeUserId": one.ids["userId"], "muted": True, "note": "Known."}
    ),
    "close_incident": Example(ends=True),
    "reopen_incident": Example(ids={"incidentId": "closedIncidentId"}),
    "preview_incident_retry": body({"version": "published", "from": "failed"}),
    "retry_incident": Example(body=lambda _: {"version": "published", "from": "failed", "rate": 5}),
    # pauses
    "get_automation_pause": GET,
    "pause_automation": body({"reason": "The shop is being moved."}),
    "resume_automation": body({"rate": 600}),
    "get_circuit_breaker": GET,
    "set_circuit_breaker": body({"failures": 5, "pauseSeconds": 300}),
    "remove_circuit_breaker": Example(),
    "get_connection_pause": GET,
    "pause_connection": body({"reason": "The provider is down."}),
    "resume_connection": body({"rate": 60}),
    "get_workspace_pause": GET,
    "pause_workspace": body({"reason": "The year is being closed."}),
    "resume_workspace": body({"rate": 60}),
    "rename_field": Example(body=lambda _: {"key": "amount", "rewrite": True}, ends=True),
    "get_impact": Example(body=lambda one: {"kind": "field", "id": one.ids["fieldId"]}),
    # alert rules
    "list_alert_rules": GET,
    "create_alert_rule": Example(
        body=lambda one: {
            "label": "Payments fail",
            "condition": {
                "kind": "failures",
                "runs": 10,
                "minutes": 15,
                "query": {"automationId": one.ids["automationId"]},
            },
            "recipientUserIds": [one.ids["userId"]],
            "repeatMinutes": 60,
        }
    ),
    "get_alert_rule": GET,
    "update_alert_rule": body({"label": "Payments fail often"}),
    "test_alert_rule": GET,
    "list_alert_firings": GET,
    "delete_alert_rule": Example(ends=True),
    # operations over runs
    "preview_run_operation": Example(
        body=lambda one: {
            "action": "retry",
            "filter": {"automationId": one.ids["automationId"]},
            "retry": {"from": "start"},
        }
    ),
    "create_run_operation": Example(
        body=lambda one: {
            "action": "retry",
            "filter": {"automationId": one.ids["automationId"], "status": "failed"},
            "retry": {"from": "failed", "version": "published"},
            "rate": 5,
        }
    ),
    "get_automation_run_batch": GET,
    "list_run_operations": GET,
    "get_run_operation": Example(private=True),
    "list_run_operation_results": Example(
        ids={"runOperationId": "endedRunOperationId"}, private=True
    ),
    "pause_run_operation": Example(private=True),
    "resume_run_operation": Example(
        ids={"runOperationId": "pausedRunOperationId"}, private=True, ends=True
    ),
    "cancel_run_operation": Example(private=True, ends=True),
    "undo_run_operation": Example(
        ids={"runOperationId": "endedRunOperationId"}, body=lambda _: {"rate": 5}, private=True
    ),
    # undos of runs
    "undo_automation_run": Example(
        ids={"automationId": "undoneAutomationId", "runId": "undoneRunId"},
        body=lambda _: {"preview": True},
    ),
    "list_automation_run_undos": Example(
        ids={"automationId": "undoneAutomationId", "runId": "undoneRunId"}
    ),
    "get_automation_run_undo": Example(
        ids={"automationId": "undoneAutomationId", "runId": "undoneRunId"}
    ),
    # nodes that wait
    "resume_node": Example(
        ids={"automationId": "waitAutomationId", "runId": "waitRunId"},
        body=lambda _: {"data": {"paid": True}},
    ),
    "resume_by_url": Example(body=lambda _: {"paid": True}, ends=True),
    "publish_automation_event": body({"eventKey": "paid", "data": {"amount": 1}}),
    # webhooks and secrets
    "rotate_webhook_secret": EMPTY,
    "call_webhook_by_get": Example(headers=_delivery),
    **dict.fromkeys(
        (
            "call_webhook",
            "call_webhook_by_put",
            "call_webhook_by_patch",
            "call_webhook_by_delete",
        ),
        Example(headers=_delivery, body=lambda _: {"order": 17}),
    ),
    "list_secrets": GET,
    "put_secret": body({"value": "Hi"}),
    "delete_secret": GET,
    # providers and connections
    "list_providers": GET,
    "create_connection": body(
        {
            "provider": "http",
            "label": "New",
            "config": {"baseUrl": "https://example.test/"},
            "credentials": {"secret": "planted"},
        }
    ),
    "list_connections": GET,
    "get_connection": GET,
    "update_connection": body({"label": "Renamed"}),
    "delete_connection": GET,
    "switch_provider": body({"enabled": True}),
    "list_outbound_limits": GET,
    "create_outbound_limit": body({"host": "api.example.test", "perSecond": 5, "atOnce": 2}),
    "get_outbound_limit": GET,
    "update_outbound_limit": body({"perSecond": 0.5}),
    "delete_outbound_limit": GET,
    "test_connection": Example(works=True),
    "browse_connection": Example(
        body=lambda one: {"connectionId": one.ids["connectionId"]}, works=True
    ),
    "read_resource": Example(
        body=lambda one: {"connectionId": one.ids["connectionId"], "resource": _RESOURCE},
        works=True,
    ),
    "mount_resource": Example(
        body=lambda one: {
            "connectionId": one.ids["connectionId"],
            "resource": _RESOURCE,
            "parentItemId": one.ids["folderId"],
        },
        works=True,
    ),
    "import_resource": Example(
        body=lambda one: {
            "connectionId": one.ids["connectionId"],
            "resource": _RESOURCE,
            "parentItemId": one.ids["folderId"],
        },
        works=True,
    ),
    "get_resource_import": Example(works=True, private=True),
    "import_form": Example(
        body=lambda one: {"connectionId": one.ids["connectionId"], "resource": _FORM},
        works=True,
    ),
    "list_mounts": GET,
    "get_mount": GET,
    "sync_mount": Example(works=True),
    "cancel_mount_sync": GET,
    "delete_mount": GET,
    # choices of the caller
    "choose_oauth_client_workspace": Example(
        body=lambda one: {"oauthClientId": "a-client", "workspaceId": one.ids["workspaceId"]},
        unswapped=frozenset({"workspaceId"}),
    ),
    "get_oauth_client_workspace": Example(query=lambda _: {"oauthClientId": "a-client"}),
    "get_oauth_client_workspace_by_path": GET,
    "start_authorization": body({"provider": "github", "label": "New"}),
    "finish_authorization": Example(
        body=lambda one: {name: one.secrets[name] for name in ("state", "code")}, works=True
    ),
    # actions and data sources
    "create_action": Example(
        body=lambda one: {
            "label": "New",
            "kind": "refresh_data_source",
            "config": {"kind": "refresh_data_source", "dataSourceId": one.ids["dataSourceId"]},
        }
    ),
    "list_actions": GET,
    "get_action": GET,
    "update_action": body({"label": "Renamed"}),
    "delete_action": GET,
    "run_action": body({"input": {"a": 1}, "wait": False}),
    "list_action_runs": GET,
    "get_action_run": Example(ids={"runId": "actionRunId"}),
    "cancel_action_run": Example(ids={"runId": "actionRunId"}, ends=True),
    "run_button": body({"wait": False}),
    "create_data_source": Example(
        body=lambda one: {
            "label": "New",
            "kind": "http_json",
            "config": {"url": "https://example.test/rows"},
            "targetDatabaseId": one.ids["databaseId"],
            "parentItemId": one.ids["folderId"],
        }
    ),
    "list_data_sources": GET,
    "get_data_source": GET,
    "update_data_source": body({"label": "Renamed"}),
    "delete_data_source": GET,
    "refresh_data_source": body({"force": True}),
    "list_data_source_runs": GET,
    "get_data_source_run": Example(ids={"runId": "dataSourceRunId"}),
    "list_data_source_run_rejects": Example(ids={"runId": "dataSourceDoneRunId"}),
    "cancel_data_source_run": Example(ids={"runId": "dataSourceRunId"}),
    "retry_data_source_run": Example(
        ids={"dataSourceId": "idleSourceId", "runId": "failedSourceRunId"}
    ),
    "preview_data_source": Example(
        body=lambda one: {
            "kind": "file",
            "config": {"fileId": one.ids["sheetFileId"], "format": "csv"},
        },
        works=True,
    ),
    "preview_import": Example(
        body=lambda one: {
            "kind": "file",
            "fileId": one.ids["sheetFileId"],
        },
        works=True,
    ),
    "import_spreadsheet": Example(
        body=lambda one: {
            "label": "Imported",
            "kind": "file",
            "fileId": one.ids["workbookFileId"],
            "fields": [
                {"sourcePath": "Title", "fieldKey": "title", "label": "Title", "kind": "text"},
                {"sourcePath": "B", "fieldKey": "price", "label": "Price", "kind": "number"},
            ],
            "targetDatabaseId": one.ids["databaseId"],
        },
        works=True,
    ),
    "revert_data_source_run": Example(ids={"runId": "dataSourceDoneRunId"}, works=True),
    "undo_import": Example(ids={"importId": "importDoneId"}, private=True, works=True),
    "get_import": Example(ids={"importId": "importId"}, private=True),
    "list_import_rejects": Example(ids={"importId": "importDoneId"}, private=True),
    "start_import": Example(
        body=lambda one: {
            "label": "Imported",
            "kind": "file",
            "fileId": one.ids["sheetFileId"],
            "fields": [],
            "targetDatabaseId": one.ids["databaseId"],
        }
    ),
    "cancel_import": Example(ids={"importId": "importId"}, private=True),
    "get_source_run": GET,
    "watch_source_run": Example(works=True),
    # items
    "list_items": Example(query=lambda one: {"parentId": one.ids["folderId"]}),
    "create_item": Example(
        body=lambda one: {
            "kind": "view",
            "title": "New",
            "parentItemId": one.ids["folderId"],
            "config": {"databaseId": one.ids["databaseId"], "kind": "table"},
        }
    ),
    "get_item": GET,
    "update_item": body({"title": "Renamed"}),
    "delete_item": GET,
    "move_item": Example(body=lambda one: {"parentItemId": one.ids["folderId"]}),
    "archive_item": Example(ends=True),
    "restore_item": GET,
    "duplicate_item": Example(ids={"itemId": "pageItemId"}),
    "search": Example(query=lambda _: {"q": "Tea"}),
    "duplicate_database": Example(body=lambda _: {"includeRecords": True}, works=True),
    "list_database_templates": GET,
    "create_database_from_template": Example(
        body=lambda one: {"templateId": "tasks", "parentItemId": one.ids["folderId"]}
    ),
    "create_database_of_template": Example(body=lambda one: {"parentItemId": one.ids["folderId"]}),
    "update_database": body({"description": "Changed"}),
    "delete_database": GET,
    # fields, views, templates
    "create_field": body({"label": "New", "kind": "text"}),
    "update_field": body({"label": "Renamed"}),
    "delete_field": GET,
    "convert_field": body({"kind": "text", "preview": True}),
    "create_view": body({"label": "New", "kind": "table"}),
    "list_views": GET,
    "get_view": GET,
    "duplicate_view": body({"label": "Copy"}),
    "update_view": body({"label": "Renamed"}),
    "delete_view": GET,
    "list_record_templates": GET,
    "create_record_template": body({"label": "New", "data": {"price": 2}}),
    "update_record_template": body({"label": "Renamed"}),
    "delete_record_template": GET,
    # files
    "upload_file": Example(
        query=lambda _: {"name": "new.txt"},
        headers=lambda _: {"Content-Type": "text/plain"},
        content=b"New",
    ),
    "list_files": GET,
    "get_file": GET,
    "delete_file": GET,
    "get_asset": GET,
    "head_asset": GET,
    # onboarding, changes, models
    "draft_workspace": body({"description": "A bakery with customers and orders."}),
    "seed_from_draft": Example(
        body=lambda _: {"plan": {"nodes": [{"type": "page", "label": "Start"}]}}, works=True
    ),
    "seed_from_template": Example(body=lambda _: {"templateKey": "team_tasks"}, works=True),
    "list_starter_templates": GET,
    "create_ai_run": body({"instruction": "Add a database for suppliers."}),
    "list_ai_runs": GET,
    "get_ai_run": Example(ids={"runId": "changeId"}, private=True),
    "reject_ai_run": Example(
        ids={"runId": "changeId"}, body=lambda _: {"reason": "Not yet"}, private=True, ends=True
    ),
    "apply_ai_run": Example(
        ids={"runId": "changeId"}, body=lambda _: {"dryRun": True}, private=True
    ),
    "list_changes": GET,
    "propose_changes": body(
        {"operations": [{"kind": "create_item", "input": {"kind": "page", "title": "New"}}]}
    ),
    "get_changes": Example(private=True),
    "apply_changes": Example(body=lambda _: {"dryRun": True}, private=True),
    "get_model_settings": GET,
    "put_model_settings": body(
        {"baseUrl": "https://llm.example.com/v1", "model": "some", "enabled": False}
    ),
    # sharing
    "create_share_link": Example(ids={"itemId": "pageItemId"}, body=lambda _: {"maxUses": 3}),
    "list_share_links": Example(ids={"itemId": "pageItemId"}),
    "revoke_share_link": Example(ids={"itemId": "pageItemId"}),
    "open_share_link": Example(headers=lambda one: {"X-Share-Token": one.secrets["share token"]}),
    "download_shared_file": Example(
        ids={"shareLinkId": "fileShareLinkId"},
        headers=lambda one: {"X-Share-Token": one.secrets["file share token"]},
    ),
    "get_shared_calendar": Example(
        ids={"shareLinkId": "calendarShareLinkId"},
        headers=lambda one: {"X-Share-Token": one.secrets["calendar share token"]},
    ),
    # records, written many at once and talked about
    "write_records": Example(
        body=lambda one: {
            "operations": [
                {"op": "update", "recordId": one.ids["recordId"], "data": {"price": 4}},
                {"op": "create", "title": "New", "templateId": one.ids["templateId"]},
            ]
        }
    ),
    "delete_record": GET,
    "archive_record": Example(ends=True),
    "restore_record": GET,
    "list_record_history": GET,
    "list_record_comments": GET,
    "create_record_comment": Example(
        body=lambda one: {"body": "Indeed.", "parentCommentId": one.ids["recordCommentId"]}
    ),
    "update_record_comment": Example(
        ids={"commentId": "recordCommentId"}, body=lambda _: {"body": "Better."}
    ),
    "delete_record_comment": Example(ids={"commentId": "recordCommentId"}),
    # time entries
    "start_time_entry": Example(
        body=lambda one: {
            "targetKind": "database_record",
            "targetId": one.ids["recordId"],
            "fieldId": one.ids["timerFieldId"],
        }
    ),
    "list_time_entries": GET,
    "get_current_time_entry": GET,
    "summarize_time_entries": GET,
    "get_time_entry": GET,
    "update_time_entry": Example(
        body=lambda one: {"summary": "Better", "targetId": one.ids["recordId"]}
    ),
    "delete_time_entry": GET,
    "export_records": Example(body=lambda _: {"format": "csv"}, works=True),
    "list_exports": GET,
    "get_export": Example(private=True),
    "cancel_export": Example(private=True),
    "create_workspace_export": EMPTY,
    "list_workspace_exports": GET,
    "get_workspace_export": GET,
    "cancel_workspace_export": GET,
    # surfaces
    "get_surface": GET,
    "replace_surface": Example(body=lambda _: {"blocks": []}, ends=True),
    "list_blocks": GET,
    "add_blocks": Example(
        body=lambda one: {
            "parentBlockId": one.ids["blockId"],
            "blocks": [{"kind": "paragraph", "content": {"text": [{"text": "x"}]}}],
        }
    ),
    "get_block": GET,
    "update_block": body({"content": {"text": [{"text": "Changed"}]}}),
    "delete_block": GET,
    "list_surface_comments": GET,
    "create_surface_comment": Example(
        body=lambda one: {"body": "Indeed.", "blockId": one.ids["blockId"]}
    ),
    "update_surface_comment": Example(
        ids={"commentId": "surfaceCommentId"}, body=lambda _: {"body": "Better."}
    ),
    "delete_surface_comment": Example(ids={"commentId": "surfaceCommentId"}),
    "open_content_surface": GET,
    # forms
    "create_form": Example(
        body=lambda one: {"label": "Contact", "databaseId": one.ids["databaseId"]}
    ),
    "get_form": GET,
    "update_form": body({"description": "Changed"}),
    "get_public_form": Example(ids={"itemId": "formItemId"}),
    "submit_form": Example(
        ids={"itemId": "formItemId"}, body=lambda _: {"data": {"title": "Sent", "price": 5}}
    ),
}
