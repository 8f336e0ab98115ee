"""Browsing and reading connections, from the request to the provider and back."""

from typing import Any

import pytest
from sqlalchemy import func, select

from models.core.access.rules import Role
from models.messages.jobs.store import job
from models.sources.provider_calls import resource_mirror
from tests.support.client import Client
from tests.workflows.integrations.conftest import Demo

pytestmark = pytest.mark.takes(seconds=20)


def code(answer: Any) -> str:
    return str(answer.json()["error"])


async def calls_of(demo: Demo) -> int:
    async with demo.space.database.transaction() as work:
        counted = select(func.count()).where(job.c.workspace_id == demo.space.id)
        return int(await work.scalar(counted))


async def test_pages_follow_each_other_and_cursors_stay_with_their_listing(demo: Demo) -> None:
    names, cursor = list[str](), None
    while True:
        more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        page = (await demo.browse(limit=3, **more)).json()["data"]
        names += [one["externalId"] for one in page["resources"]]
        cursor = page["cursor"]
        if cursor is None:
            break
        assert len(page["resources"]) == 3
        elsewhere = await demo.browse(limit=3, parentExternalId="finance", cursor=cursor)
        assert (elsewhere.status_code, code(elsewhere)) == (400, "validation_error")
    assert len(set(names)) == len(names) > 3
    whole = (await demo.browse(limit=100_000)).json()["data"]
    assert [one["externalId"] for one in whole["resources"]] == names
    assert await calls_of(demo) == 0


async def test_a_page_is_served_again_without_asking_until_anything_changed(demo: Demo) -> None:
    first = (await demo.browse(parentExternalId="handbook")).json()["data"]
    assert (await demo.browse(parentExternalId="handbook")).json()["data"] == first
    await demo.becomes(vanished=["welcome"])
    later = (await demo.browse(parentExternalId="handbook")).json()["data"]
    shown = {one["externalId"] for one in later["resources"]}
    assert shown == {one["externalId"] for one in first["resources"]} - {"welcome"}


async def test_a_revoked_right_ends_what_the_mirror_serves(demo: Demo) -> None:
    space, owner = demo.space, demo.client
    path = f"{space.path}/integrations/connections/{demo.id}"
    await owner.patch(path, json={"shared": True})
    _, token = await space.member(Role.EDITOR)
    other = Demo(owner.with_token(token), space, demo.id)
    assert (await other.browse()).status_code == 200
    assert (await other.does("read", "welcome"))["format"] == "markdown"
    await owner.patch(path, json={"shared": False})
    assert (await other.browse()).status_code == 404
    assert (await other.call("read", "welcome")).status_code == 404
    assert (await demo.browse()).status_code == 200


@pytest.mark.long
async def test_the_provider_is_asked_for_permission_before_a_content_is_served(demo: Demo) -> None:
    first = await demo.does("read", "welcome")
    assert (first["format"], first["readOnly"], first["revision"]) == ("markdown", True, "1")
    assert await demo.does("read", "welcome") == first
    async with demo.space.database.transaction() as work:
        kept = select(func.count()).where(resource_mirror.c.workspace_id == demo.space.id)
        assert await work.scalar(kept) == 1
    await demo.becomes(denied=["welcome"])
    refused = await demo.call("read", "welcome")
    assert (refused.status_code, code(refused)) == (403, "denied")
    await demo.becomes(vanished=["welcome"])
    assert (await demo.call("read", "welcome")).status_code == 404


@pytest.mark.parametrize(
    ("external_id", "shown"),
    [("travel", "html"), ("prices", "csv"), ("rates", "json"), ("logo", "link")],
)
async def test_a_content_has_its_format(demo: Demo, external_id: str, shown: str) -> None:
    found = await demo.does("read", external_id)
    assert found["format"] == shown
    assert (found["content"] is None) is (shown == "link")
    assert found["fallbackUrl"].startswith("https://")


async def test_a_provider_that_is_switched_off_is_asked_nothing(demo: Demo) -> None:
    switch = f"{demo.space.path}/integrations/providers/demo"
    assert (await demo.client.put(switch, json={"enabled": False})).status_code == 200
    for answer in (
        await demo.browse(),
        await demo.call("read", "welcome"),
        await demo.call("mount", "welcome"),
        await demo.call("import", "welcome"),
        await demo.call("import-form", "survey"),
    ):
        assert (answer.status_code, code(answer)) == (403, "denied")
        assert '"provider:demo"' in answer.json()["message"]
    assert (await demo.client.put(switch, json={"enabled": True})).json()["data"]["enabled"]
    assert (await demo.browse()).status_code == 200


async def test_a_provider_without_an_adapter_cannot_be_browsed(demo: Demo, client: Client) -> None:
    body = {
        "provider": "postgresql",
        "label": "Shop",
        "config": {"host": "db.example.com", "database": "shop", "user": "reader"},
        "credentials": {"password": "x"},
    }
    path = f"{demo.space.path}/integrations/connections"
    made = (await client.post(path, json=body)).json()["data"]
    answer = await Demo(client, demo.space, made["id"]).browse()
    assert (answer.status_code, code(answer)) == (400, "invalid")


@pytest.mark.parametrize("external_id", ["a\x00b", "", 7, "x" * 1_001])
async def test_an_identifier_that_is_none_is_refused(demo: Demo, external_id: Any) -> None:
    answer = await demo.call("read", external_id)
    assert (answer.status_code, code(answer)) == (400, "validation_error")


async def test_a_hostile_identifier_finds_nothing(demo: Demo) -> None:
    for external_id in ("../../etc/passwd", "\u202egnp", "' OR 1=1 --"):
        assert (await demo.call("read", external_id)).status_code == 404


async def test_a_connection_is_tested(demo: Demo) -> None:
    path = f"{demo.space.path}/integrations/connections/{demo.id}/test"
    answer = (await demo.client.post(path)).json()["data"]
    assert answer["ok"] is True
