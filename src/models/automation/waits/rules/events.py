"""The data that resolves a wait_event node (decisions C8)."""

from models.automation.automations.rules.graph.configs import WaitEventConfig
from models.automation.automations.rules.graph.configs.waits import event_filter
from models.automation.automations.rules.graph.kinds import EdgeOutcome
from models.automation.waits.rules.responses import Resolution, Response
from models.core.base import JsonObject
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.json_values import readable
from runtime.errors import NotFoundError, ValidationError


def receive(config: WaitEventConfig, variables: JsonObject, response: Response) -> Resolution:
    """The resolution by this data; `variables` are what the filter reads of the run.

    Raises ValidationError for data that the filter rejects, NotFoundError for a resume URL that the
    node does not have.
    """
    if response.by_url and not config.resume_url:
        raise NotFoundError("resume URL")
    data = response.data or {}
    if config.filter is not None:
        try:
            known = readable({**variables, "data": data})
            passes = event_filter(config.filter).run(known) is True
        except ExpressionError as error:
            raise ValidationError.at("data", f"The node's filter fails: {error}") from None
        if not passes:
            raise ValidationError.at("data", f"The node waits for other data: {config.filter}")
    by = {} if response.user_id is None else {"resumedBy": response.user_id}
    return Resolution(EdgeOutcome.ALWAYS, {"data": data, **by})


def timed_out() -> Resolution:
    """The resolution of a wait that times out."""
    return Resolution(EdgeOutcome.TIMEOUT, {"data": None})
