"""The functions behind the resource names of an `Access`: each finds it where a caller may look.

A noun adds its line here. The function gives the placement of a resource that exists in one of the
workspaces, and None for one that is unknown, deleted or elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from models.automation.actions import queries as actions
from models.automation.alert_rules import queries as alert_rules
from models.automation.automations import queries as automations
from models.automation.incidents import queries as incidents
from models.automation.run_overviews import queries as run_overviews
from models.content.files import queries as files
from models.content.items import queries as items
from models.core.access.placement import Placement
from models.data.fields import queries as databases
from models.data.forms import queries as forms
from models.data.records.queries import placement as record_placement
from models.data.records.queries import records
from models.data.time_entries.queries import entries
from models.messages.webhook_endpoints import queries as webhook_endpoints
from models.people.api_keys import queries as api_keys
from models.people.invitations import queries as invitations
from models.people.members import queries as members
from models.sources.data_source_runs import overviews as data_source_runs
from models.sources.data_sources import queries as data_sources
from models.sources.mounts import queries as mounts
from models.workspace.share_links.queries import links as share_links
from runtime.database import UnitOfWork

Visible = Callable[[UnitOfWork, Sequence[UUID], UUID, UUID], Awaitable[Placement | None]]
"""Takes the workspaces, the resource's id and the caller's user id."""

RESOURCES: Mapping[str, Visible] = {
    "action": actions.visible,
    "alert_rule": alert_rules.visible,
    "api_key": api_keys.visible,
    "automation": automations.visible,
    "data_source": data_sources.visible,
    "data_source_run": data_source_runs.visible,
    "database": databases.visible,
    "endpoint": webhook_endpoints.visible,
    "entry": entries.visible,
    "file": files.visible,
    "field": databases.visible_field,
    "form": forms.visible,
    "incident": incidents.visible,
    "invitation": invitations.visible,
    "item": items.placement,
    "mount": mounts.visible,
    "record": records.visible,
    "run": run_overviews.visible,
    "share_link": share_links.visible,
    "surface": record_placement.visible_surface,
    "user": members.visible,
}

IN_TRASH: Mapping[str, Visible] = {
    "item": items.restorable,
    "record": record_placement.restorable,
}
"""The same for what may be in the trash and can still come back from there."""
