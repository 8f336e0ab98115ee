"""Forms of alert rules, without scripts: made, changed, tried, disabled, deleted."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.automation.alert_rules.shapes import AlertKind
from models.core.access.rules import Role
from tests.support.automations import publish, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

FAILURES = {"kind": "failures", "condition.runs": "5", "condition.minutes": "10"}


async def rules(client: Client, space: Space) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = read(await client.get(f"{space.path}/alert-rules"))["alertRules"]
    return listed


async def test_a_rule_is_made_and_changed(client: Client, owner: Visitor, space: Space) -> None:
    made = await publish(client, space, label="Orders")
    place = f"/workspaces/{space.id}/alert-rules"
    kinds = (await owner.get(f"{place}/new")).text
    assert all(f"{place}/new?kind={kind.value}" in kinds for kind in AlertKind)
    form = (await owner.get(f"{place}/new?kind=failures")).text
    assert f'value="{made["id"]}"' in form
    query = {"condition.query.automationId": made["id"], "condition.query.errorCode": "timeout"}
    recipient = {f"recipient.{space.user_id}": "on"}
    sent: dict[str, Any] = {
        "label": "<b>Orders</b> fail",
        **FAILURES,
        **query,
        **recipient,
        "repeatMinutes": "60",
    }
    answer = await owner.send_form(place, **sent)
    assert answer.status_code == 303, answer.text
    (rule,) = await rules(client, space)
    assert answer.headers["location"] == f"{place}/{rule['id']}"
    assert rule["condition"] == {
        "kind": "failures",
        "runs": 5,
        "minutes": 10,
        "query": {"automationId": made["id"], "errorCode": "timeout"},
    }
    assert (rule["recipientUserIds"], rule["repeatMinutes"]) == ([str(space.user_id)], 60)
    own = f"{place}/{rule['id']}"
    assert "&lt;b&gt;Orders&lt;/b&gt; fail" in (await owner.get(own)).text
    assert 'value="timeout"' in (await owner.get(f"{own}/edit")).text
    changed: dict[str, Any] = {
        **sent,
        "condition.runs": "7",
        "condition.query.errorCode": "",
        "repeatMinutes": "",
    }
    assert (await owner.send_form(f"{own}/edit", **changed)).status_code == 303
    (rule,) = await rules(client, space)
    assert rule["condition"]["runs"] == 7
    assert rule["condition"]["query"] == {"automationId": made["id"]}
    assert "repeatMinutes" not in rule


async def test_a_rule_is_tried_disabled_enabled_and_deleted(
    client: Client, owner: Visitor, space: Space
) -> None:
    body = {"label": "Fails", "condition": {"kind": "failures", "runs": 5, "minutes": 10}}
    rule = read(await client.post(f"{space.path}/alert-rules", json=body), 201)
    own = f"/workspaces/{space.id}/alert-rules/{rule['id']}"
    tried = await owner.send_form(f"{own}/test")
    assert tried.status_code == 200
    assert "Would not trigger now" in tried.text
    for action, enabled in (("disable", False), ("enable", True)):
        assert (await owner.send_form(f"{own}/{action}")).status_code == 303
        assert (await rules(client, space))[0]["enabled"] == enabled
    await owner.send_form(f"{own}/delete")
    assert await rules(client, space) == []


async def test_filters_that_the_form_has_not_stay(
    client: Client, owner: Visitor, space: Space
) -> None:
    condition = {"kind": "duration", "minutes": 5, "query": {"attribute": "region:north"}}
    body = {"label": "Slow", "condition": condition}
    rule = read(await client.post(f"{space.path}/alert-rules", json=body), 201)
    own = f"/workspaces/{space.id}/alert-rules/{rule['id']}"
    sent: dict[str, Any] = {"kind": "duration", "label": "Slow", "condition.minutes": "9"}
    assert (await owner.send_form(f"{own}/edit", **sent)).status_code == 303
    ((changed),) = await rules(client, space)
    assert changed["condition"] == {**condition, "minutes": 9}


@pytest.mark.parametrize("kind", AlertKind)
async def test_each_error_is_shown_beside_its_field(
    owner: Visitor, space: Space, kind: AlertKind
) -> None:
    place = f"/workspaces/{space.id}/alert-rules"
    sent: dict[str, Any] = {"kind": kind.value, "label": "Ours <", "condition.minutes": "often"}
    answer = await owner.send_form(place, **sent)
    assert answer.status_code == 400
    assert 'aria-describedby="h-condition.minutes"' in answer.text
    assert 'value="often"' in answer.text
    assert 'value="Ours &lt;"' in answer.text


async def test_a_viewer_reads_rules_and_makes_none(
    app: FastAPI, client: Client, space: Space
) -> None:
    condition = {"kind": "worker_gone", "minutes": 5}
    body = {"label": "Gone", "condition": condition}
    rule = read(await client.post(f"{space.path}/alert-rules", json=body), 201)
    place = f"/workspaces/{space.id}/alert-rules"
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(f"{place}/{rule['id']}")).text
        assert "Gone" in page
        assert "/delete" not in page
        assert "/new" not in (await viewer.get(place)).text
        for path in (f"{place}/new", f"{place}/{rule['id']}/edit"):
            assert (await viewer.get(path)).status_code in {403, 404}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"kind": "failures", "runs": 1, "minutes": 15}, "1 failure in 15 minutes"),
        ({"kind": "duration", "minutes": 1}, "Open for more than 1 minute"),
        ({"kind": "queue_age", "minutes": 5}, "Queued for more than 5 minutes"),
        ({"kind": "worker_gone", "minutes": 5}, "For 5 minutes"),
    ],
)
async def test_a_condition_is_shown_in_words(
    client: Client, owner: Visitor, space: Space, condition: dict[str, Any], words: str
) -> None:
    body = {"label": "Watched", "condition": condition}
    rule = read(await client.post(f"{space.path}/alert-rules", json=body), 201)
    place = f"/workspaces/{space.id}/alert-rules"
    for path in (place, f"{place}/{rule['id']}"):
        assert words in (await owner.get(path)).text


async def test_a_rule_about_one_automation_leads_to_it(
    client: Client, owner: Visitor, space: Space
) -> None:
    made = await publish(client, space, label="Orders")
    condition = {"kind": "silence", "minutes": 60, "query": {"automationId": made["id"]}}
    body = {"label": "Quiet", "condition": condition}
    rule = read(await client.post(f"{space.path}/alert-rules", json=body), 201)
    page = (await owner.get(f"/workspaces/{space.id}/alert-rules/{rule['id']}")).text
    assert "No finished run for 60 minutes" in page
    assert f'href="/workspaces/{space.id}/automations/{made["id"]}"' in page
