"""Checks that the things a config names exist where the actor may look."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from models.automation.actions.rules.problems import Named
from models.automation.automations.queries import visible as visible_automation
from models.core.access.placement import Placement, level_on
from models.core.access.rules import Actor, Level
from models.core.base import Id
from models.data.fields.queries import visible as visible_database
from models.data.records.queries.records import visible as visible_record
from models.messages.webhook_endpoints.queries import sees_endpoint
from models.people.members.queries import visible as visible_member
from models.sources.connections.queries import sees_connection
from models.sources.data_sources.queries import visible as visible_data_source
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_Visible = Callable[[UnitOfWork, Sequence[Id], Id, Id], Awaitable[Placement | None]]

_VISIBLE: Mapping[str, _Visible] = {
    "automation": visible_automation,
    "data_source": visible_data_source,
    "database": visible_database,
    "record": visible_record,
}

_SEES: Mapping[str, Callable[[UnitOfWork, Actor, Id], Awaitable[bool]]] = {
    "connection": sees_connection,
    "webhook_endpoint": sees_endpoint,
}


async def check_named(work: UnitOfWork, actor: Actor, references: Iterable[Named]) -> None:
    """Raises `NotFoundError` for what the actor does not see."""
    places = [actor.workspace_id]
    for reference in references:
        if reference.noun == "user":
            is_visible = await visible_member(work, places, reference.id, actor.user_id) is not None
        elif reference.noun in _SEES:
            is_visible = await _SEES[reference.noun](work, actor, reference.id)
        else:
            found = await _VISIBLE[reference.noun](work, places, reference.id, actor.user_id)
            is_visible = found is not None and level_on(found, actor.role) >= Level.VIEW
        if not is_visible:
            raise NotFoundError(reference.noun.replace("_", " "))
