"""Every table of the platform, imported once, so that the metadata is whole.

A new noun with tables adds its line here.
"""

# ruff: noqa: F401  # importing a table is what registers it

import models.api_keys.tables
import models.automation_runs.tables
import models.automations.tables
import models.databases.tables
import models.grants.tables
import models.idempotency.tables
import models.invitations.tables
import models.items.tables
import models.jobs.tables
import models.records.tables
import models.request_logs.tables
import models.users.tables
import models.workspaces.tables
import runtime.outbox
from runtime.schema import metadata

__all__ = ["metadata"]
