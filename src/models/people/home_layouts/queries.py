"""Reading home layouts: always the caller's own."""

from sqlalchemy import select

from models.core.access.rules import Actor
from models.people.home_layouts.shapes import HomeLayoutAnswer, HomeLayoutBody
from models.people.home_layouts.tables import HomeLayout, home_layout
from runtime.database import UnitOfWork


async def get_home_layout(work: UnitOfWork, actor: Actor) -> HomeLayoutAnswer:
    """The caller's layout in the workspace; without widgets until they have placed some."""
    row = await work.first(
        select(home_layout).where(
            home_layout.c.workspace_id == actor.workspace_id,
            home_layout.c.user_id == actor.user_id,
        ),
        of=HomeLayout,
    )
    shown = HomeLayoutBody(widgets=[]) if row is None else HomeLayoutBody.model_validate(row)
    return HomeLayoutAnswer(home_layout=shown)
