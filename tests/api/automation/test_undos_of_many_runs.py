"""Undoing many runs by an operation, and a large one step by step."""

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from models.automation.run_operations.execution import Advance, advance
from models.automation.run_operations.queries import RUN_OPERATIONS
from models.automation.run_operations.rules import OperationRow
from models.automation.run_undos import rules
from models.core.lifecycle import commands as lifecycle
from models.data.record_changes.history import record_change
from tests.support import related
from tests.support.automations import read
from tests.support.client import Client
from tests.support.run_operations import carry_out, step
from tests.support.spaces import Space
from tests.support.undos import UndoneAutomation, automation_to_undo, created, deleted, updated
from tests.support.written_runs import insert_run, node

Json = dict[str, Any]


@pytest.fixture
async def automation(client: Client, space: Space) -> UndoneAutomation:
    return await automation_to_undo(client, space)


@pytest.fixture
async def tasks(client: Client, space: Space) -> str:
    return await related.make_database(client, space, "Tasks", {"label": "State", "kind": "text"})


async def operate(client: Client, space: Space, run_ids: list[str]) -> Json:
    """An operation that undoes runs, when it has ended."""
    body = {"action": "undo", "runIds": run_ids}
    operation = read(await client.post(f"{space.path}/run-operations", json=body), 202)
    await carry_out(space.database, operation)
    return await shown(client, space, operation["id"])


async def shown(client: Client, space: Space, operation_id: str) -> Json:
    operation: Json = read(await client.get(f"{space.path}/run-operations/{operation_id}"))
    return operation


async def reasons(client: Client, space: Space, operation: Json) -> list[tuple[str, str | None]]:
    """The outcomes with their reasons, in the order of the positions."""
    path = f"{space.path}/run-operations/{operation['id']}/results"
    return [(one["outcome"], one.get("reason")) for one in read(await client.get(path))["results"]]


async def three_runs(automation: UndoneAutomation, record: str) -> list[str]:
    """Runs that wrote the same field one after the other."""
    run_ids = []
    for number in range(3):
        run_id = await insert_run(automation.space, automation.version, number)
        await automation.write(run_id, updated(record, data={"state": str(number)}))
        run_ids.append(run_id)
    return run_ids


async def state(client: Client, record: str) -> str | None:
    value: str | None = (await related.get(client, record))["data"].get("state")
    return value


async def test_the_newest_run_is_undone_first_in_any_order_of_the_ids(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "before"})
    first, second, third = await three_runs(automation, record)
    operation = await operate(client, space, [second, third, first])
    assert (operation["succeeded"], operation["status"]) == (3, "succeeded")
    assert await state(client, record) == "before"
    body: Json = {}
    path = f"{space.path}/run-operations/{operation['id']}/undo"
    redo = read(await client.post(path, json=body), 202)
    await carry_out(space.database, redo)
    assert (await shown(client, space, redo["id"]))["succeeded"] == 3
    assert await state(client, record) == "2"


async def test_a_filter_selects_ended_runs(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "before"})
    await three_runs(automation, record)
    body = {"action": "undo", "filter": {"automationId": str(automation.version.automation_id)}}
    operation = read(await client.post(f"{space.path}/run-operations", json=body), 202)
    await carry_out(space.database, operation)
    assert await state(client, record) == "before"


