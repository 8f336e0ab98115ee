"""The `run` variable of bindings, with the URLs that resume nodes which wait for an event."""

from activities.automation_runs.runs import OpenRun
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.waits.resume_urls import Address, resume_path
from models.automation.waits.rules.scope_keys import scope_near
from models.core.base import JsonObject


def run_variable(run: OpenRun, scope_key: str) -> JsonObject:
    """Facts of the run; `resumeUrl` has the path of each such node, as seen from a scope."""
    if run.keys is None:
        return run.header.variable
    paths = {}
    for node in run.graph.nodes.values():
        if node.kind == NodeKind.WAIT_EVENT and node.parameters.get("resumeUrl") is not False:
            scope = scope_near(run.graph.plan, node.id, scope_key)
            if scope is not None:
                paths[node.id] = resume_path(run.keys, Address(run.header.run_id, node.id, scope))
    return {**run.header.variable, "resumeUrl": paths} if paths else run.header.variable
