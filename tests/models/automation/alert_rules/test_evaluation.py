"""Each change of a rule is notified once, with any number of evaluators, and with the rights of its
last editor.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text, update

from models.automation.alert_rules import commands, queries
from models.automation.alert_rules.queries import alert_firing, alert_rule, purge_firings
from models.automation.alert_rules.shapes import UNSEEN_RUN, QueueAgeCondition, UpdateAlertRule
from models.automation.automations.queries import AUTOMATION
from models.content.items.joins import item
from models.core.access.rules import Role
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages.deliveries.commands import delivery
from models.messages.notifications.queries import notification
from models.people.workspaces import workspace_member
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection, note_failure, note_success
from runtime.clock import utc_now
from runtime.errors import NotFoundError
from tests.support.ageing import make_automation, purged
from tests.support.alerts import (
    actor_of,
    alert_events,
    alerts,
    evaluated,
    firings,
    make_rule,
    state_of,
)
from tests.support.incidents import failed_run
from tests.support.spaces import Space

FAILURES: dict[str, Any] = {"kind": "failures", "runs": 1, "minutes": 10}


async def changed(space: Space, rule_id: Id, **values: Any) -> None:
    body = UpdateAlertRule.model_validate(values)
    async with space.database.transaction() as work:
        await commands.update_rule(work, space.actor, rule_id, body)


async def aged(space: Space, **values: Any) -> None:
    async with space.database.transaction() as work:
        of_it = alert_rule.c.workspace_id == space.id
        await work.execute(update(alert_rule).where(of_it).values(values))


@pytest.mark.long
async def test_sweeps_at_once_tell_each_change_once(space: Space) -> None:
    version = await make_automation(space)
    for number in range(30):
        await make_rule(space, FAILURES, label=f"Rule {number}")
    await failed_run(space, version)
    await asyncio.gather(*[evaluated(space) for _ in range(4)])
    assert len(await alerts(space)) == len(await firings(space)) == 30
    assert len(await alert_events(space)) == 30
    await asyncio.gather(*[evaluated(space) for _ in range(4)])
    assert len(await alerts(space)) == 30


async def test_it_is_notified_again_only_as_often_as_requested(space: Space) -> None:
    await failed_run(space, await make_automation(space))
    once = await make_rule(space, FAILURES, label="Once")
    often = await make_rule(space, FAILURES, label="Often", repeatMinutes=5)
    await evaluated(space)
    await evaluated(space)
    assert sorted(await alerts(space)) == ["Often", "Once"]
    for _ in range(2):
        await aged(space, told_at=utc_now() - timedelta(minutes=5))
        await evaluated(space)
    assert sorted(await alerts(space)) == [
        "Often",
        "Once",
        "Still firing: Often",
        "Still firing: Often",
    ]
    assert len(await alert_events(space)) == len(await firings(space)) == 2
    await changed(space, often.id, repeatMinutes=None)
    await aged(space, told_at=utc_now() - timedelta(minutes=5))
    await evaluated(space)
    assert len(await alerts(space)) == 4
    assert (await state_of(space, once.id)).state == "firing"


async def test_a_broken_and_a_slow_rule_hold_up_no_other(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = await make_rule(space, {"kind": "queue_age", "minutes": 1}, label="Slow")
    broken = await make_rule(space, FAILURES, label="Broken")
    sound = await make_rule(space, FAILURES, label="Sound")
    await failed_run(space, await make_automation(space))

    async def sleep(work: Any, *_: Any) -> Any:
        await work.execute(text("SELECT pg_sleep(60)"))

    monkeypatch.setattr(queries, "LONGEST_CHECK", "100ms")
    by_kind = {**queries._CHECKS, QueueAgeCondition: sleep}
    monkeypatch.setattr(queries, "_CHECKS", by_kind)
    async with space.database.transaction() as work:
        this = alert_rule.c.id == broken.id
        await work.execute(update(alert_rule).where(this).values(condition={"kind": "weather"}))
    await evaluated(space)
    assert (await state_of(space, sound.id)).state == "firing"
    assert "too long" in str((await state_of(space, slow.id)).problem)
    async with space.database.transaction() as work:
        columns = select(alert_rule.c.due_at, alert_rule.c.checked_at)
        late = await work.first(columns.where(alert_rule.c.id == slow.id))
    assert late is not None
    assert late.due_at - late.checked_at > timedelta(minutes=14), "it leaves time to others"
    assert (await state_of(space, broken.id)).problem == commands.BROKEN
    assert await alerts(space) == ["Sound"]
    monkeypatch.undo()
    await evaluated(space)
    assert (await state_of(space, slow.id)).problem is None


async def test_it_counts_what_its_saver_sees_and_is_disabled_when_that_is_gone(
    space: Space,
) -> None:
    version = await make_automation(space)
    user_id, _ = await space.member(Role.EDITOR)
    editor = await actor_of(space, user_id)
    query = {"automationId": version.automation_id}
    everywhere = await make_rule(space, FAILURES, editor, label="All")
    named = await make_rule(space, {**FAILURES, "query": query}, editor, label="One")
    mine = await make_rule(space, FAILURES, label="Mine")
    async with space.database.transaction() as work:
        its_item = select(AUTOMATION.item_id).where(AUTOMATION.id == version.automation_id)
        closed = update(item).where(item.c.id == its_item.scalar_subquery())
        await work.execute(closed.values(access_mode="restricted"))
    await failed_run(space, version)
    await evaluated(space)
    assert (await state_of(space, everywhere.id)).state == "ok"
    assert (await state_of(space, mine.id)).state == "firing"
    shown = await state_of(space, named.id)
    assert (shown.enabled, shown.disabled_reason) == (False, "rights_lost")
    with pytest.raises(NotFoundError):
        async with space.database.transaction() as work:
            await queries.get_rule(work, editor, named.id)
    await changed(space, named.id, enabled=True)
    await evaluated(space)
    assert (await state_of(space, named.id)).state == "firing", "it is the owner's now"
    assert await alerts(space, user_id) == [], "of what they do not see"


async def test_a_member_without_access_to_a_run_is_not_notified_of_it(space: Space) -> None:
    version = await make_automation(space)
    viewer, _ = await space.member(Role.VIEWER)
    recipients = [space.user_id, viewer]
    rule = await make_rule(space, FAILURES, label="Any", recipientUserIds=recipients)
    async with space.database.transaction() as work:
        its_item = select(AUTOMATION.item_id).where(AUTOMATION.id == version.automation_id)
        closed = update(item).where(item.c.id == its_item.scalar_subquery())
        await work.execute(closed.values(access_mode="restricted"))
    run_id = await failed_run(space, version)
    await evaluated(space)
    shown, page = {}, PageRequest(9, None, space.keys, b"")
    for actor in (space.actor, await actor_of(space, viewer)):
        async with space.database.transaction() as work:
            first = await queries.list_firings(work, actor, rule.id, page)
            listed = await queries.list_rules(work, actor, page)
        one, whole = first.firings[0], listed.alert_rules[0]
        shown[actor.user_id] = (one.message, one.value, one.run_id, whole.message)
        assert (whole.state, one.fired_at) == ("firing", whole.firing_since)
    message = "1 run or more failed within 10 minutes."
    assert shown[space.user_id] == (message, 1, run_id, message)
    assert shown[viewer] == (UNSEEN_RUN, None, None, UNSEEN_RUN)
    told = select(notification).where(notification.c.workspace_id == space.id)
    async with space.database.reading() as work:
        rows = {row.user_id: row for row in await work.rows(told)}
    assert (rows[space.user_id].body, rows[space.user_id].run_id) == (message, run_id)
    theirs = rows[viewer]
    assert (theirs.body, theirs.run_id, theirs.item_id) == (UNSEEN_RUN, None, None)
    assert set(theirs.data) == {"alertRuleId", "change"}
    async with space.database.reading() as work:
        item_id = await work.scalar(its_item)
    assert [event.item_id for event in await alert_events(space)] == [item_id]


async def test_a_rule_of_a_member_who_left_is_disabled_and_the_others_are_notified(
    space: Space,
) -> None:
    await failed_run(space, await make_automation(space))
    user_id, _ = await space.member(Role.EDITOR)
    recipients = [user_id, space.user_id]
    editor = await actor_of(space, user_id)
    rule = await make_rule(space, FAILURES, editor, recipientUserIds=recipients)
    await evaluated(space)
    await space.remove(user_id)
    await evaluated(space)
    shown = await state_of(space, rule.id)
    assert (shown.enabled, shown.disabled_reason, shown.state) == (False, "saver_left", "ok")
    assert await alerts(space) == ["Watch it", "Disabled: Watch it"]
    assert await alerts(space, user_id) == ["Watch it"]
    assert [one.resolution for one in await firings(space)] == ["disabled"]


async def test_a_rule_whose_editor_became_a_guest_does_not_fire(space: Space) -> None:
    user_id, _ = await space.member(Role.EDITOR)
    rule = await make_rule(space, FAILURES, await actor_of(space, user_id))
    async with space.database.transaction() as work:
        this = (workspace_member.c.workspace_id == space.id, workspace_member.c.user_id == user_id)
        await work.execute(update(workspace_member).where(*this).values(role=Role.GUEST.value))
    await failed_run(space, await make_automation(space))
    await evaluated(space)
    assert await firings(space) == []
    assert (await state_of(space, rule.id)).state == "ok"


async def test_recipients_who_left_are_not_told_and_the_others_are(space: Space) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    await make_rule(space, FAILURES, recipientUserIds=[user_id, space.user_id])
    await failed_run(space, await make_automation(space))
    await space.remove(user_id)
    await evaluated(space)
    assert (await alerts(space), await alerts(space, user_id)) == (["Watch it"], [])


async def test_an_alert_is_mailed_unless_its_recipient_says_otherwise(space: Space) -> None:
    await make_rule(space, FAILURES)
    await failed_run(space, await make_automation(space))
    await evaluated(space)
    async with space.database.transaction() as work:
        own = (delivery.c.workspace_id == space.id, delivery.c.channel == "mail")
        (row,) = await work.rows(select(delivery.c.target_id).where(*own))
    assert row.target_id == space.user_id


@pytest.mark.parametrize(
    ("change", "resolution"),
    [
        ({"enabled": False}, "disabled"),
        ({"condition": {"kind": "failures", "runs": 900, "minutes": 10}}, "changed"),
    ],
)
async def test_a_rule_that_is_changed_fires_no_more(
    space: Space, change: dict[str, Any], resolution: str
) -> None:
    rule = await make_rule(space, FAILURES)
    await failed_run(space, await make_automation(space))
    await evaluated(space)
    await changed(space, rule.id, **change)
    await evaluated(space)
    assert (await state_of(space, rule.id)).state == "ok"
    assert [one.resolution for one in await firings(space)] == [resolution]
    assert [event.type for event in await alert_events(space)] == ["alert.fired", "alert.resolved"]


async def test_the_log_tells_of_a_connection_of_ones_own_to_its_owner_alone(space: Space) -> None:
    rules = []
    for shared in (True, False):
        body = CreateConnection.model_validate(
            {"provider": "demo", "label": "Prices", "shared": shared}
        )
        async with space.database.transaction() as work:
            made = await create_connection(work, space.actor, space.keys, body)
            await note_failure(work, space.id, made.id, "It answers 503.")
        condition = {"kind": "connection_failing", "connectionId": made.id, "failures": 1}
        rules.append(await make_rule(space, condition, label=f"Shared: {shared}"))
    await evaluated(space)
    audience = {event.data["label"]: event.audience_user_id for event in await alert_events(space)}
    assert audience == {"Shared: True": None, "Shared: False": space.user_id}
    viewer, _ = await space.member(Role.VIEWER)
    async with space.database.transaction() as work:
        assert await queries.get_rule(work, await actor_of(space, viewer), rules[0].id)
        with pytest.raises(NotFoundError):
            await queries.get_rule(work, await actor_of(space, viewer), rules[1].id)


async def test_a_member_without_access_to_a_connection_does_not_read_its_failure(
    space: Space,
) -> None:
    body = CreateConnection.model_validate({"provider": "demo", "label": "Prices"})
    async with space.database.transaction() as work:
        made = await create_connection(work, space.actor, space.keys, body)
        await note_failure(work, space.id, made.id, "The token of bank.example has ended.")
    other, _ = await space.member(Role.EDITOR)
    condition = {"kind": "connection_failing", "connectionId": made.id, "failures": 1}
    await make_rule(space, condition, recipientUserIds=[space.user_id, other])
    await evaluated(space)
    told = select(notification.c.user_id, notification.c.body, notification.c.data)
    async with space.database.reading() as work:
        rows = await work.rows(told.where(notification.c.workspace_id == space.id))
    bodies = {row.user_id: (row.body, row.data) for row in rows}
    assert "bank.example" in bodies[space.user_id][0]
    text, data = bodies[other]
    assert "bank.example" not in text
    assert "connectionId" not in data
    async with space.database.transaction() as work:
        await note_success(work, space.id, made.id)
    await evaluated(space)
    theirs = (notification.c.workspace_id == space.id, notification.c.user_id == other)
    async with space.database.reading() as work:
        notices = await work.rows(told.where(*theirs))
    assert len(notices) == 2
    assert all("connectionId" not in one.data for one in notices)


async def test_firings_go_when_they_are_old_and_rules_stay(space: Space) -> None:
    rule = await make_rule(space, FAILURES)
    await failed_run(space, await make_automation(space))
    await evaluated(space)
    await changed(space, rule.id, enabled=False)
    await changed(space, rule.id, enabled=True)
    await evaluated(space)
    assert len(await firings(space)) == 2
    async with space.database.transaction() as work:
        ended = alert_firing.c.resolved_at.is_not(None)
        old = utc_now() - timedelta(days=100)
        await work.execute(update(alert_firing).where(ended).values(resolved_at=old))
    await purged(space.database, purge_firings, utc_now() - timedelta(days=90))
    assert [one.resolved_at for one in await firings(space)] == [None]
    assert (await state_of(space, rule.id)).state == "firing"
