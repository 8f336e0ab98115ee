"""Incidents in a terminal, as a person types the commands against a server that listens."""

import json
from pathlib import Path

import pytest

from cli.api_client import ApiClient
from cli.client.output import list_of
from runtime.configuration.settings import Settings
from tests.cli.client.test_runs import Shell
from tests.support.ageing import make_automation
from tests.support.incidents import failed_run, grouped, incident_of
from tests.support.server import serving
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=40)


@pytest.mark.long
async def test_incidents_are_listed_changed_closed_and_reopened(
    space: Space, settings: Settings, tmp_path: Path
) -> None:
    run_id = await failed_run(space, await make_automation(space), "It \x1b[31mfell.")
    await grouped(space.database)
    incident_id = str((await incident_of(space.database, run_id)).id)
    shell = Shell(tmp_path)
    async with serving(settings) as server:
        add = ("profile", "add", "here", "--url", server.url)
        assert (await shell.run(*add, typed=f"{space.token}\n")).code == 0
        listed = await shell.run("incidents", "list", "--state", "open")
        assert listed.code == 0, listed.err
        assert listed.out.split("\t")[:4] == [incident_id, "open", "Old", "1"]
        assert "\x1b" not in listed.out
        changes: list[tuple[str, ...]] = [
            ("mute",),
            ("note", "Known."),
            ("assign", str(space.user_id)),
            ("close",),
        ]
        for words in changes:
            done = await shell.run("incidents", words[0], incident_id, *words[1:])
            assert done.code == 0, done.err
        shown = (await shell.run("incidents", "show", incident_id, "--json")).json
        assert (shown["state"], shown["note"], shown["muted"]) == ("closed", "Known.", True)
        email = space.email.upper()
        by_mail = await shell.run("incidents", "assign", incident_id, email, "--json")
        assert by_mail.json["assigneeUserId"] == str(space.user_id)
        unknown = await shell.run("incidents", "assign", incident_id, "eve@example.com")
        assert (unknown.code, "No member with the email eve@example.com" in unknown.err) == (
            3,
            True,
        )
        reopened = await shell.run("incidents", "reopen", incident_id, "--json")
        assert reopened.json["state"] == "muted"
        records = await shell.run("incidents", "records", incident_id, "--json")
        assert records.json["records"] == []
        page = await shell.run("incidents", "open", incident_id)
        assert page.out.strip().endswith(f"/workspaces/{space.id}/incidents/{incident_id}")
        assert len((await shell.run("incidents", "retry", incident_id)).out.strip()) == 36
        refused = await shell.run("incidents", "show", str(space.id))
        assert (refused.code, refused.out) == (3, "")


@pytest.mark.long
async def test_an_incident_is_followed_until_it_is_closed(
    space: Space, settings: Settings, tmp_path: Path
) -> None:
    version = await make_automation(space)
    run_id = await failed_run(space, version, "It fell.")
    await grouped(space.database)
    incident_id = str((await incident_of(space.database, run_id)).id)
    shell = Shell(tmp_path)
    async with serving(settings) as server:
        add = ("profile", "add", "here", "--url", server.url)
        assert (await shell.run(*add, typed=f"{space.token}\n")).code == 0
        watching = await shell.start("incidents", "watch", incident_id, "--json")
        assert watching.stdout is not None
        assert json.loads(await watching.stdout.readline())["state"] == "open"
        assert (await shell.run("incidents", "note", incident_id, "Known.")).code == 0
        assert json.loads(await watching.stdout.readline())["note"] == "Known."
        assert (await shell.run("incidents", "close", incident_id)).code == 0
        assert json.loads(await watching.stdout.readline())["state"] == "closed"
        assert await watching.wait() == 0


@pytest.mark.long
async def test_lists_continue_behind_their_first_page(
    space: Space, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.client.output.PAGE", 2)
    for _ in range(5):
        await failed_run(space, await make_automation(space), "It fell.")
    await grouped(space.database)
    async with (
        serving(settings) as server,
        ApiClient(server.url, space.token, str(space.id)) as client,
    ):
        for limit, count, more in ((3, 3, True), (100, 5, False)):
            path = f"{client.workspace}/incidents"
            listed = await list_of(client, path, "incidents", {}, limit)
            ids = {one["id"] for one in listed["incidents"]}
            assert len(ids) == len(listed["incidents"]) == count
            assert (listed["cursor"] is not None) == more
