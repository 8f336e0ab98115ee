"""The graphs that open runs execute, as what may name a thing.

A run keeps the graph it was accepted with. So it can name what no version names any more.
"""

from collections.abc import Sequence

from sqlalchemy import func, literal, select

from models.automation.automation_runs.rules import OPEN_RUN
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.queries import (
    AUTOMATION,
    GRAPH,
    VERSION,
    automation_of,
    graph_of,
    version_of,
)
from models.automation.automations.references import (
    FoundGraph,
    definition_of,
    forms_of,
    has_one_of,
    texts_of,
)
from models.core.access.rules import Actor
from models.core.references import Definition, Sought
from runtime.database import UnitOfWork


async def run_definitions(work: UnitOfWork, actor: Actor, sought: Sought) -> Sequence[Definition]:
    """The graphs of open runs that may name a thing, each with the number of its runs."""
    forms = await forms_of(work, actor, sought)
    counted = (
        select(
            automation_run.c.automation_id,
            automation_run.c.automation_version_id,
            automation_run.c.graph_checksum,
            func.count().label("runs"),
        )
        .where(
            automation_run.c.workspace_id == actor.workspace_id,
            automation_run.c.status.in_(OPEN_RUN),
        )
        .group_by(
            automation_run.c.automation_id,
            automation_run.c.automation_version_id,
            automation_run.c.graph_checksum,
        )
        .subquery()
    )
    statement = (
        select(
            counted.c.automation_id,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.id.label("version_id"),
            VERSION.version,
            literal("open").label("state"),
            counted.c.runs,
            GRAPH.trigger_config,
            GRAPH.graph,
        )
        .join(*automation_of(counted))
        .join(*version_of(counted))
        .join(*graph_of(counted))
        .where(has_one_of(texts_of(sought, forms)))
        .order_by(AUTOMATION.label, counted.c.automation_id, VERSION.version)
    )
    rows = await work.rows(statement, of=FoundGraph)
    return [definition_of(row, forms) for row in rows]
