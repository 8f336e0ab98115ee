"""Runs that wait while a field is renamed: they continue with its new key, or it is refused."""

from typing import Any

import pytest
from sqlalchemy import select, update

from activities.automation_runs.node_execution import CalledNode, NodeExecution
from activities.automation_runs.runs import GraphCache, RunCache
from activities.contracts import NodeCall, NodeReply, NodeState
from models.automation.automation_runs.tables import automation_run
from models.automation.automations.tables import automation_graph, automation_version
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.databases.shapes import RenameField
from models.data.fields.queries import load_catalog
from models.workspace.impact.fields import rename_field
from runtime.errors import ConflictError
from tests.support.engine import Engine, Json, by_node, graph, node
from tests.support.triggers import Listening
from tests.support.waits import held, member, resume, waiting

pytestmark = pytest.mark.takes(seconds=20)

APPROVE: dict[str, Any] = {"decision": "approved"}
PRICED = {"filter": {"field": "price", "op": "gt", "value": 5}}


@pytest.fixture
async def goods(engine: Engine) -> Listening:
    """A database with a field `price`, and a record that costs 7."""
    listening = await Listening.within(engine.database, engine.actor)
    await listening.create("A", price=7)
    return listening


async def rename(
    engine: Engine, goods: Listening, key: str = "cost", before: str = "price"
) -> None:
    async with engine.database.transaction() as work:
        catalog = await load_catalog(work, engine.actor.workspace_id, [goods.table])
        field_id = catalog[goods.table][before].id
        body = RenameField(key=key, rewrite=True)
        await rename_field(work, engine.actor, goods.table, field_id, body)


def path(text: str) -> Json:
    return {"type": "node", "value": text}


def asking(boss: Actor) -> Json:
    return held("ask", "approval", {"assignees": [str(boss.user_id)]})


def reading(goods: Listening, boss: Actor) -> Json:
    """A graph that reads prices, asks, takes one that it has read, and reads and writes again."""
    table, cel = str(goods.table), "nodes.read.records[0].data.price + 1"
    return graph(
        node("read", "query_records", databaseId=table, query=PRICED),
        node("kept", "transform", output={"all": path("read.records")}),
        asking(boss),
        node("take", "transform", output={"price": path("kept.all[0].data.price")}),
        node(
            "add",
            "create_record",
            databaseId=table,
            title="B",
            data={"price": {"type": "expression", "value": cel}},
        ),
        node("again", "query_records", databaseId=table, query=PRICED),
        edges=[
            ("read", "kept"),
            ("kept", "ask"),
            ("ask", "take", "approved"),
            ("take", "add"),
            ("add", "again"),
        ],
    )


