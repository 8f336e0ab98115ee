"""Relations in pairs, and the fields that follow from others, over HTTP."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, update

from models.content.items.joins import item, item_grant
from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def make(client: Client, space: Space, label: str, *fields: Json) -> Any:
    body = {"label": label, "fields": list(fields)}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def read(client: Client, made: Any) -> Any:
    path = f"/v1/workspaces/{made['workspaceId']}/databases/{made['id']}"
    return (await client.get(path)).json()["data"]


async def add(client: Client, made: Any, **body: Any) -> Any:
    answer = await client.post(f"/v1/databases/{made['id']}/fields", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


def at(field: Any) -> str:
    return f"/v1/databases/{field['databaseId']}/fields/{field['id']}"


def key(made: Any, key_: str) -> Any:
    return next(each for each in made["fields"] if each["key"] == key_)


def relation(made: Any, label: str = "Maker", **settings: Any) -> Json:
    return {
        "label": label,
        "kind": "relation",
        "settings": {"databaseId": made["id"], **settings},
    }


def rollup(way: str, target: str, aggregate: str, label: str = "Sum") -> Json:
    settings = {"relationFieldKey": way, "targetFieldKey": target, "aggregate": aggregate}
    return {"label": label, "kind": "rollup", "settings": settings}


def formula(expression: str, label: str = "Formula", **settings: Any) -> Json:
    return {
        "label": label,
        "kind": "formula",
        "settings": {"expression": expression, **settings},
    }


@pytest.fixture(params=["with the database", "afterwards"])
async def pair(request: pytest.FixtureRequest, client: Client, space: Space) -> tuple[Any, Any]:
    """Makers, and cars that point at them."""
    makers = await make(client, space, "Makers", {"label": "Cars", "kind": "text"})
    wanted = relation(makers, cardinality="one", onDelete="restrict")
    if request.param == "afterwards":
        cars = await make(client, space, "Cars")
        await add(client, cars, **wanted)
    else:
        cars = await make(client, space, "Cars", wanted)
    return await read(client, makers), await read(client, cars)


async def test_a_relation_has_its_other_side(pair: tuple[Any, Any]) -> None:
    makers, cars = pair
    here, there = key(cars, "maker"), key(makers, "cars_2")
    assert here["settings"] == {
        "databaseId": makers["id"],
        "cardinality": "one",
        "symmetric": False,
        "onDelete": "restrict",
        "inverseFieldId": there["id"],
    }
    assert (there["label"], there["kind"], there["order"]) == ("Cars", "relation", 2)
    assert there["settings"] == {
        "databaseId": cars["id"],
        "cardinality": "many",
        "symmetric": False,
        "onDelete": "unlink",
        "inverseFieldId": here["id"],
    }
    assert makers["recordLayout"]["propertyOrder"] == ["cars", "cars_2"]


@pytest.mark.parametrize("side", [0, 1])
async def test_both_sides_go_together(client: Client, pair: tuple[Any, Any], side: int) -> None:
    sides = [key(pair[1], "maker"), key(pair[0], "cars_2")]
    assert (await client.delete(at(sides[side]))).status_code == 200
    left = [await read(client, made) for made in pair]
    assert [[each["key"] for each in made["fields"]] for made in left] == [
        ["title", "cars"],
        ["title"],
    ]
    assert left[0]["recordLayout"]["propertyOrder"] == ["cars"]


async def test_the_databases_of_a_relation_cannot_be_changed(
    client: Client, pair: tuple[Any, Any]
) -> None:
    maker = key(pair[1], "maker")
    changed = await client.patch(
        at(maker), json={"settings": {**maker["settings"], "cardinality": "many"}}
    )
    assert changed.json()["data"]["settings"]["cardinality"] == "many"
    kept = await client.patch(at(maker), json={"settings": {"cardinality": "one"}})
    assert kept.json()["data"]["settings"]["inverseFieldId"] == maker["settings"]["inverseFieldId"]
    for name, value in (
        ("databaseId", pair[1]["id"]),
        ("inverseFieldId", str(uuid4())),
        ("symmetric", True),
    ):
        answer = await client.patch(
            at(maker), json={"settings": {**maker["settings"], name: value}}
        )
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == f"settings.{name}"


async def test_several_are_not_made_one(client: Client, pair: tuple[Any, Any]) -> None:
    makers, cars = pair
    there = key(makers, "cars_2")
    records = "/v1/databases/{}/records"
    made = [await client.post(records.format(cars["id"]), json={}) for _ in range(2)]
    ids = [answer.json()["data"]["id"] for answer in made]
    one = await client.post(records.format(makers["id"]), json={"relations": {"cars_2": ids}})
    assert one.status_code == 201, one.text
    body = {"settings": {**there["settings"], "cardinality": "one"}}
    refused = await client.patch(at(there), json=body)
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    path = f"/v1/records/{one.json()['data']['id']}"
    await client.patch(path, json={"relations": {"cars_2": ids[:1]}})
    assert (await client.patch(at(there), json=body)).status_code == 200


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("field", "price", "gone"),
        ("field", "title", 5),
        ("field", "price", ["price"]),
        ("record", "databaseId", "size"),
        ("expression", "record.price > 1.0", "1 +"),
        ("literal", {"any": [1]}, None),
    ],
)
async def test_a_button_hands_over_what_can_be_read(
    client: Client, space: Space, type_: str, good: Any, bad: Any
) -> None:
    made = await make(client, space, "A", {"label": "Price", "kind": "number"})
    config = {"kind": "transform", "output": {}}
    action = await client.post(
        f"{space.path}/actions", json={"label": "Go", "kind": "transform", "config": config}
    )
    assert action.status_code == 201, action.text
    settings = {"actionId": action.json()["data"]["id"]}

    def button(value: Any) -> Json:
        bindings = {"x": {"type": type_, "value": value}}
        return {"label": "Go", "kind": "button", "settings": {**settings, "bindings": bindings}}

    added = await add(client, made, **button(good))
    assert added["settings"]["confirm"] is False
    if bad is not None:
        path = "settings.bindings.x.value"
        answers = [
            await client.post(f"/v1/databases/{made['id']}/fields", json=button(bad)),
            await client.patch(at(added), json={"settings": button(bad)["settings"]}),
        ]
        assert [each.json()["details"][0]["path"] for each in answers] == [path, path]


async def test_a_database_is_related_to_itself(client: Client, space: Space) -> None:
    made = await make(client, space, "People")
    parents = relation(made, "Parents", inverseLabel="Children")
    await add(client, made, **parents)
    twins = await add(client, made, **relation(made, "Twins", symmetric=True))
    now = await read(client, made)
    assert [each["key"] for each in now["fields"]] == ["title", "parents", "children", "twins"]
    assert twins["settings"]["inverseFieldId"] == twins["id"]
    assert key(now, "parents")["settings"]["inverseFieldId"] == key(now, "children")["id"]
    assert now["recordLayout"]["propertyOrder"] == ["parents", "children", "twins"]
    assert (await client.delete(at(twins))).status_code == 200
    other = await make(client, space, "Others")
    answer = await client.post(
        f"/v1/databases/{other['id']}/fields", json=relation(made, symmetric=True)
    )
    assert answer.json()["details"][0]["path"] == "settings.symmetric"


async def test_several_relations_of_one_body_have_their_own_other_sides(
    client: Client, space: Space
) -> None:
    makers = await make(client, space, "Makers")
    await make(client, space, "Cars", relation(makers, "Builder"), relation(makers, "Painter"))
    now = await read(client, makers)
    assert [each["key"] for each in now["fields"]] == ["title", "cars", "cars_2"]
    assert [each["order"] for each in now["fields"]] == [0, 1, 2]


async def test_settings_that_the_platform_sets_are_refused(client: Client, space: Space) -> None:
    made = await make(client, space, "A")
    answer = await client.post(
        f"/v1/databases/{made['id']}/fields",
        json=relation(made, inverseFieldId=str(uuid4())),
    )
    assert answer.json()["details"][0]["path"] == "settings.inverseFieldId"


async def test_settings_name_what_the_caller_sees_alone(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await make(client, space, "A")
    theirs = await make(client.with_token(foreign.token), foreign, "B")
    hidden = await make(client, space, "C")
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.id == hidden["itemId"]).values(access_mode="restricted")
        )
    paths = [f"/v1/databases/{made['id']}/fields", f"{space.path}/databases"]

    async def answers(target: str, settings: Json) -> list[Any]:
        kind = "button" if "actionId" in settings else "relation"
        body = {"label": "", "kind": kind, "settings": settings}
        return [
            await editor.post(paths[0], json={**body, "label": target}),
            await editor.post(paths[1], json={"label": "D", "fields": [{**body, "label": "x"}]}),
        ]

    unknown = await answers("x", {"databaseId": str(uuid4())})
    assert [each.status_code for each in unknown] == [404, 404]
    for database in (theirs, hidden):
        found = await answers("x", {"databaseId": database["id"], "cardinality": "none"})
        assert [each.content for each in found] == [each.content for each in unknown]
    action = await answers("x", {"actionId": str(uuid4())})
    assert [each.status_code for each in action] == [404, 404]
    async with space.database.transaction() as work:
        granted = {"workspace_id": space.id, "item_id": hidden["itemId"], "user_id": user_id}
        moments = {"created_at": work.now, "updated_at": work.now}
        await work.execute(insert(item_grant).values(**granted, level=1, **moments))
    denied = await answers("x", {"databaseId": hidden["id"]})
    assert [each.status_code for each in denied] == [403, 403]


async def test_derived_fields_say_what_they_give(client: Client, space: Space) -> None:
    makers = await make(
        client,
        space,
        "Makers",
        {"label": "Price", "kind": "number"},
        {"label": "Since", "kind": "date"},
        {"label": "At", "kind": "datetime"},
        {"label": "Ok", "kind": "checkbox"},
    )
    fields = [
        relation(makers),
        rollup("maker", "price", "avg", "a"),
        rollup("maker", "since", "latest", "b"),
        rollup("maker", "at", "min", "c"),
        rollup("maker", "ok", "checked", "d"),
        rollup("maker", "title", "max", "e"),
        rollup("maker", "title", "count_unique", "f"),
        formula("record.a * 2", "g"),
        formula("record.g > 3.0", "h"),
        formula("record.title", "i"),
        formula("record.b", "j", resultKind="date"),
        formula("record.title == '' ? record.a : record.title", "k"),
    ]
    made = await make(client, space, "Cars", *reversed(fields))
    assert {each["key"]: each["settings"].get("resultKind") for each in made["fields"]} == {
        **dict.fromkeys(["title", "maker"]),
        **dict.fromkeys(["a", "d", "f", "g"], "number"),
        **dict.fromkeys(["b", "j"], "date"),
        **dict.fromkeys(["e", "i"], "text"),
        "c": "datetime",
        "h": "checkbox",
        "k": "json",
    }


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (rollup("title", "title", "count"), "settings.relationFieldKey"),
        (rollup("gone", "title", "count"), "settings.relationFieldKey"),
        (rollup("maker", "gone", "count"), "settings.targetFieldKey"),
        (rollup("maker", "b", "count"), "settings.targetFieldKey"),
        (rollup("maker", "title", "sum"), "settings.aggregate"),
        (rollup("maker", "title", "earliest"), "settings.aggregate"),
        (rollup("maker", "title", "average"), "settings.aggregate"),
        (formula("record.sum"), "settings.expression"),
        (formula("record.formula"), "settings"),
        (formula("x" * 4_001), "settings.expression"),
    ],
)
async def test_a_computed_field_without_a_valid_source_is_refused(
    client: Client, space: Space, field: Json, path: str
) -> None:
    makers = await make(client, space, "Makers")
    made = await make(client, space, "B", relation(makers))
    answer = await client.post(f"/v1/databases/{made['id']}/fields", json=field)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    body = {"label": "C", "fields": [relation(makers), field]}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.json()["details"][0]["path"] == f"fields.1.{path}"


async def test_a_field_never_follows_from_itself(client: Client, space: Space) -> None:
    body = {"label": "A", "fields": [formula("record.y", "x"), formula("record.x", "y")]}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 400
    assert [each["path"] for each in answer.json()["details"]] == [
        "fields.0.settings",
        "fields.1.settings",
    ]
    made = await make(client, space, "A", formula("1.0", "x"), formula("record.x", "y"))
    answer = await client.patch(at(key(made, "x")), json={"settings": {"expression": "record.y"}})
    assert answer.status_code == 400
    assert "depends on itself" in answer.json()["message"]
    assert await read(client, made) == made


async def test_no_formula_follows_from_itself_through_another_database(
    client: Client, space: Space
) -> None:
    makers = await make(client, space, "Makers", formula("1.0", "Price"))
    cars = await make(client, space, "Cars", relation(makers), rollup("maker", "price", "sum"))
    back = await add(client, makers, **rollup("cars", "sum", "sum", "Back"))
    answer = await client.patch(
        at(key(makers, "price")), json={"settings": {"expression": "record.back"}}
    )
    assert answer.status_code == 400
    assert "depends on itself" in answer.json()["message"]
    answer = await client.patch(
        at(back), json={"settings": rollup("cars", "back", "sum")["settings"]}
    )
    assert answer.status_code == 400
    assert key(await read(client, cars), "sum")["settings"]["resultKind"] == "number"


async def test_fields_follow_from_others_ten_levels_deep(client: Client, space: Space) -> None:
    chain = [formula("1.0", "f0"), *(formula(f"record.f{n}", f"f{n + 1}") for n in range(9))]
    made = await make(client, space, "A", *chain)
    answer = await client.post(
        f"/v1/databases/{made['id']}/fields", json=formula("record.f9", "f10")
    )
    assert answer.status_code == 400
    assert "10 levels" in answer.json()["message"]
    deeper = await client.patch(at(key(made, "f0")), json={"settings": {"expression": "2.0 + 1.0"}})
    assert deeper.status_code == 200, deeper.text


async def test_a_change_reaches_what_follows_from_it(client: Client, space: Space) -> None:
    makers = await make(client, space, "Makers", formula("1.0", "Price"))
    cars = await make(
        client,
        space,
        "Cars",
        relation(makers),
        rollup("maker", "price", "min", "Low"),
        rollup("maker", "price", "sum", "Sum"),
    )
    price = key(makers, "price")
    refused = await client.patch(at(price), json={"settings": {"expression": "record.title"}})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert "Sum of Cars" in refused.json()["message"]
    assert (await client.delete(at(key(cars, "sum")))).status_code == 200
    changed = await client.patch(at(price), json={"settings": {"expression": "record.title"}})
    assert changed.json()["data"]["settings"]["resultKind"] == "text"
    assert key(await read(client, cars), "low")["settings"]["resultKind"] == "text"


async def test_a_field_that_others_are_computed_from_stays(client: Client, space: Space) -> None:
    makers = await make(client, space, "Makers", {"label": "Price", "kind": "number"})
    cars = await make(
        client,
        space,
        "Cars",
        {"label": "Tax", "kind": "number"},
        relation(makers),
        rollup("maker", "price", "sum"),
        formula("record.tax + record.sum", "Total"),
    )
    fields = [key(makers, "price"), *(key(cars, each) for each in ("tax", "maker", "sum"))]
    fields.append(key(await read(client, makers), "cars"))
    named = ["Sum of Cars", "Total of Cars", "Sum of Cars", "Total of Cars", "Sum of Cars"]
    for field, name in zip(fields, named, strict=True):
        answer = await client.delete(at(field))
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
        assert name in answer.json()["message"]
    converted = await client.post(f"{at(key(cars, 'tax'))}/convert", json={"kind": "text"})
    assert (converted.status_code, converted.json()["error"]) == (409, "conflict")
    for name in ("total", "sum", "tax", "maker"):
        assert (await client.delete(at(key(cars, name)))).status_code == 200


async def test_fields_without_access_are_not_named(client: Client, space: Space) -> None:
    makers = await make(client, space, "Makers", {"label": "Price", "kind": "number"})
    cars = await make(client, space, "Secret", relation(makers), rollup("maker", "price", "sum"))
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.id == cars["itemId"]).values(access_mode="restricted")
        )
    _, token = await space.member(Role.EDITOR)
    answer = await client.with_token(token).delete(at(key(makers, "price")))
    assert answer.status_code == 409
    assert "Secret" not in answer.json()["message"]


async def test_two_changes_at_once_make_no_circle(client: Client, space: Space) -> None:
    for _ in range(5):
        made = await make(client, space, "A", formula("1.0", "x"), formula("1.0", "y"))
        answers = await asyncio.gather(
            *(
                client.patch(
                    at(key(made, one)), json={"settings": {"expression": f"record.{other}"}}
                )
                for one, other in (("x", "y"), ("y", "x"))
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 400]


async def test_two_relations_between_each_other_at_once(client: Client, space: Space) -> None:
    one, other = [await make(client, space, label) for label in ("One", "Other")]
    answers = await asyncio.gather(
        *(
            client.post(f"/v1/databases/{here['id']}/fields", json=relation(there, f"R{number}"))
            for number in range(3)
            for here, there in ((one, other), (other, one))
        )
    )
    assert [answer.status_code for answer in answers] == [201] * 6
    for made in (one, other):
        keys = [each["key"] for each in (await read(client, made))["fields"]]
        assert len(set(keys)) == len(keys) == 7
