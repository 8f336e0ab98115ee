"""The way each node of a plan is executed (decisions D2): a loop costs what its body costs.

Standard library only.
"""

from models.automation.automations.rules.graph.kinds import NODE_KINDS, CostClass, NodeKind
from models.automation.automations.rules.graph.loop_nesting import body_of
from models.automation.automations.rules.planner.plan import Plan


def costs_of(plan: Plan) -> dict[str, CostClass]:
    """The cost class of every node. A loop of quick nodes that lets no time pass is quick too."""
    costs = {node.id: NODE_KINDS[NodeKind(node.kind)].cost for node in plan.nodes}
    loops = [node.id for node in plan.nodes if costs[node.id] is CostClass.LOOP]
    if not loops:
        return costs
    pausing = {node.id for node in plan.nodes if node.pauses}
    light = (CostClass.QUICK, CostClass.LOOP)
    bodies = {loop: [loop, *body_of(loop, plan.edges)] for loop in loops}
    quick = [
        loop
        for loop, body in bodies.items()
        if all(costs[node_id] in light and node_id not in pausing for node_id in body)
    ]
    return costs | dict.fromkeys(quick, CostClass.QUICK)
