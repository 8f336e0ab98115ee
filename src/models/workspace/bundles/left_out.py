"""Tables with rows of a workspace that no bundle has, and why."""

from collections.abc import Mapping

_CREDENTIALS = "credentials leave no workspace"
_HISTORY = "what happened stays where it happened"
_TRANSIENT = "is under way, and ends where it began"
_DERIVED = "is made anew of what a bundle has"

LEFT_OUT: Mapping[str, str] = {
    "api_key": _CREDENTIALS,
    "connection": _CREDENTIALS,
    "model_settings": _CREDENTIALS,
    "imported_resource": "keeps copies in step, by a connection that stays behind",
    "invitation": "its token was sent by the platform that it opens",
    "oauth_authorization": _CREDENTIALS,
    "oauth_client_choice": "is a choice of a person, about all their workspaces",
    "realtime_presence": _TRANSIENT,
    "realtime_ticket": _CREDENTIALS,
    "provider_switch": "says which providers this platform may ask",
    "resource_mirror": "what a provider said to one connection, for a while",
    "share_link": "its token opens the item on the platform that made it",
    "webhook_endpoint": "its secret is shared with whoever receives, and what goes out must not go"
    " out twice",
    "webhook_signing_secret": _CREDENTIALS,
    "workspace_secret": _CREDENTIALS,
    "action_run": _HISTORY,
    "action_step": _HISTORY,
    "automation_event": _HISTORY,
    "automation_run": _HISTORY,
    "change_set": "names what is in this workspace by its ids, and waits for a week at most",
    "data_source_run": _HISTORY,
    "saved_run_filter": "looks for runs, which stay where they happened",
    "delivery": _HISTORY,
    "delivery_line": _HISTORY,
    "node_run": _HISTORY,
    "node_run_attempt": _HISTORY,
    "notification": _HISTORY,
    "record_change": _HISTORY,
    "request_log": _HISTORY,
    "incident": _HISTORY,
    "incident_run": _HISTORY,
    "incident_version": _HISTORY,
    "ungrouped_failure": _HISTORY,
    "run_operation": _HISTORY,
    "run_operation_result": _HISTORY,
    "usage_total": _HISTORY,
    "ended_run": _HISTORY,
    "failure_statistic": _HISTORY,
    "run_statistic": _HISTORY,
    "workspace_event": _HISTORY,
    "debounced_change": _TRANSIENT,
    "field_conversion_value": _TRANSIENT,
    "job": _TRANSIENT,
    "outbox": _TRANSIENT,
    "removed_field": "its values are on their way out, and leave with it",
    "run_wait": _TRANSIENT,
    "suspended_execution": _TRANSIENT,
    "trigger_event": _TRANSIENT,
    "webhook_receipt": _TRANSIENT,
    "automation_graph": "stands in the versions that have it",
    "automation_subscription": _DERIVED,
    "record_count": _DERIVED,
    "record_index": _DERIVED,
    "source_row": "a refresh finds records again by their key fields",
    "import_id_map": "is about an import, not about what came in",
}
"""Table → why its rows stay behind."""
