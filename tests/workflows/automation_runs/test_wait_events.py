"""Waiting for events: by name, by node, by URL; early, late, and without workers."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, func, select

from models.automation.waits import commands, store
from models.automation.waits.commands import ResumeNode
from models.automation.waits.links import NodeAddress, read_resume_token, resume_path
from models.automation.waits.rules import NotResumableError
from models.automation.waits.store import automation_event, run_wait
from models.core.access.rules import Role
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import DeniedError, NotFoundError, ValidationError
from runtime.temporal.outbox import outbox
from tests.support.attacks import COMPARED
from tests.support.engine import KEYS, Engine, Json, by_node, graph, node, running_engine
from tests.support.patience import ENOUGH
from tests.support.postgres import migrated_database
from tests.support.spaces import MASTER_SECRET, make_space
from tests.support.temporal import dev_server
from tests.support.waits import all_of, event, held, member, publish, resume, waiting, ways

pytestmark = pytest.mark.takes(seconds=30)


async def by_url(engine: Engine, path: str, **data: Any) -> int:
    """Call a resume URL; the number of nodes that continue."""
    address = read_resume_token(KEYS, path.rpartition("/")[2])
    assert address is not None
    async with engine.database.transaction() as work:
        return await commands.resume_by_url(work, address, data)


@pytest.mark.long
async def test_an_event_resumes_every_node_that_waits_for_it(engine: Engine) -> None:
    content = event(eventKey={"type": "template", "value": "paid-{{trigger.order}}"})
    places = [await waiting(engine, content, {"order": 7}) for _ in range(3)]
    other = await waiting(engine, content, {"order": 8})
    assert await publish(engine, "paid-7", amount=3) == 3
    assert await publish(engine, "paid-7", amount=4) == 0
    for place in places:
        run = await engine.ended(*place)
        assert run.output == {"then": {"got": {"amount": 3}}}
        assert by_node(run)["hear"].output["resumedBy"] == str(engine.actor.user_id)
    assert (await engine.get(*other)).status == "waiting"
    await engine.cancel(*other)


async def test_an_event_of_another_workspace_resumes_nothing(engine: Engine) -> None:
    place = await waiting(engine, event(eventKey="ours"))
    stranger = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    assert await publish(stranger, "ours") == 0
    with pytest.raises(NotFoundError):
        await resume(stranger, place, "hear", data={})
    assert (await engine.get(*place)).status == "waiting"
    await engine.cancel(*place)


async def test_an_event_that_comes_first_is_kept(engine: Engine) -> None:
    content = graph(
        held("first", "wait_event", {}),
        *event(eventKey="early")["nodes"],
        edges=[("first", "hear"), ("hear", "then"), ("hear", "late", "timeout")],
    )
    place = await waiting(engine, content)
    assert await publish(engine, "early", n=1) == 0
    await resume(engine, place, "first", data={})
    run = await engine.ended(*place)
    assert run.output == {"then": {"got": {"n": 1}}}
    # A run that is accepted later does not hear it.
    place = await waiting(engine, event(eventKey="early"))
    await engine.cancel(*place)


async def test_no_event_comes_between_looking_and_waiting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node has looked for earlier events and does not wait yet when an event is published."""
    looked, events_before = asyncio.Event(), store.events_before

    async def slowly(*given: Any) -> Any:
        found = await events_before(*given)
        looked.set()
        await asyncio.sleep(0.5)
        return found

    monkeypatch.setattr(store, "events_before", slowly)
    automation = await engine.publish(event(eventKey="meanwhile"))
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(looked.wait(), ENOUGH)
    assert await publish(engine, "meanwhile", n=1) == 1
    run = await engine.ended(automation.id, run_id)
    assert run.output == {"then": {"got": {"n": 1}}}


@pytest.mark.long
async def test_events_of_one_key_are_heard_one_by_one(engine: Engine) -> None:
    chain = graph(
        held("a", "wait_event", {"eventKey": "tick"}),
        held("b", "wait_event", {"eventKey": "tick"}),
        held("c", "wait_event", {"eventKey": "tick"}),
        edges=[("a", "b"), ("b", "c")],
    )
    place = await waiting(engine, chain)
    for number in range(3):
        await publish(engine, "tick", n=number)
    run = await engine.ended(*place)
    heard = [by_node(run)[name].output["data"]["n"] for name in "abc"]
    assert heard == [0, 1, 2]


