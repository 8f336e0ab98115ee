"""Triggers on records, on the real engine over real writes (interface.md#triggers)."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import select

from models.automation.automations.tables import automation
from models.content.items.commands import archive_item, restore_item, trash_item
from models.core.access.rules import Actor, Principal, PrincipalType, Role
from models.data.records.commands import write_batch
from models.data.records.shapes import RecordBatch
from models.messages.notifications.queries import notification
from runtime.errors import ValidationError
from tests.support.attacks import COMPARED
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=20)

QUIET_SECONDS = 5
"""Longer than a machine stands still between two changes."""


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(engine.database, engine.actor)


@pytest.mark.long
async def test_a_created_record_starts_one_run_with_its_facts(goods: Listening) -> None:
    subscriber = await goods.automation("record_created")
    made = await goods.create("A", price=3)
    (run,) = await goods.runs(subscriber)
    told = run.trigger_payload
    assert (run.source, run.chain, run.parent_run_id) == ("record", [], None)
    assert told["record"] == made.to_json()
    assert told["before"] is None
    assert told["changedKeys"] == ["price", "title"]
    user = str(goods.actor.user_id)
    assert told["actor"] == {"type": "session", "userId": user, "runId": None}
    assert sorted(told) == ["actor", "before", "changedKeys", "record"]
    await goods.quiet()
    (run,) = await goods.runs(subscriber)
    assert run.status == "succeeded"


@pytest.mark.long
async def test_each_record_trigger_answers_its_own_changes(goods: Listening) -> None:
    kinds = ("record_created", "record_updated", "record_deleted")
    made, changed, deleted = [await goods.automation(kind) for kind in kinds]
    one = await goods.create("A", price=1)
    await goods.set(one.id, price=2)
    await goods.set(one.id, price=2)
    await goods.delete(one.id)
    await goods.restore(one.id)
    assert [told["before"] for told in await goods.payloads(made)] == [None, None]
    (update_,) = await goods.payloads(changed)
    assert update_["before"]["data"] == {"title": "A", "price": 1}
    assert update_["record"]["data"] == {"title": "A", "price": 2}
    assert update_["changedKeys"] == ["price"]
    (gone,) = await goods.payloads(deleted)
    assert gone["record"]["data"] == gone["before"]["data"] == {"title": "A", "price": 2}


async def test_a_change_that_is_rolled_back_starts_no_run(goods: Listening) -> None:
    subscriber = await goods.automation("record_created")

    async def fail() -> None:
        async with goods.database.transaction() as work:
            await goods.create_within(work, "A")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await goods.count(subscriber) == 0


@pytest.mark.long
async def test_a_batch_starts_a_run_for_each_change_in_its_order(goods: Listening) -> None:
    made = await goods.automation("record_created")
    changed = await goods.automation("record_updated")
    one = await goods.create("old", price=1)
    await goods.heard()
    operations: list[Any] = [{"op": "create", "title": f"{n:02}"} for n in range(30)]
    operations += [
        {"op": "update", "recordId": str(one.id), "data": {"price": 5}},
        {"op": "upsert", "upsertBy": ["price"], "data": {"price": 77}},
    ]
    async with goods.database.transaction() as work:
        body = RecordBatch.model_validate_json(json.dumps({"operations": operations}))
        await write_batch(work, goods.actor, goods.table, body)
    titles = [told["record"]["title"] for told in await goods.payloads(made)]
    assert titles[0] == "old"
    assert sorted(titles[1:]) == ["", *(f"{n:02}" for n in range(30))]
    assert [told["record"]["data"]["price"] for told in await goods.payloads(changed)] == [5]


async def test_only_changes_of_named_fields_start_a_run(goods: Listening) -> None:
    subscriber = await goods.automation("record_updated", fieldKeys=["price", "day"])
    one = await goods.create("A", price=1)
    await goods.set(one.id, title="B")
    await goods.set(one.id, state="open")
    await goods.archive(one.id)
    assert await goods.count(subscriber) == 0
    await goods.set(one.id, state="shut", day="2026-01-01")
    (told,) = await goods.payloads(subscriber)
    assert told["changedKeys"] == ["day", "state"]


async def test_a_computed_field_counts_as_changed(engine: Engine) -> None:
    formula = {
        "label": "Double",
        "kind": "formula",
        "settings": {"expression": "record.price * 2.0", "resultKind": "number"},
    }
    goods = await Listening.within(engine.database, engine.actor, formula)
    subscriber = await goods.automation("record_updated", fieldKeys=["double"])
    one = await goods.create("A", price=1)
    await goods.set(one.id, title="B")
    await goods.set(one.id, price=4)
    (told,) = await goods.payloads(subscriber)
    assert told["changedKeys"] == ["double", "price"]
    assert (told["before"]["computed"]["double"], told["record"]["computed"]["double"]) == (2, 8)


@pytest.mark.parametrize(
    "given",
    [
        "record.data.price > 10.0 && before.data.price <= 10.0 && 'price' in changedKeys",
        "trigger.record.data.price > 10.0 && actor.type == 'session'",
        {"and": [{"field": "price", "op": "gt", "value": 10}]},
        {"field": "record.data.price", "op": "gt", "value": 10},
    ],
    ids=["cel", "cel_on_trigger", "tree_on_fields", "tree_on_paths"],
)
async def test_filters_decide_which_records_start_a_run(goods: Listening, given: Any) -> None:
    subscriber = await goods.automation("record_updated", filter=given)
    one = await goods.create("A", price=1)
    await goods.set(one.id, price=2)
    await goods.set(one.id, price=11)
    assert [told["record"]["data"]["price"] for told in await goods.payloads(subscriber)] == [11]


async def test_a_failing_filter_is_notified_once_and_affects_no_other_automation(
    goods: Listening,
) -> None:
    broken = await goods.automation("record_created", filter="record.data.price + 1 > 11")
    sound = await goods.automation("record_created")
    await goods.create("A")
    await goods.create("B")
    await goods.create("C", price=11)
    assert [told["record"]["title"] for told in await goods.payloads(broken)] == ["C"]
    assert await goods.count(sound) == 3
    (notice,) = await notices(goods, "automation_failed", broken)
    assert notice.user_id == goods.actor.user_id
    assert "price" in notice.body


@pytest.mark.long
async def test_a_filter_that_grows_without_end_matches_nothing_and_is_notified(
    goods: Listening,
) -> None:
    attack = await goods.automation("record_created", filter=COMPARED)
    sound = await goods.automation("record_created", filter="record.data.price > 10")
    await goods.create("A")
    await goods.create("B", price=11)
    assert await goods.payloads(attack) == []
    assert [told["record"]["title"] for told in await goods.payloads(sound)] == ["B"]
    (notice,) = await notices(goods, "automation_failed", attack)
    assert "time or memory" in notice.body


async def notices(goods: Listening, kind: str, automation_id: Any) -> Any:
    async with goods.database.transaction() as work:
        found = await work.rows(
            select(notification).where(
                notification.c.workspace_id == goods.actor.workspace_id,
                notification.c.kind == kind,
            )
        )
    return [one for one in found if one.data.get("automationId") == str(automation_id)]


@pytest.mark.parametrize("bulk", [False, True], ids=["alone", "in_bulk"])
async def test_system_changes_start_runs_only_of_triggers_that_include_them(
    goods: Listening, *, bulk: bool
) -> None:
    reserved = await goods.automation("record_created")
    curious = await goods.automation("record_created", includeSystemChanges=True)
    someone = uuid4()
    nobody = goods.actor.user_id if bulk else someone
    platform = Actor(
        principal=Principal(type=PrincipalType.SYSTEM, id=someone, user_id=nobody, bulk=bulk),
        workspace_id=goods.actor.workspace_id,
        role=Role.OWNER,
    )
    async with goods.database.transaction() as work:
        await goods.create_within(work, "A", actor=platform)
    assert (await goods.count(reserved), await goods.count(curious)) == (0, 1)
    (told,) = await goods.payloads(curious)
    user = str(nobody) if bulk else None
    assert told["actor"] == {"type": "system", "userId": user, "runId": None}


async def test_beginning_to_match_is_heard_once_per_time(goods: Listening) -> None:
    subscriber = await goods.automation(
        "record_matches", filter={"field": "state", "op": "eq", "value": "open"}
    )
    await goods.create("matches at once", state="open")
    one = await goods.create("later")
    await goods.set(one.id, state="shut")
    await goods.set(one.id, state="open")
    await goods.set(one.id, title="still")
    await goods.set(one.id, state="shut")
    await goods.set(one.id, state="open")
    await goods.delete(one.id)
    await goods.restore(one.id)
    # What is dispatched in one go has no order.
    titles = sorted(told["record"]["title"] for told in await goods.payloads(subscriber))
    assert titles == ["later", "matches at once", "still", "still"]


async def test_a_record_on_which_the_filter_failed_did_not_match_before(goods: Listening) -> None:
    subscriber = await goods.automation("record_matches", filter="record.data.price + 1 > 11")
    one = await goods.create("A")
    await goods.set(one.id, price=11)
    (told,) = await goods.payloads(subscriber)
    assert told["before"]["data"] == {"title": "A"}


async def test_records_written_by_runs_are_heard_with_their_chain(goods: Listening) -> None:
    writing = graph(node("make", "create_record", databaseId=str(goods.table), title="made"))
    writer = await goods.automation("record_created", writing, filter="record.title == 'A'")
    reader = await goods.automation("record_created", filter="record.title == 'made'")
    await goods.create("A")
    await goods.quiet()
    (first,) = await goods.runs(writer)
    (second,) = await goods.runs(reader)
    assert second.chain == [first.id]
    assert second.trigger_payload["actor"]["runId"] == str(first.id)


async def test_an_automation_that_starts_itself_ends_after_eight_runs(goods: Listening) -> None:
    record_id = {"type": "trigger", "value": "record.id"}
    price = {"type": "expression", "value": "trigger.record.data.price + 1"}
    again = graph(node("again", "update_record", recordId=record_id, data={"price": price}))
    subscriber = await goods.automation("record_updated", again)
    one = await goods.create("A", price=0)
    await goods.set(one.id, price=1)

    async def told() -> bool:
        return bool(await notices(goods, "automation_loop", subscriber))

    await eventually(told, what="the notice of the loop")
    await goods.quiet()
    runs = await goods.runs(subscriber)
    assert [len(run.chain) for run in runs] == list(range(8))
    assert [run.id for run in runs[:-1]] == runs[-1].chain
    (notice,) = await notices(goods, "automation_loop", subscriber)
    assert notice.user_id == goods.actor.user_id


@pytest.mark.long
async def test_publishing_switches_what_is_heard_even_of_events_that_wait(
    goods: Listening,
) -> None:
    steady = await goods.automation("record_created")
    turning = await goods.automation("record_created")
    await goods.create_unheard("waiting")
    late = await goods.automation("record_created")
    await goods.change(steady, graph=graph(node("other", "transform", output={})))
    await goods.publish(steady)
    await goods.change(turning, triggerConfig=goods.config("record_deleted"))
    await goods.publish(turning)
    await goods.release()
    counted = [await goods.count(one) for one in (steady, turning, late)]
    assert counted == [1, 0, 0]
    one = await goods.create("now")
    await goods.delete(one.id)
    counted = [await goods.count(one) for one in (steady, turning, late)]
    assert counted == [2, 1, 1]
    assert (await goods.runs(steady))[0].automation_version_id == await published(goods, steady)


async def published(goods: Listening, automation_id: Any) -> Any:
    async with goods.database.transaction() as work:
        return await work.scalar(
            select(automation.c.published_version_id).where(automation.c.id == automation_id)
        )


async def test_drafts_and_disabled_automations_start_no_runs(
    goods: Listening,
) -> None:
    draft = await goods.draft("record_created")
    disabled = await goods.automation("record_created")
    await goods.create_unheard("waiting")
    await goods.change(disabled, enabled=False)
    assert (await goods.subscription(disabled)).dormant == "disabled"
    await goods.release()
    await goods.create("while it is disabled")
    await goods.heard()
    await goods.change(disabled, enabled=True)
    assert (await goods.count(draft), await goods.count(disabled)) == (0, 0)
    await goods.create("once it is enabled")
    assert (await goods.count(draft), await goods.count(disabled)) == (0, 1)


async def test_automations_in_the_trash_or_archived_start_no_runs(goods: Listening) -> None:
    subscriber = await goods.automation("record_created")
    async with goods.database.transaction() as work:
        item_id = await work.scalar(
            select(automation.c.item_id).where(automation.c.id == subscriber)
        )
    for number in range(2):
        async with goods.database.transaction() as work:
            if number == 0:
                await trash_item(work, goods.actor, item_id)
            else:
                await archive_item(work, goods.actor, item_id, archived=True)
        dormant = getattr(await goods.subscription(subscriber), "dormant", None)
        assert dormant == (None if number == 0 else "archived")
        await goods.create("unreported")
        assert await goods.count(subscriber) == number
        async with goods.database.transaction() as work:
            await restore_item(work, goods.actor, item_id)
        await goods.create("heard")
        assert await goods.count(subscriber) == number + 1


@pytest.mark.long
async def test_debounced_changes_start_one_run_from_the_first_state_to_the_last(
    goods: Listening,
) -> None:
    subscriber = await goods.automation(
        "record_updated", debounceSeconds=QUIET_SECONDS, fieldKeys=["price"]
    )
    one, other = await goods.create("A", price=0), await goods.create("B", price=0)
    undone, untouched = await goods.create("C", price=0), await goods.create("D", price=0)
    for price in (1, 2, 3):
        await goods.set(one.id, price=price)
    await goods.set(one.id, state="open")
    await goods.set(other.id, price=9)
    await goods.set(undone.id, price=5)
    await goods.set(undone.id, price=0)
    await goods.set(untouched.id, state="open")
    await goods.quiet()
    told = {each["record"]["title"]: each for each in await goods.payloads(subscriber)}
    assert sorted(told) == ["A", "B"]
    assert told["A"]["before"]["data"] == {"title": "A", "price": 0}
    assert told["A"]["record"]["data"] == {"title": "A", "price": 3, "state": "open"}
    assert told["A"]["changedKeys"] == ["price", "state"]


@pytest.mark.long
async def test_a_record_is_created_once_it_is_filled_in(goods: Listening) -> None:
    subscriber = await goods.automation(
        "record_created",
        debounceSeconds=QUIET_SECONDS,
        filter={"field": "price", "op": "gt", "value": 1},
    )
    one = await goods.create("A")
    await goods.set(one.id, price=2)
    gone = await goods.create("B", price=3)
    await goods.delete(gone.id)
    await goods.quiet()
    (told,) = await goods.payloads(subscriber)
    assert (told["before"], told["record"]["data"]) == (None, {"title": "A", "price": 2})


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "cel": ("record_updated", {"filter": "record.data.price >"}),
    "no_answer": ("record_updated", {"filter": "1 + 1"}),
    "unknown_variable": ("record_created", {"filter": "nodes.a.b == 1"}),
    "state_knows_no_before": ("record_matches", {"filter": "before.title == ''"}),
    "tree": ("record_updated", {"filter": {"field": "price", "op": "resembles"}}),
    "unknown_field_in_tree": (
        "record_matches",
        {"filter": {"field": "colour", "op": "eq", "value": 1}},
    ),
    "matches_without_filter": ("record_matches", {}),
    "unknown_field": ("record_updated", {"fieldKeys": ["colour"]}),
    "fields_of_a_creation": ("record_created", {"fieldKeys": ["price"]}),
    "no_date": ("record_date_reached", {"fieldKey": "price"}),
    "no_timezone": ("record_date_reached", {"fieldKey": "day", "timezone": "Mars/Olympus"}),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
async def test_a_trigger_that_cannot_work_is_not_published(goods: Listening, name: str) -> None:
    kind, config = REFUSED[name]
    subscriber = await goods.draft(kind, **config)
    with pytest.raises(ValidationError):
        await goods.publish(subscriber)
    assert (await goods.subscription(subscriber)).dormant == "no_published_version"
