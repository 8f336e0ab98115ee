"""What something said to a waiting node means, by the kind of node."""

from collections.abc import Sequence

from models.automation.automations.rules.graph.configs import WaitEventConfig
from models.automation.automations.rules.graph.configs.waits import ApprovalTerms
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import holds_binding, without_literals
from models.automation.waits.errors import NotResumableError
from models.automation.waits.rules import approvals, events
from models.automation.waits.rules.filter_reads import run_reads
from models.automation.waits.rules.responses import Resolution, Said
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
    ),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""What of a node's parameters is kept while it waits."""

_JUDGED_BY = {
    NodeKind.APPROVAL: ("required", "form", "allowSelf"),
    NodeKind.WAIT_EVENT: ("filter", "resumeUrl"),
}
"""What of that decides on what is said to it."""

_VARIABLES = "variables"
"""In the terms of a node that waits for an event: what its filter reads of the run."""


def terms_of(kind: str, parameters: JsonObject, variables: JsonObject) -> JsonObject:
    """The terms of a node that waits, with what its filter reads of the run."""
    terms = _chosen(_TERMS[NodeKind(kind)], parameters)
    return {**terms, _VARIABLES: variables} if variables else terms


def _early_terms(kind: str, parameters: JsonObject) -> JsonObject | None:
    """The terms of a node that does not wait yet; None if it takes its run to know them."""
    terms: JsonObject = without_literals(_chosen(_JUDGED_BY[NodeKind(kind)], parameters))
    depends = holds_binding(terms) or run_reads(terms.get("filter") or "")
    return None if depends else terms


def _chosen(names: Sequence[str], values: JsonObject) -> JsonObject:
    return {name: values[name] for name in names if name in values}


def check_form(kind: str, said: Said) -> None:
    """Refuse a decision where none is asked for, and the lack of one. Raises ValidationError."""
    if kind == NodeKind.APPROVAL and said.decision is None:
        raise ValidationError.at("decision", "An approval is approved or rejected.")
    if kind == NodeKind.WAIT_EVENT and said.decision is not None:
        raise ValidationError.at("decision", "The node waits for data, not for a decision.")


def judge(
    kind: str, terms: JsonObject, starter: Id | None, earlier: Sequence[Said], said: Said
) -> Resolution | None:
    """How the wait ends by what was said; None while it goes on.

    Raises ValidationError, ConflictError, DeniedError and NotFoundError for what does not count.
    """
    check_form(kind, said)
    judged_by = _chosen(_JUDGED_BY[NodeKind(kind)], terms)
    if kind == NodeKind.APPROVAL:
        return approvals.decide(ApprovalTerms.model_validate(judged_by), starter, earlier, said)
    config = WaitEventConfig.model_validate(judged_by)
    return events.receive(config, terms.get(_VARIABLES, {}), said)


def replay(
    kind: str, terms: JsonObject, starter: Id | None, came: Sequence[Said]
) -> tuple[list[Said], Resolution | None]:
    """What counts of what came before the node waits, as far as the wait goes on, and its end."""
    counted: list[Said] = []
    for said in came:
        try:
            resolution = judge(kind, terms, starter, counted, said)
        except PlatformError:
            continue
        counted.append(said)
        if resolution is not None:
            return counted, resolution
    return counted, None


def judge_early(
    kind: str, parameters: JsonObject, starter: Id | None, earlier: Sequence[Said], said: Said
) -> None:
    """Refuse what cannot count when the node waits, as far as its config tells before that.

    `earlier` was kept before; the parameters have their bindings. Raises what `judge` does.
    """
    check_form(kind, said)
    terms = _early_terms(kind, parameters)
    if terms is None:
        return
    counted, resolution = replay(kind, terms, starter, earlier)
    if resolution is not None:
        raise NotResumableError("Something kept for the node already resolves it when it waits.")
    judge(kind, terms, starter, counted, said)


def out_of_time(kind: str, said: Sequence[Said]) -> Resolution:
    """The end of a wait whose time is over."""
    return approvals.undecided(said) if kind == NodeKind.APPROVAL else events.unheard()