async def test_events_are_removed_with_the_last_run_they_could_reach(engine: Engine) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    place = await waiting(engine, event(eventKey="kept"))
    await publish(engine, "other")
    assert await kept(engine) >= 1
    await engine.cancel(*place)
    await publish(engine, "other")
    assert await kept(engine) == 0


async def kept(engine: Engine) -> int:
    async with engine.database.transaction() as work:
        count: int = await work.scalar(
            select(func.count()).where(automation_event.c.workspace_id == engine.actor.workspace_id)
        )
    return count


async def test_a_filter_lets_data_through_or_not(engine: Engine) -> None:
    place = await waiting(engine, event(eventKey="sized", filter="data.size > 10"))
    for data in ({"size": 3}, {}, {"size": "x"}):
        with pytest.raises(ValidationError) as caught:
            await resume(engine, place, "hear", data=data)
        assert [detail.path for detail in caught.value.details] == ["data"]
    assert await publish(engine, "sized", size=9) == 0
    assert (await engine.get(*place)).status == "waiting"
    assert await publish(engine, "sized", size=11) == 1
    run = await engine.ended(*place)
    assert by_node(run)["hear"].output["data"] == {"size": 11}


@pytest.mark.long
async def test_a_filter_that_grows_without_end_lets_no_data_through(engine: Engine) -> None:
    place = await waiting(engine, event(eventKey="endless", filter=COMPARED))
    with pytest.raises(ValidationError, match="time or memory"):
        await resume(engine, place, "hear", data={"list": []})
    assert await publish(engine, "endless", list=[]) == 0
    assert (await engine.get(*place)).status == "waiting"


