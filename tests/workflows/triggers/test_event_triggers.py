"""Triggers on what is no change of a record: forms, buttons, refreshes, failures, time entries."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from models.automation.action_runs.store import RunAction
from models.automation.actions.rules import CreateAction
from models.automation.actions.store import create_action
from models.automation.buttons import press_button
from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.base import Id
from models.data.forms.commands import Quota, Submitter, create_form, submit_form
from models.data.forms.shapes import SubmitForm
from models.messages.events.store import data_source_finished, time_entry_completed
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from runtime.errors import ValidationError
from runtime.ids import new_id
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.triggers import Listening

ANYBODY = Submitter(b"", Quota.of(0, 1), Quota.of(0, 1))


@pytest_asyncio.fixture
async def goods(engine: Engine) -> AsyncIterator[Listening]:
    yield await Listening.within(engine.database, engine.actor)


async def make_form(goods: Listening) -> Id:
    """The item of a public form that makes records in the database."""
    form_id = new_id()
    config = {
        "databaseId": str(goods.table),
        "public": True,
        "fields": [{"key": "title", "required": True}, {"key": "price"}],
    }
    async with goods.database.transaction() as work:
        item_id = await create_item_for(work, goods.actor, ItemKind.FORM, form_id, "A form")
        await create_form(work, goods.actor, item_id, config, form_id=form_id)
    return item_id


async def test_a_submission_starts_runs_of_triggers_on_its_form(goods: Listening) -> None:
    form_id, other_id = await make_form(goods), await make_form(goods)
    subscriber, other = [
        await goods.automation("form_submitted", at_database=False, formItemId=str(one))
        for one in (form_id, other_id)
    ]
    created = await goods.automation("record_created")
    async with goods.database.transaction() as work:
        answer = SubmitForm.model_validate({"data": {"title": "Hello", "price": 3}})
        submitted = await submit_form(work, form_id, answer, ANYBODY)
    (run,) = await goods.runs(subscriber)
    told = run.trigger_payload
    assert run.source == "form"
    assert told["record"]["data"] == {"title": "Hello", "price": 3}
    assert told["submission"]["id"] == str(submitted.submission_id)
    assert told["submission"]["formItemId"] == str(form_id)
    assert await goods.count(other) == 0
    (change,) = await goods.payloads(created)
    assert change["actor"]["type"] == "share_link"


async def test_a_refused_submission_starts_no_run(goods: Listening) -> None:
    form_id = await make_form(goods)
    subscriber = await goods.automation(
        "form_submitted", at_database=False, formItemId=str(form_id)
    )

    async def submit() -> None:
        async with goods.database.transaction() as work:
            answer = SubmitForm.model_validate({"data": {"price": 3}})
            await submit_form(work, form_id, answer, ANYBODY)

    with pytest.raises(ValidationError):
        await submit()
    assert await goods.count(subscriber) == 0


async def test_a_form_trigger_names_the_item_of_the_form(goods: Listening) -> None:
    subscriber = await goods.draft("form_submitted", at_database=False, viewId=str(uuid4()))
    with pytest.raises(ValidationError, match="formItemId"):
        await goods.publish(subscriber)


async def test_a_pressed_button_starts_runs_of_triggers_on_its_field(engine: Engine) -> None:
    body = CreateAction.model_validate_json(
        '{"label": "Go", "kind": "transform", "config": {"output": {}}}'
    )
    async with engine.database.transaction() as work:
        action = await create_action(work, engine.actor, body)
    settings = {"actionId": str(action.id)}
    buttons = [{"label": name, "kind": "button", "settings": settings} for name in ("Go", "Stop")]
    goods = await Listening.within(engine.database, engine.actor, *buttons)
    subscriber = await goods.automation("button_pressed", fieldKey="go")
    other = await goods.automation("button_pressed", fieldKey="stop")
    one = await goods.create("A")
    async with goods.database.transaction() as work:
        body_ = RunAction.model_validate({})
        await press_button(work, goods.actor, one.id, "go", new_id(), body_)
    (run,) = await goods.runs(subscriber)
    assert run.source == "button"
    assert run.trigger_payload["record"]["id"] == str(one.id)
    assert run.trigger_payload["user"]["id"] == str(goods.actor.user_id)
    assert await goods.count(other) == 0


@pytest.mark.parametrize(
    ("on", "heard"), [("any", ["s", "f"]), ("succeeded", ["s"]), ("failed", ["f"])]
)
async def test_a_finished_refresh_starts_runs_by_its_status(
    goods: Listening, source: Id, on: str, heard: list[str]
) -> None:
    subscriber = await goods.automation(
        "data_source_finished", at_database=False, dataSourceId=str(source), on=on
    )
    for name, status in (("s", "succeeded"), ("f", "failed")):
        run = {"id": str(uuid4()), "name": name, "status": status}
        for _ in range(2):
            async with goods.database.transaction() as work:
                await data_source_finished(work, goods.actor.workspace_id, source, run)
    async with goods.database.transaction() as work:
        run = {"id": str(uuid4()), "status": "succeeded"}
        await data_source_finished(work, goods.actor.workspace_id, new_id(), run)
    runs = await goods.runs(subscriber)
    # Runs that answer events in one transaction have no order.
    assert sorted(run.trigger_payload["run"]["name"] for run in runs) == sorted(heard)
    assert {run.source for run in runs} == {"data_source"}


@pytest_asyncio.fixture
async def source(goods: Listening) -> Id:
    """A data source of the workspace."""
    body = CreateDataSource.model_validate(
        {
            "label": "Prices",
            "kind": "http_json",
            "config": {"url": "https://example.com/prices.json"},
            "targetDatabaseId": str(goods.table),
        }
    )
    async with goods.database.transaction() as work:
        return (await create_data_source(work, goods.actor, body)).id


@pytest.mark.long
@pytest.mark.parametrize(
    ("config", "heard"),
    [
        ({}, ["record", "item"]),
        ({"targetKind": "item"}, ["item"]),
        ({"targetKind": "database_record"}, ["record"]),
    ],
    ids=["any", "items", "records"],
)
async def test_a_completed_time_entry_starts_runs_by_its_target(
    goods: Listening, config: dict[str, Any], heard: list[str]
) -> None:
    subscriber = await goods.automation("time_entry_completed", at_database=False, **config)
    here = await goods.automation("time_entry_completed")
    workspace_id = goods.actor.workspace_id
    record = {"id": str(new_id()), "summary": "record", "targetKind": "database_record"}
    item = {"id": str(new_id()), "summary": "item", "targetKind": "item"}
    async with goods.database.transaction() as work:
        await time_entry_completed(work, workspace_id, record, goods.table)
    async with goods.database.transaction() as work:
        await time_entry_completed(work, workspace_id, item)
        await time_entry_completed(work, workspace_id, item)
    told = await goods.payloads(subscriber)
    assert sorted(each["entry"]["summary"] for each in told) == sorted(heard)
    assert [each["entry"]["summary"] for each in await goods.payloads(here)] == ["record"]
    await goods.change(subscriber, enabled=False)


@pytest.mark.long
async def test_failures_are_heard_but_not_those_of_their_handlers(goods: Listening) -> None:
    failing = graph(node("end", "stop", result="failed", message="no"))
    broken = await goods.automation("record_created", failing, filter="record.title == 'A'")
    named = {"automationIds": [str(broken).upper()]}
    handler = await goods.automation("automation_failed", failing, at_database=False, **named)
    other = await goods.automation(
        "automation_failed", at_database=False, automationIds=[str(handler)]
    )
    await goods.create("A")

    async def handled() -> bool:
        return await goods.count(handler) > 0

    await eventually(handled, what="the run that handles the failure")
    await goods.quiet()
    (failed,) = await goods.runs(broken)
    (run,) = await goods.runs(handler)
    assert (run.source, run.chain, run.status) == ("failure", [failed.id], "failed")
    assert run.trigger_payload["runId"] == str(failed.id)
    assert await goods.count(other) == 0
