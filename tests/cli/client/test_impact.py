"""Impact, dry runs and undoes in a terminal: what a change would do, before and after it."""

from pathlib import Path

import pytest

from runtime.configuration.settings import Settings
from tests.cli.client.test_runs import Shell
from tests.support import related
from tests.support.automations import read
from tests.support.client import Client
from tests.support.server import serving
from tests.support.spaces import Space
from tests.support.undos import automation_to_undo, updated

pytestmark = [pytest.mark.takes(seconds=40), pytest.mark.long]


async def test_a_change_is_explained_before_it_is_made_and_undone(
    client: Client, space: Space, settings: Settings, tmp_path: Path
) -> None:
    tasks = await related.make_database(client, space, "Tasks", {"label": "State", "kind": "text"})
    fields = read(await client.get(f"{space.path}/databases/{tasks}"))["fields"]
    field = next(one for one in fields if one["key"] == "state")
    view = {
        "label": "Ask",
        "kind": "table",
        "manifest": {"filter": {"field": "state", "op": "eq", "value": "x"}},
    }
    read(await client.post(f"/v1/databases/{tasks}/views", json=view), 201)
    record = await related.add(client, tasks, "one", data={"state": "before"})
    automation = await automation_to_undo(client, space)
    run = await automation.run(updated(record, data={"state": "after"}))
    shell = Shell(tmp_path)
    async with serving(settings) as server:
        add = ("profile", "add", "here", "--url", server.url)
        assert (await shell.run(*add, typed=f"{space.token}\n")).code == 0
        named = await shell.run("impact", "field", field["id"], "--json")
        assert named.json["total"] >= 1
        assert named.code == (1 if named.json["breaking"] else 0)
        listed = await shell.run("impact", "field", field["id"], "--change", "rename")
        assert "places" in listed.out, listed.err
        assert (await shell.run("impact", "secret", "--key", "none")).code == 3
        tried = await shell.run("runs", "cancel", run, "--dry-run")
        assert (tried.code, "Nothing was changed" in tried.out) == (0, True), tried.err
        preview = await shell.run("runs", "undo", run, "--preview", "--json")
        assert (preview.json["status"], preview.json["reverted"]) == ("preview", 1)
        assert (await related.get(client, record))["data"]["state"] == "after"
        undone = await shell.run("runs", "undo", run)
        assert undone.code == 0, undone.err
        assert (await related.get(client, record))["data"]["state"] == "before"
        redone = await shell.run("runs", "undo", run, "--json")
        assert redone.json["reverted"] == 0
