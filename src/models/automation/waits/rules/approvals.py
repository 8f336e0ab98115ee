"""Approvals: who may decide, and when the decisions resolve the wait (decisions C8)."""

from collections.abc import Sequence
from typing import Any

from models.automation.automations.rules.graph.configs import ApprovalConfig
from models.automation.automations.rules.graph.configs.waits import ApprovalTerms
from models.automation.automations.rules.graph.kinds import EdgeOutcome
from models.automation.waits.errors import DecidedAlreadyError, OnlyAskedError, OwnRunError
from models.automation.waits.rules.form_answers import check_answers
from models.automation.waits.rules.responses import Resolution, Response
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject


def is_asked(config: ApprovalConfig, actor: Actor) -> bool:
    """True when the node asks for the decision of the actor."""
    return actor.user_id in config.assignees or actor.role is config.role


def check_decider(terms: JsonObject, actor: Actor) -> None:
    """Refuse whoever is not asked, unless editors may decide as well. Raises OnlyAskedError."""
    config = ApprovalConfig.model_validate(terms)
    if not config.allow_editors and not is_asked(config, actor):
        raise OnlyAskedError


def decide(
    terms: ApprovalTerms, starter: Id | None, earlier: Sequence[Response], response: Response
) -> Resolution | None:
    """The resolution of an approval by a decision and the earlier ones; None while more are needed.

    A rejection needs no answers, an approval needs the required ones. Raises OwnRunError,
    DecidedAlreadyError and ValidationError.
    """
    if not terms.allow_self and starter is not None and response.user_id == str(starter):
        raise OwnRunError
    if any(previous.user_id == response.user_id for previous in earlier):
        raise DecidedAlreadyError
    approves = response.decision == EdgeOutcome.APPROVED
    check_answers(terms.form, response.data or {}, whole=approves)
    decisions = [*earlier, response]
    if not approves:
        return Resolution(EdgeOutcome.REJECTED, decided(response, decisions))
    approvals = sum(vote.decision == EdgeOutcome.APPROVED for vote in decisions)
    if approvals < terms.required:
        return None
    return Resolution(EdgeOutcome.APPROVED, decided(response, decisions))


def timed_out(decisions: Sequence[Response]) -> Resolution:
    """The resolution of an approval that times out."""
    output = {**decided(None, decisions), "decision": EdgeOutcome.TIMEOUT.value}
    return Resolution(EdgeOutcome.TIMEOUT, output)


def decided(last: Response | None, decisions: Sequence[Response]) -> JsonObject:
    """`{decision, comment, data, decisions}`; of answers to the same question the later wins."""
    data: dict[str, Any] = {}
    for one in decisions:
        data |= one.data or {}
    return {
        "decision": None if last is None else last.decision,
        "comment": None if last is None else last.comment,
        "data": data,
        "decisions": shown(decisions),
    }


def shown(decisions: Sequence[Response]) -> list[JsonObject]:
    """The decision of each person, oldest first."""
    return [
        {"userId": one.user_id, "decision": one.decision, "comment": one.comment, "at": one.at}
        for one in decisions
    ]
