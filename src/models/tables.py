"""Every table of the platform, imported once, so that the metadata is whole.

A new noun with tables adds its line here.
"""

# ruff: noqa: F401  # importing a table is what registers it

import models.action_runs.tables
import models.actions.tables
import models.api_keys.tables
import models.automation_runs.tables
import models.automations.tables
import models.data_sources.tables
import models.databases.tables
import models.files.tables
import models.forms.tables
import models.grants.tables
import models.idempotency.tables
import models.invitations.tables
import models.items.tables
import models.jobs.tables
import models.mounts.tables
import models.notifications.tables
import models.record_changes.tables
import models.record_comments.tables
import models.record_templates.tables
import models.records.tables
import models.request_logs.tables
import models.secrets.tables
import models.share_links.tables
import models.surfaces.tables
import models.trigger_events.tables
import models.users.tables
import models.views.tables
import models.waits.tables
import models.webhook_signing.tables
import models.webhooks.tables
import models.workspace_events.tables
import models.workspaces.tables
import runtime.outbox
from runtime.schema import metadata

__all__ = ["metadata"]
