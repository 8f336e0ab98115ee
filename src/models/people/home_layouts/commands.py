"""Replacing home layouts."""

from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.people.home_layouts.queries import get_home_layout
from models.people.home_layouts.shapes import HomeLayoutAnswer, ReplaceHomeLayout
from models.people.home_layouts.tables import home_layout
from runtime.database import UnitOfWork


async def replace_home_layout(
    work: UnitOfWork, actor: Actor, body: ReplaceHomeLayout
) -> HomeLayoutAnswer:
    """Make these the caller's widgets; widgets that are there already are left as they are.

    PostgreSQL compares the two as JSON: the order of keys and the way numbers are written are no
    difference.
    """
    widgets = [widget.model_dump(exclude_none=True) for widget in body.widgets]
    values = {"widgets": widgets, "updated_at": work.now}
    statement = upsert(home_layout).values(
        workspace_id=actor.workspace_id, user_id=actor.user_id, **values
    )
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "user_id"],
            set_=values,
            where=home_layout.c.widgets.is_distinct_from(statement.excluded.widgets),
        )
    )
    return await get_home_layout(work, actor)
