"""Reading graphs by their content: a graph never changes under its checksum."""

from typing import Protocol

from sqlalchemy import bindparam, func, select

from models.automation.automations.tables import automation_graph
from models.core.base import Id, JsonObject
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work


class StoredPlan(Protocol):
    """A compiled graph; `plan` is None for one that was never compiled."""

    plan: JsonObject | None


class StoredGraph(StoredPlan, Protocol):
    """A graph as it was saved, and compiled."""

    graph: JsonObject


_THIS = (
    automation_graph.c.automation_id == bindparam("automation_id"),
    automation_graph.c.checksum == bindparam("checksum"),
)
_GRAPH = PreparedStatement(
    select(automation_graph.c.plan, automation_graph.c.graph).where(*_THIS), StoredGraph
)
_PLAN = PreparedStatement(select(automation_graph.c.plan).where(*_THIS), StoredPlan)


async def stored_graph(work: Work, automation_id: Id, checksum: str) -> StoredGraph | None:
    """A graph of an automation."""
    return await _GRAPH.first(work, {"automation_id": automation_id, "checksum": checksum})


async def stored_plan(work: Work, automation_id: Id, checksum: str) -> StoredPlan | None:
    """The compiled form of a graph alone."""
    return await _PLAN.first(work, {"automation_id": automation_id, "checksum": checksum})


async def number_of_nodes(work: UnitOfWork, automation_id: Id, checksum: str) -> int | None:
    """The number of nodes of a graph; None when it is gone."""
    number: int | None = await work.scalar(
        select(func.jsonb_array_length(automation_graph.c.graph["nodes"])).where(
            automation_graph.c.automation_id == automation_id,
            automation_graph.c.checksum == checksum,
        )
    )
    return number
