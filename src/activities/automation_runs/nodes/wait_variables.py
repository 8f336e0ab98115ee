"""The variables that the filter of a wait_event node reads, taken from the run when it waits."""

from activities.automation_runs.binding_contexts import binding_context
from activities.automation_runs.node_execution import CalledNode
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.waits.rules.filter_reads import run_reads, taken
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import selections
from runtime.database import Database


async def awaited(database: Database, invocation: CalledNode, parameters: JsonObject) -> JsonObject:
    """The values of the run its filter reads. Raises BindingError when that is too large.

    The filter may come from a binding, so only now is it known which outputs it reads.
    """
    text = parameters.get("filter")
    if invocation.node.kind != NodeKind.WAIT_EVENT or not isinstance(text, str):
        return {}
    reads = run_reads(text)
    if not reads:
        return {}
    nodes = selections(text, "nodes")
    context = await binding_context(database, invocation.run, nodes, invocation.key.scope_key)
    return taken(reads, context.variables())
