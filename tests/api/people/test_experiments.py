"""Experiments, segments, assignments and events through the API (interface.md#experiments)."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role
from models.people.experiments.commands import purge_units
from runtime.clock import utc_now, wire_timestamp
from tests.support.admins import admin_session
from tests.support.client import Client
from tests.support.spaces import MakeSpace, Space

PATH = "/v1/admin/experiments"
SEGMENTS = "/v1/admin/audience-segments"
HALVES = [{"id": "a", "label": "As it is", "split": 50}, {"id": "b", "label": "New", "split": 50}]
Json = dict[str, Any]


@pytest.fixture
def admin(client: Client, issuer: DevelopmentIssuer) -> Client:
    """A platform administrator."""
    return client.with_token(admin_session(issuer))


def described(**changes: Any) -> Json:
    """The body of a new experiment, whose keys are its own."""
    body = {
        "name": "Short form",
        "targetType": "flag",
        "flagKey": f"flag-{uuid.uuid4().hex}",
        "primaryMetric": "signed_up",
        "guardrailMetric": "form_failed",
        "variants": HALVES,
    }
    return {name: value for name, value in {**body, **changes}.items() if value is not None}


async def create(admin: Client, **changes: Any) -> Json:
    answer = await admin.post(PATH, json=described(**changes))
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()["data"]
    return made


async def change(admin: Client, made: Json, **changes: Any) -> Json:
    answer = await admin.patch(f"{PATH}/{made['id']}", json=changes)
    assert answer.status_code == 200, answer.text
    changed: Json = answer.json()["data"]
    return changed


async def running(admin: Client, **changes: Any) -> Json:
    made = await create(admin, status="scheduled", **changes)
    return await change(admin, made, status="running")


async def refused(admin: Client, made: Json, expected: int, **changes: Any) -> str:
    answer = await admin.patch(f"{PATH}/{made['id']}", json=changes)
    assert answer.status_code == expected, answer.text
    return answer.text


async def assigned(client: Client, made: Json, **changes: Any) -> str | None:
    """The id of the caller's variant."""
    body = {"flagKeys": [made["flagKey"]], **changes}
    answer = await client.post("/v1/experiments/assign", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()["data"]["assignments"]
    assert len(found) <= 1
    return found[0]["variantId"] if found else None


async def happened(client: Client, made: Json, *events: str, **changes: Any) -> Json:
    body = {"events": [{"flagKey": made["flagKey"], "event": one} for one in events], **changes}
    answer = await client.post("/v1/experiments/events", json=body)
    assert answer.status_code == 200, answer.text
    counted: Json = answer.json()["data"]
    return counted


def reasons(counted: Json) -> list[str | None]:
    """Why each event was not counted, None for one that was."""
    assert [one["recorded"] for one in counted["results"]].count(True) == counted["recorded"]
    return [one.get("reason") for one in counted["results"]]


async def test_an_experiment_is_created_read_and_listed(admin: Client) -> None:
    made = await create(admin, hypothesis="Less is more.")
    assert made["status"] == "draft"
    assert (made["audience"], made["assignmentUnit"], made["allocation"]) == ("all", "user", 100)
    assert made["variants"][0] == {
        **HALVES[0],
        "exposures": 0,
        "conversionRate": 0,
        "errorRate": 0,
    }
    assert "startedAt" not in made
    assert (await admin.get(f"{PATH}/{made['id']}")).json()["data"] == made
    listed = (await admin.get(PATH, params={"limit": "1"})).json()["data"]
    assert listed["experiments"] == [made]


async def test_variants_without_an_id_get_one_of_their_label(admin: Client) -> None:
    variants = [{"label": "New form", "split": 60}, {"label": "New form", "split": 40}]
    made = await create(admin, variants=variants)
    assert [one["id"] for one in made["variants"]] == ["new_form", "new_form_2"]


@pytest.mark.parametrize(
    "changes",
    [
        {"variants": HALVES[:1]},
        {"variants": []},
        {"variants": [HALVES[0], HALVES[0]]},
        {"variants": [HALVES[0], {**HALVES[1], "split": 49}]},
        {"variants": [HALVES[0], {**HALVES[1], "exposures": 5}]},
        {"variants": [{"id": str(n), "label": "x", "split": 100 / 11} for n in range(11)]},
        {"allocation": 101},
        {"allocation": -1},
        {"allocation": "50"},
        {"audience": "nobody"},
        {"targetType": "button"},
        {"flagKey": None},
        {"status": "running"},
        {"winner": "c"},
        {"name": ""},
        {"useCount": 1},
        {"startedAt": "2030-01-02T00:00:00Z", "endsAt": "2030-01-01T00:00:00Z"},
        {"targetType": "automation_version", "targetKey": "mine"},
        {"targetType": "automation_version", "targetKey": str(uuid.uuid4())},
    ],
)
async def test_an_invalid_experiment_is_refused(admin: Client, changes: Json) -> None:
    answer = await admin.post(PATH, json=described(**changes))
    assert answer.status_code == 400, answer.text
    assert answer.json()["_tag"] == "ApiValidationError"


async def test_keys_are_unique_until_their_experiment_is_archived(admin: Client) -> None:
    target = uuid.uuid4().hex
    made = await create(admin, targetKey=target)
    for twice in ({"flagKey": made["flagKey"]}, {"targetKey": target}):
        answer = await admin.post(PATH, json=described(**twice))
        assert answer.status_code == 400, answer.text
        assert answer.json()["_tag"] == "ApiValidationError"
    other = await create(admin)
    await refused(admin, other, 400, flagKey=made["flagKey"])
    await create(admin, targetKey=target, targetType="onboarding")
    await change(admin, made, status="archived")
    await create(admin, flagKey=made["flagKey"], targetKey=target)


async def test_the_same_key_at_once_is_given_once(admin: Client) -> None:
    body = described()
    answers = await asyncio.gather(*(admin.post(PATH, json=body) for _ in range(8)))
    assert sorted(one.status_code for one in answers) == [201, *[400] * 7]


async def test_an_experiment_follows_the_table_of_its_states(admin: Client) -> None:
    made = await create(admin)
    for status in ("running", "paused", "completed"):
        await refused(admin, made, 409, status=status)
    await change(admin, made, status="scheduled")
    started = await change(admin, made, status="running")
    assert started["startedAt"]
    await refused(admin, made, 409, status="archived")
    await refused(admin, made, 409, status="draft")
    await change(admin, made, status="paused")
    assert (await change(admin, made, status="running"))["startedAt"] == started["startedAt"]
    await refused(admin, made, 400, status="completed")
    ended = await change(admin, made, status="completed", winner="b")
    assert (ended["status"], ended["winner"]) == ("completed", "b")
    assert ended["endsAt"]
    await refused(admin, made, 409, status="running")
    await change(admin, made, status="archived")
    await refused(admin, made, 409, status="draft")
    await refused(admin, made, 409, name="Other")


async def test_a_running_experiment_is_locked(admin: Client) -> None:
    made = await running(admin)
    other = [{**HALVES[0], "split": 40}, {**HALVES[1], "split": 60}]
    for changes in (
        {"variants": other},
        {"allocation": 50},
        {"audience": "internal"},
        {"targetType": "onboarding"},
        {"flagKey": "other"},
        {"assignmentUnit": "device"},
    ):
        await refused(admin, made, 409, **changes)
    same = await change(admin, made, name="Renamed", variants=made["variants"], allocation=100)
    assert same["name"] == "Renamed"
    await change(admin, made, status="paused")
    assert (await change(admin, made, variants=other))["variants"][1]["split"] == 60


async def test_an_experiment_starts_and_ends_by_the_clock(admin: Client, client: Client) -> None:
    now = utc_now()
    soon = [wire_timestamp(now + timedelta(hours=hours)) for hours in (1, 2)]
    past = [wire_timestamp(now - timedelta(hours=hours)) for hours in (2, 1)]
    waiting = await create(admin, status="scheduled", startedAt=soon[0], endsAt=soon[1])
    assert waiting["status"] == "scheduled"
    assert await assigned(client, waiting) is None
    begun = await create(admin, status="scheduled", startedAt=past[0])
    assert begun["status"] == "running"
    assert await assigned(client, begun) in {"a", "b"}
    over = await create(admin, status="scheduled", startedAt=past[0], endsAt=past[1])
    assert over["status"] == "completed"
    assert await assigned(client, over) is None
    await change(admin, over, status="archived")


async def test_an_assignment_stays_and_is_counted_when_it_is_met(
    admin: Client, client: Client
) -> None:
    made = await running(admin)
    variant = await assigned(client, made)
    assert variant in {"a", "b"}
    assert {await assigned(client, made) for _ in range(5)} == {variant}

    early = await happened(client, made, "signed_up")
    assert (early["recorded"], early["ignored"], reasons(early)) == (0, 1, ["not_exposed"])
    met_now = await happened(
        client, made, "signed_up", "exposure", "exposure", "form_failed", "other"
    )
    assert reasons(met_now) == [None, None, None, None, "unknown_event"]
    assert await happened(client, made, "exposure") == {
        "recorded": 1,
        "ignored": 0,
        "results": [{"recorded": True}],
    }
    shown = (await admin.get(f"{PATH}/{made['id']}")).json()["data"]
    figures = {one["id"]: one for one in shown["variants"]}
    met, other = figures[variant], figures["b" if variant == "a" else "a"]
    assert (met["exposures"], met["conversionRate"], met["errorRate"]) == (1, 1, 1)
    assert met["conversionInterval"]["high"] == 1
    assert other["exposures"] == 0
    assert shown["guardrail"] == {"breached": False, "variantIds": []}


async def test_no_unit_is_assigned_while_an_experiment_is_paused(
    admin: Client, client: Client
) -> None:
    made = await running(admin)
    await change(admin, made, status="paused")
    assert await assigned(client, made) is None
    assert reasons(await happened(client, made, "exposure")) == ["not_running"]


async def test_events_that_are_not_counted_say_why(admin: Client, client: Client) -> None:
    by_device = await running(admin, assignmentUnit="device")
    nobody = await running(admin, allocation=0)
    phones = await running(admin, audience="mobile_users")
    assert reasons(await happened(client, by_device, "exposure")) == ["no_unit"]
    assert reasons(await happened(client, by_device, "exposure", deviceId="tablet-1")) == [None]
    assert reasons(await happened(client, nobody, "exposure")) == ["not_allocated"]
    assert reasons(await happened(client, phones, "exposure")) == ["not_in_audience"]
    unknown = await happened(client, {"flagKey": "no-such-flag"}, "exposure")
    assert reasons(unknown) == ["not_running"]
    assert unknown["results"][0]["message"].startswith("No running experiment has this name")


async def test_a_winner_is_for_everybody(admin: Client, client: Client) -> None:
    made = await running(admin, allocation=0)
    assert await assigned(client, made) is None
    await change(admin, made, status="completed", winner="b")
    assert await assigned(client, made) == "b"
    assert (await happened(client, made, "exposure"))["ignored"] == 1
    await change(admin, made, status="archived")
    assert await assigned(client, made) is None


async def test_events_of_units_are_purged_long_after_their_experiment_was_archived(
    admin: Client, client: Client, space: Space
) -> None:
    kept, gone = [await running(admin) for _ in range(2)]
    for made in (kept, gone):
        await happened(client, made, "exposure")
    await change(admin, gone, status="paused")
    await change(admin, gone, status="archived")

    async def exposures(made: Json) -> int:
        shown = (await admin.get(f"{PATH}/{made['id']}")).json()["data"]["variants"]
        return sum(one["exposures"] for one in shown)

    async with space.database.transaction() as work:
        assert await purge_units(work, work.now - timedelta(days=1)) == 0
    assert await exposures(gone) == 1
    async with space.database.transaction() as work:
        while await purge_units(work, work.now + timedelta(days=1)):
            pass
    assert (await exposures(gone), await exposures(kept)) == (0, 1)


async def test_devices_and_workspaces_keep_their_own_variant(
    admin: Client, client: Client, space: Space, workspace: MakeSpace
) -> None:
    devices = await running(admin, assignmentUnit="device")
    assert await assigned(client, devices) is None
    drawn = {await assigned(client, devices, deviceId=f"d{number}") for number in range(30)}
    assert drawn == {"a", "b"}

    shared = await running(admin, assignmentUnit="workspace")
    _, token = await space.member(Role.GUEST)
    guest = client.with_token(token)
    assert await assigned(guest, shared) == await assigned(client, shared) is not None
    elsewhere = await workspace()
    for workspace_id in (str(elsewhere.id), str(uuid.uuid4())):
        body = {"workspaceId": workspace_id}
        answer = await client.post("/v1/experiments/assign", json=body)
        assert answer.status_code == 404


async def test_events_name_a_known_experiment(admin: Client, client: Client) -> None:
    made = await running(admin)
    by_id = {"experimentId": made["id"], "event": "exposure"}
    answer = await client.post("/v1/experiments/events", json={"events": [by_id]})
    assert answer.json()["data"]["recorded"] == 1
    unknown = {"experimentId": str(uuid.uuid4()), "event": "exposure"}
    answer = await client.post("/v1/experiments/events", json={"events": [by_id, unknown]})
    assert answer.status_code == 404
    for event in ({"event": "exposure"}, {**by_id, "flagKey": made["flagKey"]}):
        answer = await client.post("/v1/experiments/events", json={"events": [event]})
        assert answer.status_code == 400, answer.text


async def test_segments_are_listed_and_created(admin: Client) -> None:
    key = f"large_{uuid.uuid4().hex}"
    rule = {"field": "workspace.memberCount", "op": "gte", "value": 2}
    body = {"key": key, "label": "Large", "rule": rule}
    answer = await admin.post(SEGMENTS, json=body)
    assert answer.status_code == 201, answer.text
    assert (await admin.post(SEGMENTS, json=body)).status_code == 400
    assert (await admin.post(SEGMENTS, json={**body, "key": "all"})).status_code == 400
    listed = (await admin.get(SEGMENTS)).json()["data"]["segments"]
    assert [one["key"] for one in listed[:7]] == [
        "all",
        "internal",
        "new_workspaces_30d",
        "active_7d",
        "self_hosted",
        "mobile_users",
        "beta_opt_in",
    ]
    assert answer.json()["data"] in listed
    await create(admin, audience=key)


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"field": "user.password", "op": "eq", "value": "x"},
        {"field": "attributes.", "op": "eq", "value": "x"},
        {"field": "workspace.memberCount", "op": "contains", "value": "x"},
        {"field": "workspace.memberCount", "op": "gte", "value": "2"},
        {"field": "user.email", "op": "eq", "value": "x'; DROP TABLE experiment", "more": 1},
        {"field": "attributes.a') IS NULL OR true --", "op": "eq", "value": True},
        {"field": "workspace.createdAt", "op": "within", "value": {"unit": "day"}},
        {"and": [{"field": "attributes.a", "op": "eq", "value": 1}] * 65},
    ],
)
async def test_a_rule_that_cannot_be_read_is_refused(admin: Client, rule: Json) -> None:
    answer = await admin.post(SEGMENTS, json={"key": "bad", "label": "Bad", "rule": rule})
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"].startswith("rule")


