"""What something said to a waiting node means, by the kind of node."""

from collections.abc import Sequence

from models.automations.rules.configs import ApprovalConfig, WaitEventConfig
from models.automations.rules.kinds import NodeKind
from models.base import Id, JsonObject
from models.waits.rules import approvals, events
from models.waits.rules.said import Resolution, Said
from runtime.errors import ValidationError

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


def terms_of(kind: str, parameters: JsonObject) -> JsonObject:
    """The part of a node's parameters that what is said to it is held to."""
    names = _TERMS[NodeKind(kind)]
    return {name: parameters[name] for name in names if name in parameters}


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
    if kind == NodeKind.APPROVAL:
        config = ApprovalConfig.model_validate(terms)
        return approvals.decide(config, starter, earlier, said)
    return events.receive(WaitEventConfig.model_validate(terms), said)


def out_of_time(kind: str, said: Sequence[Said]) -> Resolution:
    """The end of a wait whose time is over."""
    return approvals.undecided(said) if kind == NodeKind.APPROVAL else events.unheard()
