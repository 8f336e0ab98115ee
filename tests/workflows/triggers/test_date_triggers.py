"""Dates in records that are reached, on the real engine (interface.md#triggers)."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from sqlalchemy import select, text, update

from models.automation.triggers import record_dates
from models.content.items.commands import restore_item, trash_item
from models.core.base import Id
from models.data.fields.tables import database, field
from models.data.records.side_index import LARGE
from models.messages.events.store import automation_subscription
from runtime.clock import truncate, utc_now, wire_timestamp
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=20)


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(
        engine.database, engine.actor, {"label": "Born", "kind": "created_at"}
    )


MANY = text(
    "INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at,"
    " updated_at) SELECT uuidv7(), :workspace, :table, '', '{}', false, now(), now()"
    " FROM generate_series(1, :count)"
)


def soon(seconds: float) -> str:
    return wire_timestamp(truncate(utc_now() + timedelta(seconds=seconds)))


async def create_due(goods: Listening, title: str, seconds: float) -> str:
    """A record whose time is this number of seconds after it was begun; returns the time.

    It may pass before the record is committed: it is answered all the same.
    """
    async with goods.database.transaction() as work:
        due = wire_timestamp(work.now_after(seconds))
        await goods.create_within(work, title, moment=due)
    return due


async def pass_by(goods: Listening, subscriber: Id, days: float) -> None:
    """As if no poller had run for this number of days."""
    async with goods.database.transaction() as work:
        await work.execute(
            update(automation_subscription)
            .where(automation_subscription.c.automation_id == subscriber)
            .values(polled_until=work.now - timedelta(days=days), next_poll_at=work.now)
        )
    await looked(goods, subscriber)


async def looked(goods: Listening, subscriber: Id) -> None:
    """Wait until everything up to now was looked for."""
    now = utc_now()

    async def reached() -> bool:
        held = await goods.subscription(subscriber)
        return bool(held.polled_until >= now)

    async with goods.database.transaction() as work:
        await work.execute(
            update(automation_subscription)
            .where(automation_subscription.c.automation_id == subscriber)
            .values(next_poll_at=work.now)
        )
    await eventually(reached, what="a look")
    await goods.heard()


async def fired(goods: Listening, subscriber: Id) -> list[tuple[str, str]]:
    """Title and moment of every run."""
    told = await goods.payloads(subscriber)
    return sorted((each["record"]["title"], each["dueAt"]) for each in told)


@pytest.mark.long
async def test_a_moment_is_answered_once_when_it_comes(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="moment")
    due = await create_due(goods, "soon", 1.5)
    await goods.create("past", moment=soon(-60))
    await goods.create("never")

    async def answered() -> bool:
        return await goods.count(subscriber) > 0

    await eventually(answered, what="the moment")
    assert utc_now() >= datetime.fromisoformat(due)
    await looked(goods, subscriber)
    assert await fired(goods, subscriber) == [("soon", due)]
    (run,) = await goods.runs(subscriber)
    assert (run.source, sorted(run.trigger_payload)) == ("record", ["dueAt", "record"])


@pytest.mark.long
async def test_a_date_moved_before_it_is_due_moves_the_moment(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="moment", offsetMinutes=-1)
    # Five seconds for all that is done before the first moment.
    due, before = soon(66), soon(65)
    moved = await goods.create("moved", moment=before)
    cleared = await goods.create("cleared", moment=before)
    deleted = await goods.create("deleted", moment=before)
    archived = await goods.create("archived", moment=before)
    await goods.set(moved.id, moment=due)
    await goods.set(cleared.id, moment=None)
    await goods.delete(deleted.id)
    await goods.archive(archived.id)

    async def answered() -> bool:
        return await goods.count(subscriber) > 0

    await eventually(answered, what="the moment")
    await looked(goods, subscriber)
    wanted = datetime.fromisoformat(due) - timedelta(minutes=1)
    assert await fired(goods, subscriber) == [("moved", wire_timestamp(wanted))]


@pytest.mark.long
async def test_days_are_answered_in_their_zone_after_any_downtime(goods: Listening) -> None:
    # One where it is not about to be midnight, at 10:00 and 15:00 UTC.
    zone = ZoneInfo("Asia/Tokyo" if utc_now().hour in (9, 10) else "Pacific/Kiritimati")
    today = datetime.now(zone).date()
    days = [today + timedelta(days=n) for n in range(-5, 3)]
    for day in days:
        await goods.create(day.isoformat(), day=day.isoformat())
    subscriber = await goods.automation("record_date_reached", fieldKey="day", timezone=zone.key)
    assert await fired(goods, subscriber) == []
    await pass_by(goods, subscriber, 3)
    midnights = [datetime(*day.timetuple()[:3], tzinfo=zone).astimezone(UTC) for day in days]
    now = utc_now()
    expected = [
        (day.isoformat(), wire_timestamp(midnight))
        for day, midnight in zip(days, midnights, strict=True)
        if now - timedelta(days=3) < midnight <= now
    ]
    assert len(expected) == 3
    assert await fired(goods, subscriber) == expected
    await pass_by(goods, subscriber, 3)
    assert await fired(goods, subscriber) == expected


@pytest.mark.long
async def test_a_system_moment_is_answered_like_any_other(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="born")
    made = await goods.create("A")

    async def answered() -> bool:
        return await goods.count(subscriber) > 0

    await eventually(answered, what="the creation")
    assert await fired(goods, subscriber) == [("A", wire_timestamp(made.created_at))]


@pytest.mark.long
async def test_a_date_moved_after_it_was_reached_starts_its_run(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="moment")
    async with goods.database.transaction() as work:
        due = wire_timestamp(work.now_after(0.8))
        one = await goods.create_within(work, "A", moment=due)
    await goods.heard()
    async with goods.database.transaction() as work:
        # No poller runs meanwhile.
        held = automation_subscription.c.automation_id == subscriber
        await work.execute(
            update(automation_subscription)
            .where(held)
            .values(next_poll_at=work.now + timedelta(hours=1))
        )

    async def passed() -> bool:
        return utc_now() > datetime.fromisoformat(due)

    await eventually(passed)
    await goods.set(one.id, moment=soon(3_600))
    (told,) = await goods.payloads(subscriber)
    assert (told["dueAt"], told["record"]["data"]["moment"]) == (due, due)
    await looked(goods, subscriber)
    assert await goods.count(subscriber) == 1


@pytest.mark.long
async def test_a_date_that_comes_true_while_it_is_written_is_answered(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="moment")
    async with goods.database.transaction() as work:
        due = soon(0.3)
        await goods.create_within(work, "A", moment=due)

        async def passed() -> bool:
            return utc_now() > datetime.fromisoformat(due)

        await eventually(passed)
        # Without the record, which is not committed yet.
        await looked(goods, subscriber)
    assert await fired(goods, subscriber) == [("A", due)]


@pytest.mark.long
async def test_dates_of_a_database_in_the_trash_start_no_runs(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="day")
    today = utc_now().date().isoformat()
    await goods.create("A", day=today)
    async with goods.database.transaction() as work:
        item_id = await work.scalar(select(database.c.item_id).where(database.c.id == goods.table))
        await trash_item(work, goods.actor, item_id)
    await pass_by(goods, subscriber, 2)
    async with goods.database.transaction() as work:
        await restore_item(work, goods.actor, item_id)
    await looked(goods, subscriber)
    assert await goods.count(subscriber) == 0
    await pass_by(goods, subscriber, 2)
    assert [title for title, _ in await fired(goods, subscriber)] == ["A"]


@pytest.mark.long
async def test_republished_with_the_same_database_it_continues_where_it_was(
    goods: Listening,
) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="day")
    before = await goods.subscription(subscriber)
    config: dict[str, Any] = goods.config("record_date_reached", fieldKey="moment")
    await goods.change(subscriber, triggerConfig=config)
    await goods.publish(subscriber)
    held = await goods.subscription(subscriber)
    assert held.polled_until >= before.polled_until
    assert held.after_event == before.after_event
    due = await create_due(goods, "A", 1)

    async def answered() -> bool:
        return await goods.count(subscriber) > 0

    await eventually(answered, what="the moment")
    assert await fired(goods, subscriber) == [("A", due)]


@pytest.mark.long
async def test_a_field_that_holds_no_dates_any_more_keeps_no_other_from_being_polled(
    goods: Listening,
) -> None:
    lost = await goods.automation("record_date_reached", fieldKey="day")
    async with goods.database.transaction() as work:
        day = (field.c.database_id == goods.table, field.c.key == "day")
        await work.execute(update(field).where(*day).values(kind="number"))
    await goods.create("A", day=5)
    await looked(goods, lost)
    sound = await goods.automation("record_date_reached", fieldKey="born")
    await pass_by(goods, sound, 1)
    assert [title for title, _ in await fired(goods, sound)] == ["A"]
    assert await goods.count(lost) == 0


@pytest.mark.long
async def test_a_failing_poll_keeps_no_other_automation_from_being_polled(
    goods: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await goods.automation("record_date_reached", fieldKey="day")
    sound = await goods.automation("record_date_reached", fieldKey="born")
    emit = record_dates._emit

    async def refuse(work: Any, held: Any, *others: Any) -> None:
        if held.automation_id == broken:
            await work.execute(text("SELECT 1 / 0"))
        await emit(work, held, *others)

    await goods.create("A", day=utc_now().date().isoformat())
    monkeypatch.setattr(record_dates, "_emit", refuse)
    async with goods.database.transaction() as work:
        await work.execute(
            update(automation_subscription)
            .where(automation_subscription.c.automation_id == broken)
            .values(polled_until=work.now - timedelta(days=1.1), next_poll_at=work.now)
        )
    await pass_by(goods, sound, 1)
    assert [title for title, _ in await fired(goods, sound)] == ["A"]
    assert await goods.count(broken) == 0
    monkeypatch.undo()
    await looked(goods, broken)
    assert [title for title, _ in await fired(goods, broken)] == ["A"]


@pytest.mark.long
async def test_a_large_database_is_polled_by_its_index(goods: Listening) -> None:
    subscriber = await goods.automation("record_date_reached", fieldKey="day")
    today = utc_now().date()
    async with goods.database.transaction() as work:
        named = {"workspace": goods.actor.workspace_id, "table": goods.table}
        await work.execute(MANY, {**named, "count": LARGE})
    await goods.create("A", day=today.isoformat())
    await pass_by(goods, subscriber, 1.1)
    assert [title for title, _ in await fired(goods, subscriber)] == ["A"]

    async def indexed() -> bool:
        async with goods.database.transaction() as work:
            index = select(field.c.index_ready).where(
                field.c.database_id == goods.table, field.c.key == "day"
            )
            return bool(await work.scalar(index))

    await eventually(indexed, what="the index")
    await pass_by(goods, subscriber, 1.1)
    assert [title for title, _ in await fired(goods, subscriber)] == ["A"]