async def test_a_preview_counts_records_and_names_what_stays(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one")
    run_ids = await three_runs(automation, record)
    run_ids.append(await automation.run(nodes=[node("mail", 1, node_kind="send_email")]))
    body = {"action": "undo", "runIds": run_ids}
    preview = read(await client.post(f"{space.path}/run-operations/preview", json=body))
    assert (preview["fitting"], preview["records"]) == (4, 1)
    assert [one["nodeId"] for one in preview["outside"]] == ["mail"]
    assert await state(client, record) == "2"


async def test_conflicts_and_unknown_runs_have_reasons(
    client: Client, automation: UndoneAutomation, tasks: str, space: Space
) -> None:
    record = await related.add(client, tasks, "one", data={"state": "before"})
    (last,) = (await three_runs(automation, record))[2:]
    await related.change(client, record, data={"state": "mine"})
    empty = await automation.run()
    operation = await operate(client, space, [last, empty, str(space.id)])
    assert sorted(await reasons(client, space, operation)) == [
        ("skipped", "0 records reverted, 1 conflicts."),
        ("skipped", "Run not found, or you can't edit it."),
        ("skipped", "The run wrote no records, or they were reverted before."),
    ]


async def large(
    client: Client, automation: UndoneAutomation, tasks: str
) -> tuple[str, list[str], list[str], list[str]]:
    """A run that wrote more records than go back at once: changed, deleted and created ones."""
    changed = [await related.add(client, tasks, "one") for _ in range(7)]
    removed = [await related.add(client, tasks, "two") for _ in range(4)]
    run = await automation.run(
        *(updated(record, title="uno") for record in changed), *map(deleted, removed)
    )
    new = await automation.write(run, *(created(tasks, title="new") for _ in range(5)))
    return run, changed, removed, new


@pytest.mark.long
async def test_a_large_run_is_undone_step_by_step(
    client: Client,
    automation: UndoneAutomation,
    tasks: str,
    space: Space,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "AT_ONCE", 3)
    run, changed, removed, new = await large(client, automation, tasks)
    preview = await automation.undo(run, preview=True)
    assert (preview["trimmed"], preview["records"], preview["reverted"]) == (True, 16, 3)
    begun = await automation.undo(run)
    assert (begun["status"], begun["records"], begun["reverted"]) == ("running", 16, 0)
    operation_id = begun["operationId"]
    steps = 0
    while not is_over(await step(space.database, operation_id)):
        steps += 1
        await interrupted_step(space, operation_id)
    assert steps >= 16
    undo = read(await client.get(f"{automation.path(run)}/undos/{begun['id']}"))
    assert (undo["status"], undo["reverted"], undo["conflictCount"]) == ("completed", 16, 0)
    assert [(await related.get(client, one))["title"] for one in changed] == ["one"] * 7
    assert [(await related.get(client, one))["title"] for one in removed] == ["two"] * 4
    for record in new:
        assert (await client.get(f"/v1/records/{record}")).status_code == 404
    for record in (*changed, *removed, *new):
        async with space.database.transaction() as work:
            count = await work.scalar(
                select(func.count())
                .select_from(record_change)
                .where(
                    record_change.c.record_id == UUID(record), record_change.c.undo_id.is_not(None)
                )
            )
        assert count == 1, "each record is reverted once"
    redo = await automation.undo(run, undoId=undo["id"])
    await carry_out(space.database, {"id": redo["operationId"]})
    assert [(await related.get(client, one))["title"] for one in (*changed, *new)] == [
        *["uno"] * 7,
        *["new"] * 5,
    ]


async def test_a_cancelled_undo_ends_and_can_be_continued(
    client: Client,
    automation: UndoneAutomation,
    tasks: str,
    space: Space,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "AT_ONCE", 3)
    run, changed, removed, new = await large(client, automation, tasks)
    begun = await automation.undo(run)
    for _ in range(4):
        await step(space.database, begun["operationId"])
    read(await client.post(f"{space.path}/run-operations/{begun['operationId']}/cancel"))
    undo = read(await client.get(f"{automation.path(run)}/undos/{begun['id']}"))
    assert (undo["status"], 0 < undo["reverted"] < 16) == ("cancelled", True)
    following = await automation.undo(run)
    await carry_out(space.database, {"id": following["operationId"]})
    following = read(await client.get(f"{automation.path(run)}/undos/{following['id']}"))
    assert following["status"] == "completed"
    assert undo["reverted"] + following["reverted"] == 16
    assert [(await related.get(client, one))["title"] for one in changed] == ["one"] * 7
    assert [(await related.get(client, one))["title"] for one in removed] == ["two"] * 4
    for record in new:
        assert (await client.get(f"/v1/records/{record}")).status_code == 404


def is_over(state: Advance | str) -> bool:
    return isinstance(state, str) or state.over


class InterruptionError(Exception):
    """The end of a worker before its commit."""


async def interrupted_step(space: Space, operation_id: str) -> None:
    """A step of an operation whose worker dies before it commits."""
    with suppress(InterruptionError):
        async with space.database.transaction() as work:
            row = await lifecycle.hold(work, RUN_OPERATIONS, UUID(operation_id), of=OperationRow)
            assert row is not None
            await advance(work, row)
            raise InterruptionError


async def test_a_preview_of_runs_that_are_not_there_counts_nothing(
    client: Client, space: Space
) -> None:
    body = {"action": "undo", "runIds": [str(uuid4())]}
    answer = await client.post(f"{space.path}/run-operations/preview", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["records"] == 0