RULES: list[tuple[Json, bool]] = [
    ({"field": "workspace.memberCount", "op": "eq", "value": 1}, True),
    ({"field": "workspace.memberCount", "op": "gt", "value": 1}, False),
    ({"field": "workspace.role", "op": "in", "value": ["owner", "admin"]}, True),
    ({"field": "workspace.role", "op": "ne", "value": "owner"}, False),
    ({"field": "user.email", "op": "ends_with", "value": "@EXAMPLE.test"}, True),
    ({"field": "user.email", "op": "contains", "value": "%"}, False),
    ({"field": "user.platformAdmin", "op": "eq", "value": False}, True),
    ({"field": "user.createdAt", "op": "relative", "value": "today"}, True),
    ({"field": "workspace.createdAt", "op": "before", "value": "2020-01-01"}, False),
    ({"field": "attributes.platform", "op": "eq", "value": "ios"}, True),
    ({"field": "attributes.platform", "op": "not_in", "value": ["ios"]}, False),
    ({"field": "attributes.version", "op": "between", "value": [3, 5]}, True),
    ({"field": "attributes.version", "op": "eq", "value": "4"}, False),
    ({"field": "attributes.absent", "op": "is_empty"}, True),
    ({"field": "attributes.absent", "op": "ne", "value": True}, True),
    ({"not": {"field": "attributes.beta", "op": "eq", "value": True}}, False),
    ({"or": []}, False),
    ({"field": "user.email", "op": "eq", "value": "x' OR '1'='1"}, False),
]


async def test_segments_are_judged_by_what_is_known_of_the_caller(
    admin: Client, client: Client
) -> None:
    told = {"platform": "ios", "version": 4, "beta": True}
    for rule, belongs in RULES:
        key = f"s_{uuid.uuid4().hex}"
        body = {"key": key, "label": "Some", "rule": rule}
        assert (await admin.post(SEGMENTS, json=body)).status_code == 201
        made = await running(admin, audience=key)
        found = await assigned(client, made, attributes=told)
        assert (found is not None) is belongs, rule


@pytest.mark.parametrize(
    ("audience", "attributes", "belongs"),
    [
        ("new_workspaces_30d", {}, True),
        ("internal", {}, False),
        ("mobile_users", {"platform": "android"}, True),
        ("mobile_users", {"platform": "web"}, False),
        ("self_hosted", {"selfHosted": True}, True),
        ("beta_opt_in", {}, False),
    ],
)
async def test_every_platform_has_the_same_segments(
    admin: Client, client: Client, audience: str, attributes: Json, belongs: bool
) -> None:
    made = await running(admin, audience=audience)
    assert (await assigned(client, made, attributes=attributes) is not None) is belongs
