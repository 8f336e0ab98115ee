"""Edits and copies of definitions beside a rename or a deletion of the field that they name.

Each test leaves the transaction of an edit open, and changes the field over HTTP meanwhile.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from models.automation.actions.rules import UpdateAction
from models.automation.actions.store import update_action
from models.content.items.commands import check_parent
from models.content.items.rules import ItemKind
from models.content.surfaces.blocks import update_block
from models.content.surfaces.shapes import UpdateBlock
from models.core.access.rules import Actor
from models.data.databases.shapes import CreateDatabase, RenameField
from models.data.databases.store import create_database
from models.data.forms.commands import update_form
from models.data.forms.shapes import UpdateForm
from models.data.record_templates import UpdateRecordTemplate, update_template
from models.data.views.commands import update_view
from models.data.views.shapes import UpdateView
from models.sources.data_sources.commands import update_data_source
from models.sources.data_sources.queries import UpdateDataSource
from models.workspace.impact.fields import rename_field
from models.workspace.targets.duplication import duplicate_item
from models.workspace.targets.items import create_item
from models.workspace.targets.shapes import CreateItem
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import make, read
from tests.support.patience import eventually
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=20)

Json = dict[str, Any]
PRICE = {"label": "Price", "kind": "number"}
DATA = {"price": {"type": "literal", "value": 1}}
MAPPING = {"sourcePath": "$.p", "fieldKey": "price", "label": "Price", "kind": "number"}
FILTER = {"field": "price", "op": "gt", "value": 5}


class Setting:
    """A database with a field `price`, and one definition of each kind; `named` name the field."""

    def __init__(self, client: Client, space: Space, database: Database, made: Json) -> None:
        self.client = client
        self.space = space
        self.database = database
        self.table = UUID(made["id"])
        self.field_id = next(one["id"] for one in made["fields"] if one["key"] == "price")

    @property
    def actor(self) -> Actor:
        return self.space.actor

    async def post(self, path: str, body: Json, status: int = 201) -> Json:
        made: Json = read(await self.client.post(path, json=body), status)
        return made

    async def rename(self) -> None:
        path = f"/v1/databases/{self.table}/fields/{self.field_id}/rename"
        await self.post(path, {"key": "cost", "rewrite": True}, 200)

    async def action(self, *, named: bool) -> Json:
        config = {"databaseId": str(self.table), "data": DATA if named else {}}
        body = {"label": "Add", "kind": "create_record", "config": config}
        return await self.post(f"{self.space.path}/actions", body)

    async def source(self, *, named: bool) -> Json:
        body = {
            "label": "Rows",
            "kind": "http_json",
            "config": {"url": "https://example.test/rows"},
            "targetDatabaseId": str(self.table),
            "fields": [MAPPING] if named else [],
        }
        return await self.post(f"{self.space.path}/data-sources", body)

    async def form(self, *, named: bool) -> Json:
        fields = [{"key": "price"}] if named else [{"key": "title"}]
        body = {"label": "Order", "databaseId": str(self.table), "fields": fields}
        return await self.post(f"{self.space.path}/forms", body)

    async def dashboard(self, *, named: bool) -> Json:
        made = await make(self.client, "dashboard", "Figures")
        path = f"/v1/surfaces/{made['item']['targetId']}"
        added = await self.post(f"{path}/blocks", {"blocks": [self.chart(named=named)]})
        return {**made["item"], "blockId": added["blocks"][0]["id"]}

    def chart(self, *, named: bool) -> Json:
        aggregate = {"op": "sum", "field": "price"} if named else {"op": "count"}
        content = {"databaseId": str(self.table), "type": "bar", "xFieldKey": "title"}
        place = {"x": 0, "y": 0, "w": 4, "h": 3}
        return {"kind": "chart", "content": {**content, "aggregate": aggregate}, **place}

    async def view(self, *, named: bool) -> Json:
        manifest = {"filter": FILTER} if named else {}
        path = f"/v1/databases/{self.table}/views"
        return await self.post(path, {"label": "Cheap", "manifest": manifest})

    async def template(self, *, named: bool) -> Json:
        path = f"/v1/databases/{self.table}/record-templates"
        return await self.post(path, {"label": "Usual", "data": {"price": 1} if named else {}})


@pytest.fixture
async def setting(client: Client, space: Space, database: Database) -> Setting:
    body = {"label": "Orders", "fields": [PRICE]}
    made = read(await client.post(f"{space.path}/databases", json=body), 201)
    return Setting(client, space, database, made)


Edit = Callable[[UnitOfWork], Awaitable[Any]]
"""Writes a definition that names the field, in a transaction that stays open."""


async def edit_action(at: Setting) -> tuple[Edit, str]:
    made = await at.action(named=False)
    config = {"databaseId": str(at.table), "data": DATA}
    body = UpdateAction.model_validate({"config": config})
    path = f"{at.space.path}/actions/{made['id']}"
    return lambda work: update_action(work, at.actor, UUID(made["id"]), body), path


async def edit_source(at: Setting) -> tuple[Edit, str]:
    made = await at.source(named=False)
    body = UpdateDataSource.model_validate({"fields": [MAPPING]})
    path = f"{at.space.path}/data-sources/{made['id']}"
    return lambda work: update_data_source(work, at.actor, UUID(made["id"]), body), path


async def edit_form(at: Setting) -> tuple[Edit, str]:
    made = await at.form(named=False)
    body = UpdateForm.model_validate({"fields": [{"key": "price"}]})
    path = f"{at.space.path}/forms/{made['id']}"
    return lambda work: update_form(work, at.actor, UUID(made["id"]), body), path


async def edit_dashboard(at: Setting) -> tuple[Edit, str]:
    made = await at.dashboard(named=False)
    body = UpdateBlock.model_validate({"content": at.chart(named=True)["content"]})
    ids = (UUID(made["targetId"]), UUID(made["blockId"]))
    path = f"/v1/surfaces/{made['targetId']}"
    return lambda work: update_block(work, at.actor, *ids, body), path


async def edit_view(at: Setting) -> tuple[Edit, str]:
    made = await at.view(named=False)
    body = UpdateView.model_validate({"manifest": {"filter": FILTER}})
    path = f"/v1/databases/{at.table}/views"
    return lambda work: update_view(work, at.actor, at.table, UUID(made["id"]), body), path


async def edit_template(at: Setting) -> tuple[Edit, str]:
    made = await at.template(named=False)
    body = UpdateRecordTemplate.model_validate({"data": {"price": 2}})
    path = f"/v1/databases/{at.table}/record-templates"
    return lambda work: update_template(work, at.actor, at.table, UUID(made["id"]), body), path


EDITS = [edit_action, edit_source, edit_form, edit_dashboard, edit_view, edit_template]


async def begun(database: Database, task: "asyncio.Task[Any]", work: UnitOfWork) -> None:
    """Return once a task waits for this transaction, or is done."""
    pid = await work.scalar(text("SELECT pg_backend_pid()"))

    async def waits() -> bool:
        query = text(
            "SELECT count(*) FROM pg_stat_activity WHERE :pid = ANY(pg_blocking_pids(pid))"
        )
        async with database.transaction() as other:
            return task.done() or bool(await other.scalar(query, {"pid": pid}))

    await eventually(waits, what="the wait for a lock")


@pytest.mark.parametrize("edit", EDITS)
async def test_an_edit_beside_a_rename_gets_the_new_key(setting: Setting, edit: Any) -> None:
    write, path = await edit(setting)
    async with setting.database.transaction() as work:
        await write(work)
        renaming = asyncio.create_task(setting.rename())
        await begun(setting.database, renaming, work)
        await work.commit()
        await renaming
        await work.begin()
    kept = json.dumps(read(await setting.client.get(path)))
    assert '"cost"' in kept
    assert '"price"' not in kept


@pytest.mark.parametrize("edit", [edit_action, edit_source, edit_dashboard])
async def test_an_edit_beside_a_deletion_keeps_the_field(setting: Setting, edit: Any) -> None:
    write, path = await edit(setting)
    field = f"/v1/databases/{setting.table}/fields/{setting.field_id}"
    async with setting.database.transaction() as work:
        await write(work)
        deleting = asyncio.create_task(setting.client.delete(field))
        await begun(setting.database, deleting, work)
        await work.commit()
        refused = await deleting
        await work.begin()
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use")
    assert '"price"' in json.dumps(read(await setting.client.get(path)))


async def rename_within(at: Setting, work: UnitOfWork) -> None:
    body = RenameField(key="cost", rewrite=True)
    await rename_field(work, at.actor, at.table, UUID(at.field_id), body)


COPIED = ["action", "source", "form", "dashboard"]


@pytest.mark.parametrize("kind", COPIED)
async def test_a_copy_beside_a_rename_gets_the_new_key(
    setting: Setting, kind: str, keys: KeyRing
) -> None:
    """The copy begins while the rename is about to end."""
    made = await getattr(setting, kind)(named=True)
    item_id = made["id"] if kind == "dashboard" else made["itemId"]

    async def copy() -> Any:
        async with setting.database.transaction() as work:
            return await duplicate_item(work, setting.actor, keys, UUID(item_id), new_id())

    async with setting.database.transaction() as work:
        await rename_within(setting, work)
        copying = asyncio.create_task(copy())
        await begun(setting.database, copying, work)
        await work.commit()
        copied = await copying
        await work.begin()
    paths = {
        "action": f"{setting.space.path}/actions/",
        "source": f"{setting.space.path}/data-sources/",
        "form": f"{setting.space.path}/forms/",
        "dashboard": "/v1/surfaces/",
    }
    kept = json.dumps(read(await setting.client.get(f"{paths[kind]}{copied.target_id}")))
    assert '"cost"' in kept
    assert '"price"' not in kept


def new_item(at: Setting, kind: ItemKind) -> CreateItem:
    table = str(at.table)
    configs: dict[ItemKind, Json] = {
        ItemKind.FORM: {"databaseId": table, "fields": [{"key": "title"}]},
        ItemKind.ACTION: {"kind": "create_record", "config": {"databaseId": table, "data": {}}},
        ItemKind.AUTOMATION: {"graph": {"nodes": [{"id": "t", "kind": "transform", "config": {}}]}},
        ItemKind.DATA_SOURCE: {
            "kind": "http_json",
            "config": {"url": "https://example.test/rows"},
            "targetDatabaseId": table,
        },
    }
    return CreateItem.model_validate({"kind": kind, "title": "New", "config": configs[kind]})


@pytest.mark.parametrize(
    "kind", [ItemKind.FORM, ItemKind.ACTION, ItemKind.AUTOMATION, ItemKind.DATA_SOURCE]
)
async def test_an_item_is_created_beside_a_rename(
    setting: Setting, keys: KeyRing, kind: ItemKind
) -> None:
    """The tree is held before the keys of the fields, which the rename holds by then."""
    async with setting.database.transaction() as work:
        await check_parent(work, setting.actor, None)
        renaming = asyncio.create_task(setting.rename())
        await begun(setting.database, renaming, work)
        await create_item(work, setting.actor, keys, new_item(setting, kind))
        await work.commit()
        await renaming
        await work.begin()


async def test_two_databases_with_relations_are_created_at_once(setting: Setting) -> None:
    relation = {
        "label": "Order",
        "kind": "relation",
        "settings": {"databaseId": str(setting.table)},
    }

    async def create(label: str) -> None:
        body = CreateDatabase.model_validate({"label": label, "fields": [relation]})
        async with setting.database.transaction() as work:
            await create_database(work, setting.actor, body)

    async with setting.database.transaction() as work:
        await check_parent(work, setting.actor, None)
        other = asyncio.create_task(create("One"))
        await begun(setting.database, other, work)
        body = CreateDatabase.model_validate({"label": "Two", "fields": [relation]})
        await create_database(work, setting.actor, body)
        await work.commit()
        await other
        await work.begin()


async def test_a_dashboard_read_before_a_rename_is_not_saved_over_it(setting: Setting) -> None:
    made = await setting.dashboard(named=True)
    path = f"/v1/surfaces/{made['targetId']}"
    version = read(await setting.client.get(path))["version"]
    await setting.rename()
    body = {"settings": {}, "blocks": [setting.chart(named=True)], "expectedVersion": version}
    answer = await setting.client.put(path, json=body)
    assert answer.status_code == 409, answer.text
