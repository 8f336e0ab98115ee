"""Approvals: assignees, required number, and the effect of one decision among several."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from models.automation.waits import commands
from models.automation.waits.commands import ResumeNode
from models.automation.waits.rules import (
    DecidedAlreadyError,
    NotResumableError,
    OnlyAskedError,
    OwnRunError,
)
from models.core.access.rules import Role
from models.messages.notifications.queries import notification
from runtime.errors import DeniedError, NotFoundError, ValidationError
from tests.support.engine import Engine, by_node, graph, node
from tests.support.waits import all_of, approval, member, resume, waiting, ways

pytestmark = pytest.mark.takes(seconds=20)

APPROVE: dict[str, Any] = {"decision": "approved"}
REJECT: dict[str, Any] = {"decision": "rejected"}


@pytest.mark.long
async def test_an_assignee_approves(engine: Engine) -> None:
    boss = await member(engine, Role.VIEWER)
    place = await waiting(engine, approval(boss, title="Pay?", message="100 €"))
    answered = await resume(engine, place, "ask", boss, **APPROVE, comment="Fine.")
    assert by_node(answered)["ask"].metadata["wait"]["resolution"] == "approved"
    run = await engine.ended(*place)
    assert (run.status, ways(run)) == ("succeeded", {"ask", "yes"})
    (decision,) = by_node(run)["ask"].output["decisions"]
    assert by_node(run)["ask"].output == {
        "decision": "approved",
        "comment": "Fine.",
        "data": {},
        "decisions": [
            {**decision, "userId": str(boss.user_id), "decision": "approved", "comment": "Fine."}
        ],
    }


async def test_every_assignee_is_notified_once(engine: Engine) -> None:
    first, second = await member(engine), await member(engine, Role.ADMIN)
    place = await waiting(engine, approval(first, role="admin", title="Pay?", message="100 €"))
    async with engine.database.transaction() as work:
        rows = await work.rows(select(notification).where(notification.c.run_id == place[1]))
    told = {row.user_id: (row.kind, row.title, row.body, row.data["nodeId"]) for row in rows}
    assert len(rows) == 2
    assert told == dict.fromkeys(
        [first.user_id, second.user_id], ("approval_request", "Pay?", "100 €", "ask")
    )
    await engine.cancel(*place)


async def test_an_approval_takes_as_many_as_required(engine: Engine) -> None:
    people = [await member(engine) for _ in range(3)]
    place = await waiting(engine, approval(*people, required=2))
    run = await resume(engine, place, "ask", people[0], **APPROVE)
    assert (run.status, by_node(run)["ask"].status) == ("waiting", "waiting")
    assert len(by_node(run)["ask"].metadata["wait"]["decisions"]) == 1
    with pytest.raises(DecidedAlreadyError):
        await resume(engine, place, "ask", people[0], **REJECT)
    await resume(engine, place, "ask", people[2], **APPROVE)
    run = await engine.ended(*place)
    assert ways(run) == {"ask", "yes"}
    decided = [one["userId"] for one in by_node(run)["ask"].output["decisions"]]
    assert decided == [str(people[0].user_id), str(people[2].user_id)]


async def test_one_rejection_rejects(engine: Engine) -> None:
    people = [await member(engine) for _ in range(3)]
    place = await waiting(engine, approval(*people, required=3))
    await resume(engine, place, "ask", people[0], **APPROVE)
    await resume(engine, place, "ask", people[1], **REJECT, comment="No.")
    run = await engine.ended(*place)
    assert ways(run) == {"ask", "no"}
    output = by_node(run)["ask"].output
    assert (output["decision"], output["comment"]) == ("rejected", "No.")


async def test_members_with_the_role_decide(engine: Engine) -> None:
    commenter, viewer = await member(engine, Role.COMMENTER), await member(engine, Role.VIEWER)
    place = await waiting(engine, approval(role="commenter"))
    with pytest.raises(DeniedError):
        await resume(engine, place, "ask", viewer, **APPROVE)
    await resume(engine, place, "ask", commenter, **APPROVE)
    assert ways(await engine.ended(*place)) == {"ask", "yes"}


@pytest.mark.long
async def test_editors_decide_only_if_the_node_lets_them(engine: Engine) -> None:
    admin, owner = await member(engine, Role.ADMIN), await member(engine, Role.OWNER)
    place = await waiting(engine, approval(role="admin"))
    run = await resume(engine, place, "ask", owner, **APPROVE)
    assert by_node(run)["ask"].metadata["wait"]["allowEditors"] is True
    assert ways(await engine.ended(*place)) == {"ask", "yes"}
    place = await waiting(engine, approval(role="admin", allowEditors=False))
    for other in (owner, await member(engine), await member(engine, Role.VIEWER)):
        with pytest.raises(DeniedError):
            await resume(engine, place, "ask", other, **APPROVE)
    run = await resume(engine, place, "ask", admin, **REJECT)
    assert by_node(run)["ask"].metadata["wait"]["allowEditors"] is False
    assert ways(await engine.ended(*place)) == {"ask", "no"}


@pytest.mark.parametrize(
    "allowed", [False, {"type": "literal", "value": False}, {"type": "trigger", "value": "let"}]
)
async def test_no_editor_decides_before_the_node_asks(engine: Engine, allowed: Any) -> None:
    admin = await member(engine, Role.ADMIN)
    automation = await engine.publish(approval(role="admin", allowEditors=allowed))
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, automation.id, {"let": False})).id
        decision = ResumeNode.model_validate(APPROVE)
        for actor in (engine.actor, admin):
            with pytest.raises(OnlyAskedError):
                await commands.resume(work, actor, automation.id, run_id, "ask", decision)
    place = (automation.id, run_id)
    await engine.until(*place, lambda run: run.status == "waiting")
    with pytest.raises(OnlyAskedError):
        await resume(engine, place, "ask", await member(engine), **APPROVE)
    await resume(engine, place, "ask", admin, **APPROVE)
    assert ways(await engine.ended(*place)) == {"ask", "yes"}


@pytest.mark.long
async def test_the_member_who_started_a_run_does_not_decide_it(engine: Engine) -> None:
    place = await waiting(engine, approval(engine.actor, await member(engine)))
    with pytest.raises(OwnRunError, match="allowSelf"):
        await resume(engine, place, "ask", **APPROVE)
    await engine.cancel(*place)
    place = await waiting(engine, approval(engine.actor, allowSelf=True))
    await resume(engine, place, "ask", **APPROVE)
    assert ways(await engine.ended(*place)) == {"ask", "yes"}


@pytest.mark.long
async def test_fifty_decisions_at_once_have_one_outcome(engine: Engine) -> None:
    people = [await member(engine) for _ in range(50)]
    place = await waiting(engine, approval(*people))
    said = [
        resume(engine, place, "ask", one, **(REJECT if number % 2 else APPROVE))
        for number, one in enumerate(people)
    ]
    answers = await all_of(*said)
    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert {type(one) for one in answers if isinstance(one, BaseException)} == {NotResumableError}
    run = await engine.ended(*place)
    output = by_node(run)["ask"].output
    assert output["decision"] == by_node(won[0])["ask"].metadata["wait"]["resolution"]
    assert len(output["decisions"]) == 1
    assert ways(run) == {"ask", "yes" if output["decision"] == "approved" else "no"}


@pytest.mark.long
async def test_the_same_said_again_changes_nothing(engine: Engine) -> None:
    boss = await member(engine)
    place = await waiting(engine, approval(boss))
    answers = await all_of(*(resume(engine, place, "ask", boss, **APPROVE) for _ in range(10)))
    assert {by_node(one)["ask"].metadata["wait"]["resolution"] for one in answers} == {"approved"}
    run = await engine.ended(*place)
    assert len(by_node(run)["ask"].output["decisions"]) == 1
    assert await resume(engine, place, "ask", boss, **APPROVE) == run


FORM: list[dict[str, Any]] = [
    {"key": "amount", "label": "Amount", "kind": "number", "required": True},
    {"key": "reason", "label": "Reason"},
    {"key": "paid", "label": "Paid", "kind": "checkbox"},
    {"key": "how", "label": "How", "kind": "select", "options": ["cash", "card"]},
    {"key": "on", "label": "On", "kind": "date"},
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({}, ["data.amount"]),
        ({"amount": ""}, ["data.amount"]),
        ({"amount": "1"}, ["data.amount"]),
        ({"amount": True}, ["data.amount"]),
        ({"amount": 1, "reason": 1}, ["data.reason"]),
        ({"amount": 1, "paid": "yes"}, ["data.paid"]),
        ({"amount": 1, "how": "barter"}, ["data.how"]),
        ({"amount": 1, "how": ["cash"]}, ["data.how"]),
        ({"amount": 1, "on": "31.1.2026"}, ["data.on"]),
        ({"amount": 1, "on": "2026-02-30"}, ["data.on"]),
        ({"amount": 1, "else": 1}, ["data.else"]),
        ({"else": 1}, ["data.else", "data.amount"]),
    ],
)
async def test_answers_are_held_against_the_form(
    engine: Engine, data: dict[str, Any], wrong: list[str]
) -> None:
    place = await waiting(engine, approval(await member(engine), form=FORM, allowSelf=True))
    with pytest.raises(ValidationError) as caught:
        await resume(engine, place, "ask", **APPROVE, data=data)
    assert [detail.path for detail in caught.value.details] == wrong
    await resume(engine, place, "ask", **REJECT, data={"reason": "Incomplete."})
    run = await engine.ended(*place)
    assert by_node(run)["ask"].output["data"] == {"reason": "Incomplete."}


@pytest.mark.long
async def test_answers_of_several_people_are_put_together(engine: Engine) -> None:
    people = [await member(engine) for _ in range(2)]
    place = await waiting(engine, approval(*people, required=2, form=FORM))
    await resume(engine, place, "ask", people[0], **APPROVE, data={"amount": 1, "how": "cash"})
    answer = {"amount": 2, "on": "2026-01-31"}
    await resume(engine, place, "ask", people[1], **APPROVE, data=answer)
    run = await engine.ended(*place)
    expected = {"amount": 2, "how": "cash", "on": "2026-01-31"}
    assert by_node(run)["ask"].output["data"] == expected


async def test_to_an_approval_without_a_form_any_data_may_be_given(engine: Engine) -> None:
    boss = await member(engine)
    place = await waiting(engine, approval(boss))
    await resume(engine, place, "ask", boss, **APPROVE, data={"budget": [5]})
    run = await engine.ended(*place)
    assert by_node(run)["ask"].output["data"] == {"budget": [5]}


async def test_a_decision_may_come_before_the_question(engine: Engine) -> None:
    boss = await member(engine)
    content = approval(boss, required=1)
    first = node("first", "wait_event")
    content = {
        "nodes": [first, *content["nodes"]],
        "edges": [{"from": "first", "to": "ask"}, *content["edges"]],
    }
    place = await waiting(engine, content)
    with pytest.raises(OwnRunError):
        await resume(engine, place, "ask", **REJECT)
    early = await resume(engine, place, "ask", boss, **APPROVE)
    assert "ask" not in by_node(early)
    await resume(engine, place, "first", data={})
    run = await engine.ended(*place)
    assert (run.status, ways(run)) == ("succeeded", {"first", "ask", "yes"})
    assert len(by_node(run)["ask"].output["decisions"]) == 1


@pytest.mark.long
async def test_a_node_that_does_not_wait_is_not_decided(engine: Engine) -> None:
    boss = await member(engine)
    place = await waiting(engine, approval(boss))
    for node_id, scope_key, error in [
        ("none", "", NotFoundError),
        ("ask", "loop:1", NotFoundError),
        ("yes", "", NotResumableError),
    ]:
        with pytest.raises(error):
            await resume(engine, place, node_id, scopeKey=scope_key, **APPROVE)
    with pytest.raises(ValidationError) as caught:
        await resume(engine, place, "ask", boss, comment="Hm.")
    assert [detail.path for detail in caught.value.details] == ["decision"]
    await engine.cancel(*place)
    with pytest.raises(NotResumableError):
        await resume(engine, place, "ask", boss, **APPROVE)


@pytest.mark.long
async def test_an_approval_without_a_decision_ends_after_thirty_days(
    skipping_engine: Engine,
) -> None:
    engine = skipping_engine
    began = asyncio.get_running_loop().time()
    limit = timedelta(days=30).total_seconds()
    run = await engine.run(approval(engine.actor, timeoutSeconds=limit))
    assert (run.status, ways(run)) == ("succeeded", {"ask", "late"})
    assert by_node(run)["ask"].output["decision"] == "timeout"
    assert asyncio.get_running_loop().time() - began < 60


@pytest.mark.long
async def test_those_who_have_not_decided_are_reminded(skipping_engine: Engine) -> None:
    engine = skipping_engine
    first, second = await member(engine), await member(engine)
    content = approval(first, second, required=2, timeoutSeconds=3_600, reminderSeconds=600)
    automation = await engine.publish(content)
    async with engine.database.transaction() as work:
        run_id = (await engine.accept(work, automation.id)).id
        decision = ResumeNode.model_validate(APPROVE)
        await commands.resume(work, first, automation.id, run_id, "ask", decision)
    run = await engine.ended(automation.id, run_id)
    assert ways(run) == {"ask", "late"}
    assert [one["userId"] for one in by_node(run)["ask"].output["decisions"]] == [
        str(first.user_id)
    ]
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(notification.c.user_id).where(notification.c.run_id == run_id)
        )
    # Asked once, and reminded after 10, 20, 30, 40 and 50 minutes.
    assert [row.user_id for row in rows] == [second.user_id] * 6


@pytest.mark.parametrize(
    ("mock", "way"),
    [
        ({"decision": "approved"}, "yes"),
        ({"decision": "rejected"}, "no"),
        ({"timeout": True}, "late"),
        ({}, "yes"),
    ],
)
async def test_a_mock_decides_in_a_test(engine: Engine, mock: dict[str, Any], way: str) -> None:
    automation_id = await engine.draft(approval(engine.actor))
    run = await engine.test(automation_id, mocks={"ask": mock})
    assert (run.status, ways(run)) == ("succeeded", {"ask", way})
    assert by_node(run)["ask"].output == mock


async def test_cancelling_a_run_ends_its_approval(engine: Engine) -> None:
    boss = await member(engine)
    place = await waiting(engine, approval(boss))
    cancelled = await engine.cancel(*place)
    assert (cancelled.status, by_node(cancelled)["ask"].status) == ("cancelled", "cancelled")
    with pytest.raises(NotResumableError):
        await resume(engine, place, "ask", boss, **APPROVE)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "needs assignees or role"),
        ({"role": "admin", "form": [{"key": "a", "label": "A", "kind": "select"}]}, "options"),
        ({"role": "admin", "form": [{"key": "a", "label": "A"}] * 2}, "the same key"),
        ({"assignees": ["0190f3b2-0000-7000-8000-000000000000"], "required": 2}, "required"),
    ],
)
async def test_an_approval_that_cannot_be_decided_is_not_published(
    engine: Engine, config: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        await engine.publish(graph(node("ask", "approval", **config)))
    assert told in str(caught.value.message)
