"""Nodes that decide or compute: condition, switch, transform, join, stop, respond."""

from collections.abc import Mapping

from activities.automation_runs.nodes.invocation import Computation, NodeResult
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.graph import configs
from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.language.bindings import BindingContext
from models.automation.automations.rules.language.filters import matches
from models.core.base import JsonObject
from models.core.expressions.rules.expressions import saved_expression
from runtime.clock import utc_now


def condition(parameters: JsonObject, context: BindingContext) -> NodeResult:
    """`true` or `false`, from a CEL expression or a filter over the variables."""
    config = configs.ConditionConfig.model_validate(parameters)
    if config.expression is None:
        return condition_result(matches(config.filter, context.variables(), utc_now()))
    return condition_result(_holds(config.expression, context, "The condition"))


def condition_result(result: bool) -> NodeResult:
    return NodeResult({"result": result}, EdgeOutcome.TRUE if result else EdgeOutcome.FALSE)


def switch(parameters: JsonObject, context: BindingContext) -> NodeResult:
    """The first case whose expression holds, else `default`."""
    for candidate in configs.SwitchConfig.model_validate(parameters).cases:
        if _holds(candidate.expression, context, f'The case "{candidate.key}"'):
            return switch_result(candidate.key)
    return switch_result(None)


def _holds(expression: str, context: BindingContext, what: str) -> bool:
    result = saved_expression(expression).evaluate(context.variables())
    if not isinstance(result, bool):
        raise NodeError("binding_error", f"{what} must return true or false.")
    return result


def switch_result(key: str | None) -> NodeResult:
    outcome = EdgeOutcome.DEFAULT if key is None else EdgeOutcome.CASE
    return NodeResult({"case": key}, outcome, key)


def transform(parameters: JsonObject, _context: BindingContext) -> NodeResult:
    """The `output` map with its bindings resolved."""
    return NodeResult(configs.TransformConfig.model_validate(parameters).output)


def join(_parameters: JsonObject, _context: BindingContext) -> NodeResult:
    """Nothing to do: the planner has waited for the branches."""
    return NodeResult({})


def stop(parameters: JsonObject, _context: BindingContext) -> NodeResult:
    """The value the run ends with; the outcome says how it ends."""
    config = configs.StopConfig.model_validate(parameters)
    output = {**(config.output or {}), "result": config.result}
    if config.message is not None:
        output["message"] = config.message
    return NodeResult(output, outcome=config.result)


def respond(parameters: JsonObject, _context: BindingContext) -> NodeResult:
    """`{status, headers, body}`, kept as the node's output; the waiting webhook call finds it."""
    config = configs.RespondConfig.model_validate(parameters)
    return NodeResult({"status": config.status, "headers": config.headers, "body": config.body})


COMPUTATIONS: Mapping[str, Computation] = {
    NodeKind.CONDITION: condition,
    NodeKind.SWITCH: switch,
    NodeKind.TRANSFORM: transform,
    NodeKind.JOIN: join,
    NodeKind.STOP: stop,
    NodeKind.RESPOND: respond,
}
"""The quick kinds whose only effect is their output."""
