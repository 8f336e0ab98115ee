"""Responses to nodes that wait: the answers that count, and what they bring about."""

from typing import Any
from uuid import UUID

import pytest

from models.automation.automations.rules.graph.kinds import EdgeOutcome, NodeKind
from models.automation.automations.rules.graph.wait_configs import ApprovalField
from models.automation.waits.rules import (
    DecidedAlreadyError,
    OwnRunError,
    Response,
    check_answers,
    replay,
    resolve,
    timed_out,
)
from runtime.errors import NotFoundError, ValidationError

ANN, BOB, EVE = (UUID(int=number) for number in (1, 2, 3))


def decision(user: UUID, decision: str = "approved", **data: Any) -> Response:
    return Response(str(user), "2026-01-01T00:00:00.000Z", decision, data=data or None)


def event(user: UUID | None = ANN, **data: Any) -> Response:
    user_id = None if user is None else str(user)
    return Response(user_id, "2026-01-01T00:00:00.000Z", data=data or None)


def approve(terms: dict[str, Any], *responses: Response) -> str | None:
    """The outcome after the last of the responses."""
    *earlier, last = responses
    found = resolve(NodeKind.APPROVAL, terms, ANN, earlier, last)
    return None if found is None else found.outcome


@pytest.mark.parametrize(
    ("kind", "value", "fine"),
    [
        ("text", "x" * 20_000, True),
        ("text", "x" * 20_001, False),
        ("text", 1, False),
        ("number", 1.5, True),
        ("number", True, False),
        ("number", float("inf"), False),
        ("number", "1", False),
        ("checkbox", False, True),
        ("checkbox", 0, False),
        ("select", "a", True),
        ("select", "c", False),
        ("date", "2026-01-31", True),
        ("date", "2026-02-31", False),
        ("date", "20260131", False),
        ("date", 20260131, False),
    ],
)
def test_an_answer_is_of_the_kind_of_its_question(kind: Any, value: Any, fine: bool) -> None:
    form = [ApprovalField(key="a", label="A", kind=kind, options=["a", "b"])]
    if fine:
        check_answers(form, {"a": value}, whole=True)
    else:
        with pytest.raises(ValidationError, match=r"data\.a"):
            check_answers(form, {"a": value}, whole=True)


def test_a_required_answer_may_lack_only_in_a_rejection() -> None:
    form = [ApprovalField(key="a", label="A", required=True), ApprovalField(key="b", label="B")]
    for missing in ({}, {"a": None}, {"a": ""}, {"a": " \n"}, {"a": "\u00a0"}):
        check_answers(form, missing, whole=False)
        with pytest.raises(ValidationError, match="is required"):
            check_answers(form, missing, whole=True)
    with pytest.raises(ValidationError, match="is not a question"):
        check_answers(form, {"a": "x", "c": 1}, whole=True)
    check_answers([], {"c": 1}, whole=True)


def test_a_required_box_is_ticked_in_an_approval() -> None:
    form = [ApprovalField(key="a", label="A", kind="checkbox", required=True)]
    check_answers(form, {"a": True}, whole=True)
    check_answers(form, {"a": False}, whole=False)
    with pytest.raises(ValidationError, match="must be true"):
        check_answers(form, {"a": False}, whole=True)


def test_an_approval_needs_as_many_as_it_asks_for_and_one_rejection_rejects() -> None:
    two = {"required": 2}
    assert approve({}, decision(BOB)) == EdgeOutcome.APPROVED
    assert approve(two, decision(BOB)) is None
    assert approve(two, decision(BOB), decision(EVE)) == EdgeOutcome.APPROVED
    assert approve(two, decision(BOB), decision(EVE, "rejected")) == EdgeOutcome.REJECTED
    with pytest.raises(DecidedAlreadyError):
        approve(two, decision(BOB), decision(BOB))
    with pytest.raises(OwnRunError):
        approve({}, decision(ANN))
    assert approve({"allowSelf": True}, decision(ANN)) == EdgeOutcome.APPROVED
    with pytest.raises(ValidationError, match="decision"):
        approve({}, event(BOB))


def test_the_later_answer_to_a_question_wins_and_each_decision_is_shown() -> None:
    earlier, last = decision(BOB, a=1, b=1), decision(EVE, a=2)
    found = resolve(NodeKind.APPROVAL, {"required": 2}, ANN, [earlier], last)
    assert found is not None
    assert found.output["data"] == {"a": 2, "b": 1}
    assert [one["userId"] for one in found.output["decisions"]] == [str(BOB), str(EVE)]
    late = timed_out(NodeKind.APPROVAL, [earlier])
    assert (late.outcome, late.output["decision"]) == ("timeout", "timeout")
    assert timed_out(NodeKind.WAIT_EVENT, []).output == {"data": None}


def test_an_event_resumes_with_data_that_its_filter_lets_through() -> None:
    terms = {"filter": "data.n > trigger.least", "variables": {"trigger": {"least": 1}}}
    found = resolve(NodeKind.WAIT_EVENT, terms, None, [], event(n=2))
    assert found is not None
    assert found.output == {"data": {"n": 2}, "resumedBy": str(ANN)}
    for refused in (event(n=1), event(m=2), event()):
        with pytest.raises(ValidationError, match="filter"):
            resolve(NodeKind.WAIT_EVENT, terms, None, [], refused)
    with pytest.raises(ValidationError, match="decision"):
        resolve(NodeKind.WAIT_EVENT, terms, None, [], decision(ANN))
    assert resolve(NodeKind.WAIT_EVENT, {}, None, [], event()) is not None


def test_only_a_node_with_a_resume_url_is_resumed_without_an_account() -> None:
    found = resolve(NodeKind.WAIT_EVENT, {"resumeUrl": True}, None, [], event(None))
    assert found is not None
    assert found.output == {"data": {}}
    with pytest.raises(NotFoundError):
        resolve(NodeKind.WAIT_EVENT, {"resumeUrl": False}, None, [], event(None))


def test_early_responses_count_until_one_resolves() -> None:
    given = [decision(BOB), decision(BOB), decision(ANN), decision(EVE), decision(UUID(int=4))]
    counted, found = replay(NodeKind.APPROVAL, {"required": 2}, ANN, given)
    assert [one.user_id for one in counted] == [str(BOB), str(EVE)]
    assert found is not None
    assert replay(NodeKind.APPROVAL, {"required": 2}, ANN, given[:3]) == ([given[0]], None)
