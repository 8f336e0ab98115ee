"""Failed runs become incidents: each run once, told once, closed by itself."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update

from models.automation.automations.tables import automation_version
from models.automation.incidents import commands, queries
from models.automation.incidents.closing import close_recovered
from models.automation.incidents.commands import NothingToRetryError
from models.automation.incidents.grouping import group_failures
from models.automation.incidents.queries import IncidentDetail, RetryIncident, UpdateIncident
from models.automation.incidents.rules import ENOUGH_SUCCESSES, QUIET
from models.automation.incidents.tables import (
    incident,
    incident_run,
    purge_incidents,
    ungrouped_failure,
)
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.notifications.queries import notification
from models.messages.workspace_events.log import workspace_event
from runtime.clock import utc_now
from runtime.errors import NotFoundError
from runtime.ids import new_id
from tests.support.ageing import make_automation, purged
from tests.support.incidents import failed_run, grouped, incident_of, succeeded_run
from tests.support.spaces import Space


async def detail(space: Space, incident_id: Id) -> IncidentDetail:
    async with space.database.transaction() as work:
        return await queries.get_incident(work, space.actor, incident_id)


async def notices(space: Space, user_id: Id | None = None) -> list[Any]:
    """The notifications of the workspace, in the order in which they were made."""
    own = select(notification).where(
        notification.c.workspace_id == space.id,
        notification.c.user_id == (user_id or space.user_id),
    )
    async with space.database.transaction() as work:
        return list(await work.rows(own.order_by(notification.c.created_at, notification.c.id)))


async def logged(space: Space) -> Counter[str]:
    of_it = select(workspace_event.c.type).where(
        workspace_event.c.workspace_id == space.id, workspace_event.c.type.like("incident.%")
    )
    async with space.database.transaction() as work:
        return Counter(row.type for row in await work.rows(of_it))


async def checked(space: Space) -> None:
    """Check all open incidents, as if a minute had passed."""
    long_ago = utc_now() - timedelta(hours=1)
    async with space.database.transaction() as work:
        await work.execute(update(incident).values(checked_at=long_ago))
    while True:
        async with space.database.transaction() as work:
            if not await close_recovered(work):
                return


async def of_run(space: Space, run_id: Id) -> Any:
    await grouped(space.database)
    return await incident_of(space.database, run_id)


async def test_runs_that_failed_alike_are_one_incident_and_others_are_not(space: Space) -> None:
    version = await make_automation(space)
    alike = [await failed_run(space, version, f"order {n} is 'x{n}'") for n in range(3)]
    other = [
        await failed_run(space, version, "the payment is refused"),
        await failed_run(space, version, "order 1 is 'x1'", node="elsewhere"),
        await failed_run(space, await make_automation(space), "order 1 is 'x1'"),
    ]
    first = await of_run(space, alike[0])
    assert {(await of_run(space, run_id)).id for run_id in alike} == {first.id}
    assert len({(await of_run(space, run_id)).id for run_id in other} | {first.id}) == 4
    shown = await detail(space, first.id)
    assert (shown.runs, shown.unresolved, shown.node_id) == (3, 3, "call")
    assert (shown.message, shown.error_code) == ("order <number> is <value>", "upstream_error")
    assert [(one.version, one.runs) for one in shown.versions] == [(1, 3)]


async def test_tests_and_runs_that_did_not_fail_are_not_grouped(space: Space) -> None:
    version = await make_automation(space)
    run_ids = [
        await failed_run(space, version, source="test"),
        await failed_run(space, version, options={"test": True}),
        await succeeded_run(space, version),
    ]
    assert [await of_run(space, run_id) for run_id in run_ids] == [None] * 3


async def test_each_run_is_counted_once_after_rollbacks_and_with_concurrent_groupers(
    space: Space,
) -> None:
    version = await make_automation(space)
    run_ids = [await failed_run(space, version) for _ in range(30)]
    with pytest.raises(RuntimeError, match="grouped"):
        await _undone(space)
    await asyncio.gather(*[grouped(space.database) for _ in range(4)])
    assert (await of_run(space, run_ids[0])).runs == 30
    async with space.database.transaction() as work:
        kept = select(incident_run.c.run_id).where(incident_run.c.workspace_id == space.id)
        assert sorted(row.run_id for row in await work.rows(kept)) == sorted(run_ids)
        left = select(ungrouped_failure).where(ungrouped_failure.c.workspace_id == space.id)
        assert not await work.rows(left)


async def _undone(space: Space) -> None:
    async with space.database.transaction() as work:
        raise RuntimeError("grouped" if await group_failures(work) >= 30 else "left")


@pytest.mark.long
async def test_its_author_is_notified_when_it_opens_grows_tenfold_and_closes(space: Space) -> None:
    version = await make_automation(space)
    for size in (1, 1, 8, 1, 88, 1, 30):
        run_ids = [await failed_run(space, version, f"Order {n} fell.") for n in range(size)]
        await grouped(space.database)
    row = await of_run(space, run_ids[0])
    async with space.database.transaction() as work:
        await commands.close_incident(work, space.actor, row.id)
    told = await notices(space)
    assert [one.title for one in told] == [
        "“Old” failed",
        "“Old” failed 10 times",
        "“Old” failed 100 times",
    ]
    assert {one.kind for one in told} == {"automation_failed"}
    assert {one.data["incidentId"] for one in told} == {str(row.id)}
    assert await logged(space) == {
        "incident.opened": 1,
        "incident.grew": 2,
        "incident.closed": 1,
    }


async def test_the_assignee_is_notified_of_the_end_unless_it_is_muted(space: Space) -> None:
    version = await make_automation(space)
    user_id, _ = await space.member(Role.EDITOR)
    row = await of_run(space, await failed_run(space, version))
    silent = await of_run(space, await failed_run(space, version, "something else"))
    async with space.database.transaction() as work:
        for one, muted in ((row, False), (silent, True)):
            body = UpdateIncident.model_validate({"assigneeUserId": user_id, "muted": muted})
            await commands.update_incident(work, space.actor, one.id, body)
            await commands.close_incident(work, space.actor, one.id)
    assert [one.title for one in await notices(space, user_id)] == ["“Old” no longer fails"]
    assert (await logged(space))["incident.closed"] == 2


async def test_only_a_member_can_be_assigned(space: Space) -> None:
    row = await of_run(space, await failed_run(space, await make_automation(space)))
    body = UpdateIncident.model_validate({"assigneeUserId": new_id()})
    with pytest.raises(NotFoundError):
        async with space.database.transaction() as work:
            await commands.update_incident(work, space.actor, row.id, body)


async def test_an_absent_key_changes_nothing_and_null_unassigns(space: Space) -> None:
    row = await of_run(space, await failed_run(space, await make_automation(space)))
    for body in (
        {"assigneeUserId": space.user_id, "note": "Known.", "muted": True},
        {"muted": False},
        {"assigneeUserId": None},
    ):
        async with space.database.transaction() as work:
            change = UpdateIncident.model_validate(body)
            await commands.update_incident(work, space.actor, row.id, change)
    shown = await detail(space, row.id)
    assert (shown.assignee_user_id, shown.note, shown.muted) == (None, "Known.", False)


async def test_it_closes_itself_when_all_its_runs_were_retried_with_success(space: Space) -> None:
    version = await make_automation(space)
    first, second = [await failed_run(space, version) for _ in range(2)]
    row = await of_run(space, first)
    retry: dict[str, Any] = {"source": "replay", "node": "other"}
    await succeeded_run(space, version, replay_of_run_id=first, **retry)
    again = await failed_run(space, version, source="replay", replay_of_run_id=second)
    await grouped(space.database)
    await checked(space)
    assert (await detail(space, row.id)).closed_at is None
    assert (await detail(space, row.id)).unresolved == 1
    await succeeded_run(space, version, replay_of_run_id=again, **retry)
    await checked(space)
    shown = await detail(space, row.id)
    assert (shown.state, shown.close_reason, shown.unresolved) == ("closed", "retried", 0)
    assert [one.title for one in await notices(space)][-1] == "“Old” no longer fails"


@pytest.mark.parametrize(
    ("successes", "age", "node", "closes"),
    [
        (ENOUGH_SUCCESSES, timedelta(hours=1), "call", True),
        (ENOUGH_SUCCESSES - 1, timedelta(hours=1), "call", False),
        (1, QUIET, "call", True),
        (ENOUGH_SUCCESSES, QUIET, "other", False),
        (0, QUIET, "call", False),
    ],
)
async def test_it_closes_itself_when_runs_succeed_at_the_node(
    space: Space, successes: int, age: timedelta, node: str, closes: bool
) -> None:
    version = await make_automation(space)
    run_id = await failed_run(space, version, at=utc_now() - age - timedelta(minutes=1))
    row = await of_run(space, run_id)
    for _ in range(successes):
        await succeeded_run(space, version, node=node)
    await checked(space)
    assert (await detail(space, row.id)).close_reason == ("recovered" if closes else None)


async def test_a_failure_opens_a_closed_one_again_and_is_notified_again(space: Space) -> None:
    version = await make_automation(space)
    row = await of_run(space, await failed_run(space, version))
    async with space.database.transaction() as work:
        await commands.close_incident(work, space.actor, row.id)
    await failed_run(space, version, at=utc_now() - timedelta(hours=1))
    await grouped(space.database)
    assert (await detail(space, row.id)).state == "closed"
    await of_run(space, await failed_run(space, version))
    shown = await detail(space, row.id)
    assert (shown.state, shown.openings) == ("open", 2)
    assert (shown.runs, shown.runs_in_all, shown.close_reason) == (1, 3, None)
    assert len(await notices(space)) == 2


async def test_a_reopened_incident_counts_only_later_runs(space: Space) -> None:
    version = await make_automation(space)
    row = await of_run(space, await failed_run(space, version, at=utc_now() - 2 * QUIET))
    await succeeded_run(space, version)
    await checked(space)
    async with space.database.transaction() as work:
        await commands.reopen_incident(work, space.actor, row.id)
    await checked(space)
    assert (await detail(space, row.id)).state == "open"
    await succeeded_run(space, version)
    await checked(space)
    assert (await detail(space, row.id)).state == "closed"


async def test_the_version_published_last_before_the_first_failure_is_suspected(
    space: Space,
) -> None:
    version = await make_automation(space)
    moment = utc_now() - timedelta(hours=1)
    assert (
        await detail(space, await _incident_at(space, version, moment))
    ).suspected_version is None
    async with space.database.transaction() as work:
        of_it = automation_version.c.id == version.id
        published = {"published_at": moment, "status": "published"}
        await work.execute(update(automation_version).where(of_it).values(published))
    late = await _incident_at(space, version, moment + timedelta(minutes=1), "late")
    suspected = (await detail(space, late)).suspected_version
    assert suspected is not None
    assert (suspected.automation_version_id, suspected.version) == (version.id, 1)
    early = await _incident_at(space, version, moment - timedelta(minutes=1), "early")
    assert (await detail(space, early)).suspected_version is None


async def _incident_at(
    space: Space, version: Any, moment: datetime, message: str = "It fell."
) -> UUID:
    row = await of_run(space, await failed_run(space, version, message, at=moment))
    return Id(str(row.id))


async def test_a_retry_takes_what_is_left_and_refuses_when_nothing_is(space: Space) -> None:
    version = await make_automation(space)
    first, second = [await failed_run(space, version) for _ in range(2)]
    row = await of_run(space, first)
    body = RetryIncident.model_validate({"version": "original"})
    await succeeded_run(space, version, source="replay", replay_of_run_id=first)
    async with space.database.transaction() as work:
        preview = await commands.preview_retry(work, space.actor, row.id, body)
    assert (preview.total, preview.fitting) == (1, 1)
    await succeeded_run(space, version, source="replay", replay_of_run_id=second)
    with pytest.raises(NothingToRetryError):
        async with space.database.transaction() as work:
            await commands.preview_retry(work, space.actor, row.id, body)


async def test_old_runs_and_incidents_closed_long_ago_go(space: Space) -> None:
    version = await make_automation(space)
    run_id = await failed_run(space, version, at=utc_now() - timedelta(days=9))
    row = await of_run(space, run_id)
    await purged(space.database, purge_incidents, utc_now() - timedelta(days=10))
    assert await incident_of(space.database, run_id) is not None
    await purged(space.database, purge_incidents, utc_now() - timedelta(days=8))
    assert await incident_of(space.database, run_id) is None
    assert (await detail(space, row.id)).runs == 1
    async with space.database.transaction() as work:
        await commands.close_incident(work, space.actor, row.id)
    await purged(space.database, purge_incidents, utc_now() + timedelta(seconds=1))
    async with space.database.transaction() as work:
        own = select(incident).where(incident.c.workspace_id == space.id)
        assert not await work.rows(own)
