"""Nodes that decide or compute: condition, switch, transform, join, stop."""

from activities.nodes.invocation import Invocation, NodeResult
from models.automation_runs.errors import NodeError
from models.automations.rules.configs import (
    ConditionConfig,
    StopConfig,
    SwitchConfig,
    TransformConfig,
)
from models.automations.rules.expressions import compile_expression
from models.automations.rules.filters import matches
from models.automations.rules.kinds import EdgeOutcome


async def condition(node: Invocation) -> NodeResult:
    """`true` or `false`, from a CEL expression or a filter over the variables."""
    config = ConditionConfig.model_validate(node.parameters)
    variables = node.context.variables()
    if config.expression is not None:
        result = compile_expression(config.expression).evaluate(variables)
        if not isinstance(result, bool):
            raise NodeError("binding_error", "The condition must give true or false.")
    else:
        result = matches(config.filter, variables)
    return condition_result(result)


def condition_result(result: bool) -> NodeResult:  # the result is the point
    return NodeResult({"result": result}, EdgeOutcome.TRUE if result else EdgeOutcome.FALSE)


async def switch(node: Invocation) -> NodeResult:
    """The first case whose expression holds, else `default`."""
    config = SwitchConfig.model_validate(node.parameters)
    variables = node.context.variables()
    for candidate in config.cases:
        if compile_expression(candidate.expression).evaluate(variables) is True:
            return switch_result(candidate.key)
    return switch_result(None)


def switch_result(key: str | None) -> NodeResult:
    outcome = EdgeOutcome.DEFAULT if key is None else EdgeOutcome.CASE
    return NodeResult({"case": key}, outcome, key)


async def transform(node: Invocation) -> NodeResult:
    """The `output` map with its bindings resolved."""
    return NodeResult(TransformConfig.model_validate(node.parameters).output)


async def join(node: Invocation) -> NodeResult:
    """Nothing to do: the planner has waited for the branches."""
    del node
    return NodeResult({})


async def stop(node: Invocation) -> NodeResult:
    """The value the run ends with."""
    config = StopConfig.model_validate(node.parameters)
    output = dict(config.output or {})
    output["result"] = config.result
    if config.message is not None:
        output["message"] = config.message
    return NodeResult(output, outcome=config.result)
