"""Resolution of a wait by responses, by the kind of node."""

from collections.abc import Sequence

from models.automation.automations.rules.graph.configs import WaitEventConfig
from models.automation.automations.rules.graph.configs.waits import ApprovalTerms
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import holds_binding, without_literals
from models.automation.waits.errors import NotResumableError
from models.automation.waits.rules import approvals, events
from models.automation.waits.rules.filter_reads import run_reads
from models.automation.waits.rules.responses import Resolution, Response
from models.core.base import Id, JsonObject
from runtime.errors import PlatformError, ValidationError

RESUMABLE = (NodeKind.APPROVAL, NodeKind.WAIT_EVENT)

_TERMS = {
    NodeKind.APPROVAL: (
        "assignees",
        "role",
        "required",
        "title",
        "message",
        "form",
        "allowSelf",
        "allowEditors",
        "reminderSeconds",
    ),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""The parameters of a node that are kept while it waits."""

_RESOLVED_BY = {
    NodeKind.APPROVAL: ("required", "form", "allowSelf"),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""The parameters among them that decide on a response."""

_VARIABLES = "variables"
"""In the terms of a node that waits for an event: what its filter reads of the run."""


def terms_of(kind: str, parameters: JsonObject, variables: JsonObject) -> JsonObject:
    """The terms of a node that waits, with what its filter reads of the run."""
    terms = _chosen(_TERMS[NodeKind(kind)], parameters)
    return {**terms, _VARIABLES: variables} if variables else terms


def _early_terms(kind: str, parameters: JsonObject) -> JsonObject | None:
    """The terms of a node that does not wait yet; None if they depend on its run."""
    terms: JsonObject = without_literals(_chosen(_RESOLVED_BY[NodeKind(kind)], parameters))
    depends = holds_binding(terms) or run_reads(terms.get("filter") or "")
    return None if depends else terms


def _chosen(names: Sequence[str], values: JsonObject) -> JsonObject:
    return {name: values[name] for name in names if name in values}


def takes_editors(parameters: JsonObject) -> bool:
    """Tell whether an approval that does not wait yet certainly lets editors decide."""
    chosen = without_literals(_chosen(("allowEditors",), parameters))
    return chosen.get("allowEditors", True) is True


def check_form(kind: str, response: Response) -> None:
    """An approval takes a decision, an event does not. Raises ValidationError."""
    if kind == NodeKind.APPROVAL and response.decision is None:
        raise ValidationError.at("decision", "An approval is approved or rejected.")
    if kind == NodeKind.WAIT_EVENT and response.decision is not None:
        raise ValidationError.at("decision", "The node waits for data, not for a decision.")


def resolve(
    kind: str,
    terms: JsonObject,
    starter: Id | None,
    earlier: Sequence[Response],
    response: Response,
) -> Resolution | None:
    """The resolution that a response brings about; None while the wait goes on.

    Raises ValidationError, ConflictError, DeniedError or NotFoundError for one that does not count.
    """
    check_form(kind, response)
    deciding = _chosen(_RESOLVED_BY[NodeKind(kind)], terms)
    if kind == NodeKind.APPROVAL:
        return approvals.decide(ApprovalTerms.model_validate(deciding), starter, earlier, response)
    config = WaitEventConfig.model_validate(deciding)
    return events.receive(config, terms.get(_VARIABLES, {}), response)


def replay(
    kind: str, terms: JsonObject, starter: Id | None, responses: Sequence[Response]
) -> tuple[list[Response], Resolution | None]:
    """The responses that count among those received early, and the resolution if there is one."""
    accepted_responses: list[Response] = []
    for response in responses:
        try:
            resolution = resolve(kind, terms, starter, accepted_responses, response)
        except PlatformError:
            continue
        accepted_responses.append(response)
        if resolution is not None:
            return accepted_responses, resolution
    return accepted_responses, None


def check_early(
    kind: str,
    parameters: JsonObject,
    starter: Id | None,
    earlier: Sequence[Response],
    response: Response,
) -> None:
    """Refuse a response that cannot count when the node waits, as far as its config tells now.

    `earlier` are the responses kept so far. The parameters are unresolved. Raises as `resolve`.
    """
    check_form(kind, response)
    terms = _early_terms(kind, parameters)
    if terms is None:
        return
    counted, resolution = replay(kind, terms, starter, earlier)
    if resolution is not None:
        raise NotResumableError("Something kept for the node already resolves it when it waits.")
    resolve(kind, terms, starter, counted, response)


def timed_out(kind: str, responses: Sequence[Response]) -> Resolution:
    """The resolution of a wait that times out."""
    return approvals.timed_out(responses) if kind == NodeKind.APPROVAL else events.timed_out()