@pytest.mark.parametrize("text", ["data.size >", "1 + 1", "record.x"])
async def test_a_filter_that_cannot_be_is_not_published(engine: Engine, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        await engine.publish(event(filter=text))
    assert "config.filter" in caught.value.message


async def test_a_filter_names_nodes_and_variables_that_there_are(engine: Engine) -> None:
    content = event(filter="data.a == nodes.gone.id && data.b == vars.gone")
    with pytest.raises(ValidationError) as caught:
        await engine.publish({**content, "variables": {"n": 3}})
    said = [detail.message for detail in caught.value.details]
    for thing in ("node", "variable"):
        assert any(f'Reads the {thing} "gone"' in one for one in said)


@pytest.mark.long
async def test_an_event_finds_the_run_it_belongs_to(engine: Engine) -> None:
    automation = await engine.publish(event(eventKey="done", filter="data.id == trigger.order.id"))
    runs = [
        await engine.start(automation.id, {"order": {"id": number, "text": "x" * 50_000}})
        for number in range(3)
    ]
    for run_id in runs:
        await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert await publish(engine, "done", id=7) == 0
    assert await publish(engine, "done", id=1) == 1
    run = await engine.ended(automation.id, runs[1])
    assert run.output == {"then": {"got": {"id": 1}}}
    async with engine.database.transaction() as work:
        terms = await work.scalar(select(run_wait.c.terms).where(run_wait.c.run_id == runs[0]))
    assert terms["variables"] == {"trigger": {"order": {"id": 0}}}
    for run_id in (runs[0], runs[2]):
        await engine.cancel(automation.id, run_id)


@pytest.mark.parametrize("kind", ["literal", "template"])
async def test_a_filter_reads_what_its_node_can(engine: Engine, kind: str) -> None:
    text = "data.made == nodes.made.id && data.run == run.id && data.n == vars.n && item == null"
    content = graph(
        node("made", "transform", output={"id": "a", "rest": "b"}),
        held("hear", "wait_event", {"filter": {"type": kind, "value": text}}),
        edges=[("made", "hear")],
    )
    place = await waiting(engine, {**content, "variables": {"n": 3}})
    told = {"made": "a", "run": str(place[1]), "n": 3}
    for name in told:
        with pytest.raises(ValidationError):
            await resume(engine, place, "hear", data={**told, name: None})
    await resume(engine, place, "hear", data=told)
    assert (await engine.ended(*place)).status == "succeeded"


async def test_a_filter_that_reads_too_much_fails_its_node(engine: Engine) -> None:
    automation = await engine.publish(event(filter="data.text in trigger.texts"))
    run_id = await engine.start(automation.id, {"texts": ["x" * 20_000]})
    run = await engine.ended(automation.id, run_id)
    assert by_node(run)["hear"].metadata["errorCode"] == "binding_error"
    assert "16 KiB" in (by_node(run)["hear"].error or "")


@pytest.mark.long
async def test_one_of_fifty_resumes_wins(engine: Engine) -> None:
    place = await waiting(engine, event())
    answers = await all_of(*(resume(engine, place, "hear", data={"n": n}) for n in range(50)))
    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert {type(one) for one in answers if isinstance(one, BaseException)} == {NotResumableError}
    run = await engine.ended(*place)
    assert by_node(run)["hear"].output["data"]["n"] in range(50)
    async with engine.database.transaction() as work:
        responses = await work.scalar(
            select(run_wait.c.responses).where(run_wait.c.run_id == place[1])
        )
    assert [one["data"] for one in responses] == [by_node(run)["hear"].output["data"]]


async def test_only_editors_resume_a_node_that_waits_for_an_event(engine: Engine) -> None:
    place = await waiting(engine, event())
    for role in (Role.VIEWER, Role.COMMENTER, Role.GUEST):
        with pytest.raises(DeniedError):
            await resume(engine, place, "hear", await member(engine, role), data={})
    await resume(engine, place, "hear", await member(engine, Role.EDITOR), data={})
    assert ways(await engine.ended(*place)) == {"hear", "then"}


async def test_a_url_is_known_before_the_node_waits(engine: Engine) -> None:
    content = graph(
        node(
            "tell",
            "transform",
            output={
                "url": {"type": "run", "value": "resumeUrl.hear"},
                "text": {"type": "template", "value": "Go to {{run.resumeUrl.hear}}."},
                "none": {"type": "run", "value": "resumeUrl.tell"},
            },
        ),
        held("first", "wait_event", {}),
        *event()["nodes"],
        edges=[("tell", "first"), ("first", "hear"), ("hear", "then")],
    )
    place = await waiting(engine, content)
    told = by_node(await engine.get(*place))["tell"].output
    path = told["url"]
    assert told == {"url": path, "text": f"Go to {path}.", "none": None}
    assert len(path.rpartition("/")[2]) >= 32
    assert await by_url(engine, path, n=1) == 0
    await resume(engine, place, "first", data={})
    run = await engine.ended(*place)
    assert by_node(run)["hear"].output == {"data": {"n": 1}}
    # The same again is no other; something else comes too late.
    assert await by_url(engine, path, n=1) == 1
    with pytest.raises(NotResumableError):
        await by_url(engine, path, n=2)


@pytest.mark.parametrize(
    "off",
    [False, {"type": "literal", "value": False}, {"type": "expression", "value": "trigger.open"}],
)
async def test_a_url_can_be_switched_off(engine: Engine, off: Any) -> None:
    content = graph(
        held("first", "wait_event", {}), *event(resumeUrl=off)["nodes"], edges=[("first", "hear")]
    )
    place = await waiting(engine, content, {"open": False})
    path = resume_path(KEYS, NodeAddress(place[1], "hear"))
    with contextlib.suppress(NotFoundError):
        # Before the node waits its token is unknown, and an event is no answer.
        await by_url(engine, path, early=True)
    await resume(engine, place, "first", data={})
    await engine.until(*place, lambda run: "hear" in by_node(run))
    with pytest.raises(NotFoundError):
        await by_url(engine, path)
    await resume(engine, place, "hear", data={})
    assert (await engine.ended(*place)).status == "succeeded"


async def test_a_token_is_ours_or_none(engine: Engine) -> None:
    place = await waiting(engine, event())
    path = resume_path(KEYS, NodeAddress(place[1], "hear"))
    token = path.rpartition("/")[2]
    foreign = KeyRing(["another secret of the tests, long enough to be one"])
    forged = resume_path(foreign, NodeAddress(place[1], "hear")).rpartition("/")[2]
    for bad in (forged, token[:-1], f"{token}A", f"{token}==", "é", "", "A" * 3_000):
        assert read_resume_token(KEYS, bad) is None
    rotated = KeyRing(["a new secret of the tests, long enough to be one", MASTER_SECRET])
    assert read_resume_token(rotated, token) == NodeAddress(place[1], "hear")
    await engine.cancel(*place)


@pytest.mark.long
@pytest.mark.parametrize("seconds", [30 * 86_400, 3_600])
async def test_a_wait_for_which_no_event_comes_times_out(
    skipping_engine: Engine, seconds: int
) -> None:
    run = await skipping_engine.run(event(eventKey="never", timeoutSeconds=seconds))
    assert (run.status, ways(run)) == ("succeeded", {"hear", "late"})
    assert by_node(run)["hear"].output == {"data": None}


@pytest.mark.long
async def test_an_end_of_time_and_an_event_at_once_have_one_outcome(engine: Engine) -> None:
    async def race(number: int) -> None:
        automation = await engine.publish(event(timeoutSeconds=1.0))
        place = (automation.id, await engine.start(automation.id))
        # It may be over before the next look.
        await engine.until(*place, lambda run: "hear" in by_node(run))
        await asyncio.sleep(0.75 + number * 0.01)
        try:
            await resume(engine, place, "hear", data={"n": number})
            expected = {"hear", "then"}
        except NotResumableError:
            expected = {"hear", "late"}
        run = await engine.ended(*place)
        assert (run.status, ways(run)) == ("succeeded", expected)

    for start in range(0, 30, 10):
        await asyncio.gather(*(race(number) for number in range(start, start + 10)))


@pytest.mark.long
async def test_an_event_without_running_workers_is_received_later() -> None:
    """The workers stop while the node waits; it is resumed; others continue."""
    with migrated_database("stopped_waits") as url:
        database = Database(url)
        async with dev_server() as environment:
            async with running_engine(database, url, environment.client) as engine:
                place = await waiting(engine, event())
            answered = await resume(engine, place, "hear", data={"n": 1})
            assert answered.status == "waiting"
            async with running_engine(database, url, environment.client) as again:
                assert again.client is engine.client
                run = await engine.ended(*place)
        assert run.output == {"then": {"got": {"n": 1}}}
        await database.close()


@pytest.mark.long
async def test_a_lost_signal_does_not_lose_the_resolution(engine: Engine) -> None:
    """After the time-out the row decides, and not the signals of the execution."""
    place = await waiting(engine, event(timeoutSeconds=5.0))
    async with engine.database.transaction() as work:
        body = ResumeNode.model_validate({"data": {"n": 1}})
        await commands.resume(work, engine.actor, *place, "hear", body)
        await work.execute(delete(outbox).where(outbox.c.subject_id == place[1]))
    run = await engine.ended(*place)
    assert run.output == {"then": {"got": {"n": 1}}}


async def test_cancel_while_an_event_is_awaited(engine: Engine) -> None:
    place = await waiting(engine, event(eventKey="gone"))
    cancelled = await engine.cancel(*place)
    assert by_node(cancelled)["hear"].status == "cancelled"
    assert await publish(engine, "gone") == 0
    with pytest.raises(NotResumableError):
        await resume(engine, place, "hear", data={})


@pytest.mark.parametrize(
    ("mock", "way"), [({"data": {"n": 1}}, "then"), ({"timeout": True}, "late")]
)
async def test_a_mock_replaces_the_event_in_a_test(engine: Engine, mock: Json, way: str) -> None:
    automation_id = await engine.draft(event())
    run = await engine.test(automation_id, mocks={"hear": mock})
    assert (run.status, ways(run)) == ("succeeded", {"hear", way})


async def test_an_event_with_too_much_data_is_refused(engine: Engine) -> None:
    place = await waiting(engine, event())
    with pytest.raises(ValidationError):
        await resume(engine, place, "hear", data={"text": "x" * commands.DATA_LIMIT})
    with pytest.raises(ValidationError):
        await publish(engine, "any", text="x" * commands.DATA_LIMIT)
    with pytest.raises(ValidationError):
        await resume(engine, place, "hear", decision="approved")
    await engine.cancel(*place)
