"""What each resource name in an `Access` means: a function that finds it where a caller may look.

A noun adds its line here. The function gives the placement of a resource that exists in one of
the workspaces, and None for everything else: unknown, deleted, elsewhere.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from models.access.placement import Placement
from models.api_keys import queries as api_keys
from models.automations import queries as automations
from models.databases import queries as databases
from models.invitations import queries as invitations
from models.items import queries as items
from models.members import queries as members
from models.records import queries as records
from runtime.database import UnitOfWork

Visible = Callable[[UnitOfWork, Sequence[UUID], UUID, UUID], Awaitable[Placement | None]]
"""Takes the workspaces, the resource's id and the caller's user id."""

RESOURCES: Mapping[str, Visible] = {
    "api_key": api_keys.visible,
    "automation": automations.visible,
    "database": databases.visible,
    "invitation": invitations.visible,
    "item": items.placement,
    "record": records.visible,
    "user": members.visible,
}
