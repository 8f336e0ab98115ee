"""The respond node: what the webhook call that waits for this run is answered."""

from activities.automation_runs.nodes.invocation import NodeResult
from models.automation.automations.rules.graph.configs import RespondConfig
from models.automation.automations.rules.language.bindings import BindingContext
from models.core.base import JsonObject


def respond(parameters: JsonObject, context: BindingContext) -> NodeResult:
    """`{status, headers, body}`, kept as the node's output; whoever waits finds it there."""
    del context
    config = RespondConfig.model_validate(parameters)
    return NodeResult({"status": config.status, "headers": config.headers, "body": config.body})
