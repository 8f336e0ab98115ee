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
from models.records import queries as records
from runtime.database import UnitOfWork

Visible = Callable[[UnitOfWork, Sequence[UUID], UUID], Awaitable[Placement | None]]

RESOURCES: Mapping[str, Visible] = {
    "api_key": api_keys.visible,
    "automation": automations.visible,
    "database": databases.visible,
    "record": records.visible,
}
