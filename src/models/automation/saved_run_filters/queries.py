"""Reading saved filters: shared ones, and the caller's own."""

from typing import Any

from sqlalchemy import Select, or_, select

from models.automation.automations.joins import open_automations
from models.automation.saved_run_filters.shapes import RunFilterList, RunFilterShape
from models.automation.saved_run_filters.tables import SavedRunFilter, saved_run_filter
from models.core.access.rules import Actor, Level
from models.core.pagination import PageRequest
from runtime.database import UnitOfWork

_filter = saved_run_filter.c


async def list_filters(work: UnitOfWork, actor: Actor, page: PageRequest) -> RunFilterList:
    """The saved filters that the caller sees, by name."""
    order = (_filter.label, _filter.id)
    listed = await page.ascending(work, visible(actor), *order, of=SavedRunFilter)
    return RunFilterList(filters=[shape_of(row) for row in listed.items], cursor=listed.cursor)


def visible(actor: Actor) -> Select[Any]:
    """The rows that the caller sees: none about an automation that is closed to them."""
    return select(saved_run_filter).where(
        _filter.workspace_id == actor.workspace_id,
        or_(_filter.owner_user_id.is_(None), _filter.owner_user_id == actor.user_id),
        or_(
            _filter.automation_id.is_(None),
            _filter.automation_id.in_(open_automations(actor, Level.VIEW)),
        ),
    )


def shape_of(row: SavedRunFilter) -> RunFilterShape:
    """A saved filter on the wire."""
    return RunFilterShape(
        id=row.id,
        workspace_id=row.workspace_id,
        label=row.label,
        shared=row.owner_user_id is None,
        query=row.query,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
