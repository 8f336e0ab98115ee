"""The catalog of the editor names every kind, and its evaluation shows what a binding gives."""

import json
from typing import Any

import pytest
from fastapi import FastAPI

from api.console.automations.catalog import Evaluation, catalog, evaluated
from models.automation.automations.rules.graph.configs import CONFIGS
from models.automation.automations.rules.graph.kinds import NODE_KINDS, NodeKind
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.access.rules import Role
from models.core.expressions.rules.functions import EXAMPLE_TRIGGER, FUNCTIONS
from tests.support.automations import create, path_of, read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in


def page_of(made: Any) -> str:
    return path_of(made).removeprefix("/v1")


def test_every_kind_has_its_words_and_the_schema_of_its_config() -> None:
    made = catalog()
    kinds = {one["kind"]: one for one in made["kinds"]}
    assert kinds.keys() == set(NodeKind)
    for kind, shown in kinds.items():
        outcomes = {one["name"] for one in shown["outcomes"]}
        assert outcomes == {one.value for one in NODE_KINDS[NodeKind(kind)].outcomes}
        assert all([shown["title"], shown["group"], shown["description"].endswith(".")])
        expected = CONFIGS[NodeKind(kind)].model_json_schema(by_alias=True)
        assert shown["schema"].get("properties", {}).keys() == expected.get("properties", {}).keys()
        assert set(shown["fixed"]) <= expected.get("properties", {}).keys()
    assert {one["kind"] for one in made["triggers"]} == set(TriggerKind)
    assert [one["name"] for one in made["functions"]] == [one.name for one in FUNCTIONS]


def test_no_field_is_labelled_by_its_key() -> None:
    made = catalog()
    for one in (*made["kinds"], *made["triggers"]):
        for name, part in one["schema"].get("properties", {}).items():
            assert part["title"] != name.capitalize() or name.islower(), (one["kind"], name)


async def test_the_catalog_is_kept_by_browsers_and_asked_for_in_a_session(
    client: Client, space: Space, owner: Visitor, app: FastAPI
) -> None:
    path = f"{page_of(await create(client, space))}/edit/catalog"
    answer = await owner.get(path)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(json.dumps(catalog()))
    again = await owner.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    async with Visitor(app) as nobody:
        assert (await nobody.get(path, headers={"Accept": "*/*"})).status_code == 401


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "trigger", "value": "tags[1]"}, {"value": "vip"}),
        ({"type": "trigger", "value": "nothing.here"}, {"value": None}),
        ({"type": "node", "value": "read.total"}, {"value": 42}),
        ({"type": "template", "value": "Hello {{ trigger.name }}!"}, {"value": "Hello Ada!"}),
        ({"type": "item", "value": "$index"}, {"value": 3}),
        ({"type": "secret", "value": "token"}, {"value": "[secret token]"}),
        ({"a": [{"type": "trigger", "value": "name"}]}, {"value": {"a": ["Ada"]}}),
        ("text", {"value": "text"}),
    ],
)
def test_a_value_is_shown_for_the_data_of_a_run(value: Any, expected: dict[str, Any]) -> None:
    body = Evaluation(value=value, trigger=EXAMPLE_TRIGGER, nodes={"read": {"total": 42}}, index=3)
    assert evaluated(body).model_dump(by_alias=True) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"type": "expression", "value": "trigger.price +"}, "line 1, column 16"),
        ({"type": "expression", "value": "unknown.name"}, "unknown"),
        ({"type": "template", "value": "Hello {{ trigger.name"}, "character 7"),
        ({"type": "trigger", "value": "a..b..c"}, ".."),
    ],
)
def test_a_wrong_expression_has_its_place(value: Any, words: str) -> None:
    found = evaluated(Evaluation(value=value, trigger=EXAMPLE_TRIGGER))
    assert found.error is not None
    assert words in found.error
    assert found.invalid


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.name)
def test_the_example_of_each_function_has_its_result(function: Any) -> None:
    binding = {"type": "expression", "value": function.example}
    found = evaluated(Evaluation(value=binding, trigger=EXAMPLE_TRIGGER))
    assert (found.error, found.value) == (None, function.result)


async def test_a_value_is_evaluated_with_the_token_of_the_page(
    client: Client, space: Space, owner: Visitor, app: FastAPI
) -> None:
    page = page_of(await create(client, space))
    body = {"value": {"type": "trigger", "value": "name"}, "trigger": {"name": "Ada"}}
    headers = {"X-CSRF-Token": await owner.token(f"{page}/settings"), "Accept": "*/*"}
    answer = await owner.post(f"{page}/edit/evaluate", json=body, headers=headers)
    assert read(answer) == {"value": "Ada"}
    growing = {"type": "expression", "value": "'a'" + ".replace('a','aaaaaaaaaa')" * 9}
    answer = await owner.post(f"{page}/edit/evaluate", json={"value": growing}, headers=headers)
    assert read(answer)["error"]
    several = {"value": [growing, growing]}
    answer = await owner.post(f"{page}/edit/evaluate", json=several, headers=headers)
    assert answer.status_code == 400
    without = await owner.post(f"{page}/edit/evaluate", json=body, headers={"Accept": "*/*"})
    assert without.status_code == 403
    viewer, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer) as theirs:
        token = {"X-CSRF-Token": await theirs.token("/"), "Accept": "*/*"}
        answer = await theirs.post(f"{page}/edit/evaluate", json=body, headers=token)
        assert read(answer) == {"value": "Ada"}


async def test_the_last_change_of_a_draft_has_its_author(
    client: Client, space: Space, owner: Visitor, app: FastAPI
) -> None:
    made = await create(client, space)
    page = page_of(made)

    async def news(visitor: Visitor) -> Any:
        headers = {"X-CSRF-Token": await visitor.token(f"{page}/settings"), "Accept": "*/*"}
        body = {"tabId": "00000000-0000-4000-8000-000000000001"}
        return read(await visitor.post(f"{page}/edit/presence", json=body, headers=headers))

    other, their_token = await space.member(Role.ADMIN)
    their_client = client.with_token(their_token)
    first = await news(owner)
    assert first["changedBy"] == {
        "userId": str(space.user_id), "name": first["changedBy"]["name"], "isSelf": True
    }  # fmt: skip
    read(await their_client.patch(path_of(made), json={"triggerConfig": {"kind": "manual"}}))
    found = await news(owner)
    assert (found["changedBy"]["userId"], found["changedBy"]["isSelf"]) == (str(other), False)
    assert found["changedAt"] > first["changedAt"]
    # Another label changes the automation, and not its draft.
    read(await client.patch(path_of(made), json={"label": "Another"}))
    assert (await news(owner))["changedAt"] == found["changedAt"]
    async with await signed_in(app, space, other) as theirs:
        assert (await news(theirs))["changedBy"]["isSelf"]
    read(await client.post(f"{path_of(made)}/publish", json={}))
    assert "changedBy" not in await news(owner)


async def test_the_keys_that_a_published_trigger_needs_are_named(
    client: Client, space: Space
) -> None:
    """The forms of triggers mark exactly what publishing misses."""
    path = path_of(await create(client, space))
    needed = 0
    for one in catalog()["triggers"]:
        bare = {"triggerConfig": {"kind": one["kind"]}}
        draft = read(await client.patch(path, json=bare))
        messages = [issue["message"] for issue in draft.get("referenceIssues", [])]
        missing = [text.split(":")[0] for text in messages if text.endswith(": is required")]
        assert missing == [f"triggerConfig.{key}" for key in one["schema"]["x-needed"]], one["kind"]
        needed += len(missing)
    assert needed > 5