async def test_it_reads_and_writes_by_the_new_key(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    place = await waiting(engine, reading(goods, boss))
    await rename(engine, goods)
    await resume(engine, place, "ask", boss, **APPROVE)
    run = await engine.ended(*place)
    assert run.status == "succeeded", run.error
    nodes = by_node(run)
    assert nodes["take"].output == {"price": 7}
    assert nodes["add"].output["record"]["data"] == {"title": "B", "cost": 8}
    assert {one["data"]["cost"] for one in nodes["again"].output["records"]} == {7, 8}
    assert nodes["read"].output["records"][0]["data"] == {"title": "A", "cost": 7}


async def test_it_is_a_run_of_the_new_version(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    place = await waiting(engine, reading(goods, boss))
    await rename(engine, goods)
    await rename(engine, goods, "amount", before="cost")
    version, stored = automation_version.c, automation_graph.c
    async with engine.database.transaction() as work:
        row = await work.first(
            select(version.status, version.version, stored.graph)
            .join(automation_run, automation_run.c.automation_version_id == version.id)
            .join(
                automation_graph,
                (stored.checksum == automation_run.c.graph_checksum)
                & (stored.automation_id == place[0]),
            )
            .where(automation_run.c.id == place[1])
        )
    assert row is not None
    assert (row.status, row.version) == ("published", 3)
    (adding,) = (one for one in row.graph["nodes"] if one["id"] == "add")
    assert adding["config"]["data"].keys() == {"amount"}
    await resume(engine, place, "ask", boss, **APPROVE)
    run = await engine.ended(*place)
    assert by_node(run)["add"].output["record"]["data"]["amount"] == 8


async def test_its_payload_has_the_new_key(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    content = graph(
        asking(boss),
        node(
            "take", "transform", output={"price": {"type": "trigger", "value": "record.data.price"}}
        ),
        edges=[("ask", "take", "approved")],
    )
    trigger = {"kind": "record_created", "databaseId": str(goods.table)}
    automation = await engine.publish(content, triggerConfig=trigger)
    payload = {"record": {"id": str(goods.table), "data": {"price": 3}}, "note": {"price": 1}}
    run_id = await engine.start(automation.id, payload)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await rename(engine, goods)
    await resume(engine, (automation.id, run_id), "ask", boss, **APPROVE)
    run = await engine.ended(automation.id, run_id)
    assert by_node(run)["take"].output == {"price": 3}
    assert run.trigger_payload["record"]["data"] == {"cost": 3}
    assert run.trigger_payload["note"] == {"price": 1}


async def test_a_process_that_knows_the_former_graph_reads_it_anew(
    engine: Engine, goods: Listening
) -> None:
    boss = await member(engine)
    place = await waiting(engine, reading(goods, boss))
    runs = RunCache(engine.database, GraphCache())
    former = (await runs.get(place[1])).header.graph_checksum
    await rename(engine, goods)
    checksums: list[str | None] = []

    async def complete(called: CalledNode) -> NodeReply:
        checksums.append(called.key.graph_checksum)
        nodes = NodeExecution(engine.database, runs)

        async def body(_: object) -> NodeReply:
            return NodeReply(NodeState.WAITING)

        return await nodes.behind_gate(called, body)

    call = NodeCall(str(place[1]), "ask")
    reply = await NodeExecution(engine.database, runs).guarded(call, complete)
    assert (reply.state, checksums[0]) == (NodeState.WAITING, former)
    assert len(set(checksums)) == 2
    await engine.cancel(*place)


async def test_runs_in_line_for_a_slot_are_moved(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    limits = {"limit": 1, "policy": "queue"}
    trigger = {"kind": "manual", "concurrency": limits}
    automation = await engine.publish(reading(goods, boss), triggerConfig=trigger)
    runs = [await engine.start(automation.id) for _ in range(2)]
    for run_id in runs:
        await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
        if run_id == runs[0]:
            await rename(engine, goods)
        await resume(engine, (automation.id, run_id), "ask", boss, **APPROVE)
        run = await engine.ended(automation.id, run_id)
        assert run.status == "succeeded", run.error
        assert "cost" in by_node(run)["add"].output["record"]["data"]


async def refused(engine: Engine, goods: Listening, place: tuple[Id, Id], reason: str) -> None:
    with pytest.raises(ConflictError, match=rf"The run {place[1]} {reason}\. Wait until"):
        await rename(engine, goods)
    await engine.cancel(*place)


async def test_a_run_that_waits_in_a_loop_refuses(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    content = graph(
        node("read", "query_records", databaseId=str(goods.table), query=PRICED),
        node("each", "for_each", items=path("read.records")),
        asking(boss),
        edges=[("read", "each"), ("each", "ask", "item")],
    )
    await refused(engine, goods, await waiting(engine, content), "is in a loop")


async def test_a_filter_of_an_awaited_event_refuses(engine: Engine, goods: Listening) -> None:
    compared = "data.price == nodes.read.records[0].data.price"
    content = graph(
        node("read", "query_records", databaseId=str(goods.table), query=PRICED),
        held("hear", "wait_event", {"eventKey": "paid", "filter": compared}),
        edges=[("read", "hear")],
    )
    reason = "waits for an event whose filter names the field"
    await refused(engine, goods, await waiting(engine, content), reason)


async def test_a_run_with_values_of_its_caller_refuses(engine: Engine, goods: Listening) -> None:
    boss = await member(engine)
    place = await waiting(engine, reading(goods, boss))
    async with engine.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == place[1])
            .values(options={"scope": {"trigger": {"record": {"data": {"price": 7}}}}})
        )
    await refused(engine, goods, place, "has values of another run, of its caller or of a test")
