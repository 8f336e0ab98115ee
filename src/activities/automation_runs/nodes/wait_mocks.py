"""The outcome of a waiting node that a test run replaces by its mock."""

from activities.automation_runs.nodes.invocation import NodeResult
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.core.base import JsonObject

WAITED = (NodeKind.APPROVAL, NodeKind.WAIT_EVENT)


def waited_result(kind: str, output: JsonObject) -> NodeResult:
    """The outcome that a mock stands for.

    `{timeout: true}` is the end of the time; an approval is approved unless its `decision` says
    otherwise.
    """
    decision = output.get("decision")
    if output.get("timeout") is True or decision == EdgeOutcome.TIMEOUT:
        return NodeResult(output, EdgeOutcome.TIMEOUT)
    if kind == NodeKind.WAIT_EVENT:
        return NodeResult(output)
    rejected = decision == EdgeOutcome.REJECTED
    return NodeResult(output, EdgeOutcome.REJECTED if rejected else EdgeOutcome.APPROVED)
