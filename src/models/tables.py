"""Every table of the platform, imported once, so that the metadata is whole.

A new noun with tables adds its line here: its `tables`, or the `lifecycle` of durable work above
them.
"""

# ruff: noqa: F401  # importing a table is what registers it

import models.automation.action_runs.lifecycle
import models.automation.actions.tables
import models.automation.alert_rules.tables
import models.automation.automation_runs.lifecycle
import models.automation.automations.tables
import models.automation.circuit_breakers.tables
import models.automation.incidents.tables
import models.automation.run_operations.lifecycle
import models.automation.run_statistics.tables
import models.automation.saved_run_filters.tables
import models.automation.secrets.tables
import models.automation.triggers.tables
import models.automation.waits.tables
import models.automation.webhooks.tables
import models.content.files.tables
import models.content.items.tables
import models.content.surfaces.tables
import models.core.idempotency.tables
import models.core.lifecycle.tables
import models.core.pauses.tables
import models.core.secret_keys.tables
import models.data.databases.tables
import models.data.fields.tables
import models.data.forms.tables
import models.data.record_changes.tables
import models.data.record_comments.tables
import models.data.record_templates.tables
import models.data.records.tables
import models.data.time_entries.lifecycle
import models.data.views.tables
import models.messages.deliveries.lifecycle
import models.messages.events.tables
import models.messages.jobs.lifecycle
import models.messages.notification_preferences.tables
import models.messages.notifications.tables
import models.messages.presence.tables
import models.messages.push_devices.tables
import models.messages.realtime_tickets.tables
import models.messages.webhook_endpoints.tables
import models.messages.webhook_signing.tables
import models.messages.workspace_events.tables
import models.people.api_keys.tables
import models.people.audience_segments.tables
import models.people.browser_sessions.tables
import models.people.experiments.tables
import models.people.home_layouts.tables
import models.people.invitations.tables
import models.people.oauth_clients.tables
import models.people.release_notices.tables
import models.people.request_logs.tables
import models.people.users.tables
import models.people.workspaces.tables
import models.sources.authorizations.tables
import models.sources.connections.tables
import models.sources.data_source_runs.lifecycle
import models.sources.data_sources.tables
import models.sources.mounts.tables
import models.sources.outbound_limits.tables
import models.sources.provider_calls.tables
import models.sources.resource_imports.tables
import models.workspace.bundles.tables
import models.workspace.changes.lifecycle
import models.workspace.legacy_imports.lifecycle
import models.workspace.model_settings.tables
import models.workspace.share_links.tables
import models.workspace.system.tables
import models.workspace.usage.tables
import runtime.outbox
from runtime.schema import metadata

__all__ = ["metadata"]
