"""Parts of statements about automations, for nouns whose rows run one of their versions."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, select

from models.automation.automations.tables import automation, automation_graph, automation_version
from models.content.items.queries import closed_items, placed
from models.core.access.rules import Actor, Level

AUTOMATION = automation.c
VERSION = automation_version.c
GRAPH = automation_graph.c
"""The columns of what the joins below add; `runnable_versions.LIVE` has all three."""


def automation_of(run: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the automation of a run: `select(…).join(*automation_of(run))`."""
    return automation, automation.c.id == run.c.automation_id


def version_of(run: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the version of a run."""
    return automation_version, automation_version.c.id == run.c.automation_version_id


def graph_of(run: FromClause) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the graph that a run executes."""
    executed = and_(
        automation_graph.c.automation_id == run.c.automation_id,
        automation_graph.c.checksum == run.c.graph_checksum,
    )
    return automation_graph, executed


def open_automations(actor: Actor, level: Level) -> Select[Any]:
    """The ids of the automations on which the actor has this level."""
    return select(automation.c.id).where(
        automation.c.workspace_id == actor.workspace_id,
        automation.c.item_id.not_in(select(closed_items(actor, level).c.id)),
    )


def placed_automations() -> Select[Any]:
    """The start of a `PlacementOf`, for what belongs to an automation."""
    return placed(automation)
