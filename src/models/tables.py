"""Every table of the platform, imported once, so that the metadata is whole.

A new resource with tables adds its line here: the module that declares them, mostly its `tables`,
`queries` or `store`.
"""

# ruff: noqa: F401  # importing a table is what registers it

import models.automation.action_runs.tables
import models.automation.actions.store
import models.automation.alert_rules.queries
import models.automation.automation_runs.tables
import models.automation.automations.tables
import models.automation.circuit_breakers
import models.automation.inbox.store
import models.automation.incidents.tables
import models.automation.run_operations.queries
import models.automation.run_statistics
import models.automation.run_undos.queries
import models.automation.saved_run_filters
import models.automation.secrets.store
import models.automation.triggers.subscribers
import models.automation.waits.store
import models.automation.webhooks.commands
import models.content.files.queries
import models.content.items.joins
import models.content.surfaces.queries
import models.core.idempotency
import models.core.lifecycle.lost_workers
import models.core.pauses.intents
import models.core.secret_keys
import models.data.databases.field_conversion
import models.data.fields.rows
import models.data.forms.queries
import models.data.record_changes.history
import models.data.record_comments
import models.data.record_templates
import models.data.records.tables
import models.data.time_entries.tables
import models.data.views.queries
import models.messages.deliveries.commands
import models.messages.events.store
import models.messages.jobs.store
import models.messages.notification_preferences
import models.messages.notifications.queries
import models.messages.push_devices
import models.messages.realtime
import models.messages.webhook_endpoints.store
import models.messages.webhook_signing
import models.messages.workspace_events.log
import models.people.api_keys
import models.people.audience_segments
import models.people.credentials
import models.people.experiments.queries
import models.people.home_layouts
import models.people.invitations
import models.people.oauth_clients
import models.people.release_notices
import models.people.request_logs
import models.people.users
import models.people.workspaces
import models.sources.authorizations.store
import models.sources.connections.store
import models.sources.data_source_runs.tables
import models.sources.data_sources.tables
import models.sources.mounts.queries
import models.sources.outbound_limits.tables
import models.sources.provider_calls
import models.sources.resource_imports.rows
import models.workspace.bundles.references
import models.workspace.changes.queries
import models.workspace.legacy_imports.queries
import models.workspace.model_settings
import models.workspace.share_links.visitors
import models.workspace.system
import models.workspace.usage
import runtime.temporal.outbox
from runtime.postgresql.schema import metadata

__all__ = ["metadata"]
