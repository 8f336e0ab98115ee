"""Forms of fields, without scripts: every kind is made, changed, moved, converted, deleted."""

import json
import re
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI

from api.console.controls import laid_out, texts_of, values_of
from models.core.access.rules import Role
from models.data.fields.rules.fields import FieldKind
from models.data.fields.rules.settings import settings_model
from tests.support.automations import read
from tests.support.client import Client
from tests.support.related import add, add_field, make_database, relate
from tests.support.spaces import Space
from tests.support.visitor import Visitor, form_key, form_token, signed_in

pytestmark = pytest.mark.takes(seconds=20)

Json = dict[str, Any]
HOSTILE = "<img src=x onerror=alert(1)>"
OPTIONS: Json = {
    "options.0.name": "Open",
    "options.0.color": "blue",
    "options.0.default": "on",
    "options.1.name": "Shut",
    "options.1.color": "red",
}
FORMS: dict[FieldKind, tuple[Json, Json]] = {
    FieldKind.TEXT: ({"field.default": "Tea", "required": "on"}, {"defaultValue": "Tea"}),
    FieldKind.NUMBER: (
        {"settings.min": "1", "settings.max": "9.5", "settings.format": "grouped"},
        {"settings": {"min": 1, "max": 9.5, "format": "grouped"}},
    ),
    FieldKind.CURRENCY: (
        {"settings.currencyCode": "EUR", "settings.precision": "2", "field.default": "3.5"},
        {"settings": {"currencyCode": "EUR", "precision": 2}, "defaultValue": "3.5"},
    ),
    FieldKind.CHECKBOX: ({"field.default": "yes"}, {"defaultValue": "true"}),
    FieldKind.DATE: (
        {"settings.timezone": "Europe/Berlin", "settings.includeTime": "on"},
        {"settings": {"timezone": "Europe/Berlin", "includeTime": True}},
    ),
    FieldKind.SELECT: ({**OPTIONS, "settings.allowCreate": "on"}, {"defaultValue": "open"}),
    FieldKind.MULTI_SELECT: (
        {**OPTIONS, "options.1.default": "on"},
        {"defaultValue": '["open", "shut"]'},
    ),
    FieldKind.STATUS: (
        {**OPTIONS, "options.1.group": "done"},
        {"settings": {"groups": {"todo": ["open"], "in_progress": [], "done": ["shut"]}}},
    ),
    FieldKind.FILE: ({"settings.maxFiles": "3"}, {"settings": {"maxFiles": 3}}),
    FieldKind.FORMULA: ({"settings.expression": "record.price * 2.0"}, {}),
    FieldKind.TIMER: (
        {"settings.roundToMinutes": "15"},
        {"settings": {"roundToMinutes": 15, "allowManual": False}},
    ),
}
"""The fields of the form of a kind, and what the field then has."""


@pytest.fixture
async def goods(client: Client, space: Space) -> str:
    """The id of a database with a price, related to shops."""
    shops = await make_database(client, space, "Shops", {"label": "Rent", "kind": "number"})
    goods = await make_database(client, space, "Goods", {"label": "Price", "kind": "number"})
    await relate(client, goods, shops, "Shops")
    return goods


async def fields(client: Client, space: Space, database_id: str) -> dict[str, Json]:
    """The fields of a database by key, in order."""
    shown = read(await client.get(f"{space.path}/databases/{database_id}"))
    return {one["key"]: one for one in shown["fields"]}


async def by_kind(client: Client, space: Space, goods: str, kind: FieldKind) -> Json:
    """The fields of the form that a kind needs."""
    match kind:
        case FieldKind.RELATION:
            return {"settings.databaseId": goods, "settings.inverseLabel": "Bundles"}
        case FieldKind.ROLLUP | FieldKind.LOOKUP:
            named = {"settings.relationFieldKey": "shops", "settings.targetFieldKey": "rent"}
            return named | ({"settings.aggregate": "sum"} if kind is FieldKind.ROLLUP else {})
        case FieldKind.BUTTON:
            body = {"label": "Go", "kind": "run_automation", "config": {}}
            source = {"label": "S", "kind": "http_json", "config": {"url": "https://a.test/"}}
            made = read(await client.post(f"{space.path}/data-sources", json=source), 201)
            config = {"kind": "refresh_data_source", "dataSourceId": made["id"]}
            body = {"label": "Go", "kind": "refresh_data_source", "config": config}
            action = read(await client.post(f"{space.path}/actions", json=body), 201)
            row = {"name": "who", "type": "field", "value": "title"}
            bound = {f"settings.bindings.0.{name}": text for name, text in row.items()}
            return {"settings.actionId": action["id"], **bound}
    return FORMS.get(kind, ({}, {}))[0]


@pytest.mark.long
@pytest.mark.parametrize("kind", FieldKind)
async def test_every_kind_is_made_by_its_form(
    client: Client, owner: Visitor, space: Space, goods: str, kind: FieldKind
) -> None:
    place = f"/databases/{goods}/fields"
    sent = await by_kind(client, space, goods, kind)
    form = (await owner.get(f"{place}/new?kind={kind.value}")).text
    for name in sent:
        assert f'name="{name}"' in form, name
    answer = await owner.send_form(place, kind=kind.value, label="Made here", **sent)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == f"{place}?notice=added"
    made = (await fields(client, space, goods))["made_here"]
    assert (made["label"], made["kind"]) == ("Made here", kind.value)
    expected = FORMS.get(kind, ({}, {}))[1]
    assert {name: made[name] for name in expected} == expected
    # The form of the field as it is, sent as it is shown, changes nothing.
    own = f"{place}/{made['id']}/edit"
    shown = (await owner.get(own)).text
    assert (await owner.send_form(own, **inputs(shown))).status_code == 303
    again = (await fields(client, space, goods))["made_here"]
    assert {**again, "updatedAt": ""} == {**made, "updatedAt": ""}
    assert "Made here" in (await owner.get(place)).text


def inputs(text: str) -> Json:
    """The fields of the form of a field, as a browser sends them."""
    form = text[text.index('<form class="card form"') :]
    form = form[: form.index("</form>")]
    found = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name = re.search(r'name="([^"]+)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        ticked = 'type="checkbox"' not in tag or " checked" in tag
        if name and ticked:
            found[name[1]] = unescape(value[1]) if value else "on"
    for name, inner in re.findall(
        r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL
    ):
        chosen = re.search(r'value="([^"]*)" selected', inner)
        found[name] = unescape(chosen[1]) if chosen else ""
    for name, inner in re.findall(
        r'<textarea [^>]*name="([^"]+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL
    ):
        found[name] = unescape(inner)
    return {
        name: text for name, text in found.items() if name not in ("csrfToken", "idempotencyKey")
    }


@pytest.mark.parametrize(
    ("kind", "sent", "fault", "shown"),
    [
        ("number", {"settings.min": "often"}, "h-settings.min", 'value="often"'),
        ("number", {"settings.min": "5", "settings.max": "1"}, "h-settings.min", 'value="5"'),
        ("currency", {"settings.currencyCode": "euro"}, "h-settings.currencyCode", 'value="euro"'),
        ("formula", {"settings.expression": "record."}, "h-settings.expression", "record."),
        ("formula", {}, "h-settings.expression", "Expression"),
        ("date", {"settings.timezone": "Mars"}, "h-settings.timezone", 'value="Mars"'),
        ("select", {"options.0.name": "x" * 101}, "h-options.0", "x" * 101),
        ("text", {"key": "Price!"}, "h-key", 'value="Price!"'),
        ("rollup", {"settings.relationFieldKey": "shops"}, 'class="fault"', "selected>Shops"),
        ("number", {"field.default": "cheap"}, 'class="fault"', 'value="cheap"'),
        ("number", {"settings.max": "1", "field.default": "5"}, 'class="fault"', 'value="5"'),
        ("select", {**OPTIONS, "options.1.default": "on"}, "Choose one default.", 'value="Open"'),
        (
            "button",
            {"settings.actionId": "1", "settings.bindings.0.value": "x"},
            "h-settings.bindings.0.name",
            'value="x"',
        ),
        ("text", {"key": "price"}, "The key price is in use", 'value="price"'),
    ],
)
async def test_a_refused_form_comes_back_with_the_fault(
    client: Client,
    owner: Visitor,
    space: Space,
    goods: str,
    kind: str,
    sent: Json,
    fault: str,
    shown: str,
) -> None:
    place = f"/databases/{goods}/fields"
    before = await fields(client, space, goods)
    answer = await owner.send_form(place, kind=kind, label=HOSTILE, **sent)
    assert answer.status_code in {400, 409}, answer.text
    assert fault in answer.text
    assert shown in answer.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in answer.text
    assert HOSTILE not in answer.text
    assert await fields(client, space, goods) == before


async def test_a_missing_name_is_reported_at_its_field(owner: Visitor, goods: str) -> None:
    answer = await owner.send_form(f"/databases/{goods}/fields", kind="text")
    assert answer.status_code == 400
    assert 'id="h-label" class="fault"' in answer.text


@pytest.mark.long
async def test_options_are_added_moved_and_removed_before_they_are_saved(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    place = f"/databases/{goods}/fields"
    sent: Json = {"kind": "select", "label": "State", "options.0.name": "A", "options.1.name": "B"}
    added = await owner.send_form(place, row="add", **sent)
    assert added.status_code == 200
    assert 'name="options.2.name"' in added.text
    moved = inputs((await owner.send_form(place, row="down.0", **sent)).text)
    assert (moved["options.0.name"], moved["options.1.name"]) == ("B", "A")
    assert inputs((await owner.send_form(place, row="remove.0", **sent)).text)[
        "options.0.name"
    ] == ("B")
    for button in ("up.0", "down.1", "remove.9", "up.x", "remove.²"):
        assert (await owner.send_form(place, row=button, **sent)).status_code == 200
    assert "state" not in await fields(client, space, goods)
    part = await owner.send_form(place, headers={"HX-Request-Type": "partial"}, row="add", **sent)
    assert part.text.strip().startswith('<div id="live"')


async def test_options_are_renamed_recolored_and_removed(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    options = [{"name": "Open", "color": "blue"}, {"name": "Shut"}, {"name": HOSTILE}]
    state = await add_field(client, goods, "State", "select", options=options)
    for key in ("open", "shut", "shut"):
        await add(client, goods, data={"state": key})
    own = f"/databases/{goods}/fields/{state['id']}/edit"
    page = (await owner.get(own)).text
    assert HOSTILE not in page
    assert '<td class="tight end number">2</td>' in page
    sent = inputs(page)
    sent |= {"options.0.name": "Ajar", "options.0.color": "teal", "options.3.name": "New"}
    del sent["options.1.name"], sent["options.1.key"]
    answer = await owner.send_form(own, **sent)
    assert answer.status_code == 303, answer.text
    stored = (await fields(client, space, goods))["state"]["options"]
    assert [(one["key"], one["name"], one["color"]) for one in stored] == [
        ("open", "Ajar", "teal"),
        (stored[1]["key"], HOSTILE, "gray"),
        ("new", "New", "gray"),
    ]
    assert stored[1]["id"] == state["options"][2]["id"]
    listed = read(await client.get(f"/v1/databases/{goods}/records"))["records"]
    assert sorted(one["data"].get("state", "") for one in listed) == ["", "", "open"]


async def test_a_field_with_more_options_than_rows_keeps_them(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    options = [{"name": f"Option {number}"} for number in range(151)]
    state = await add_field(client, goods, "State", "select", options=options)
    own = f"/databases/{goods}/fields/{state['id']}/edit"
    page = (await owner.get(own)).text
    assert "This field has 151 options" in page
    sent: Json = {**inputs(page), "label": "Condition"}
    assert (await owner.send_form(own, **sent)).status_code == 303
    stored = (await fields(client, space, goods))["state"]
    assert (stored["label"], stored["options"]) == ("Condition", state["options"])


async def test_a_change_of_another_is_not_overwritten(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    price = (await fields(client, space, goods))["price"]
    own = f"/databases/{goods}/fields/{price['id']}/edit"
    sent = inputs((await owner.get(own)).text)
    path = f"/v1/databases/{goods}/fields/{price['id']}"
    read(await client.patch(path, json={"label": "Cost"}))
    answer = await owner.send_form(own, **{**sent, "label": "Amount"})
    assert answer.status_code == 409
    assert 'value="Amount"' in answer.text
    assert (await fields(client, space, goods))["price"]["label"] == "Cost"


async def test_a_field_is_moved(client: Client, owner: Visitor, space: Space, goods: str) -> None:
    assert list(await fields(client, space, goods)) == ["title", "price", "shops"]
    shops = (await fields(client, space, goods))["shops"]["id"]
    for to, order in (
        ("up", ["title", "shops", "price"]),
        ("up", ["shops", "title", "price"]),
        ("up", ["shops", "title", "price"]),
        ("down", ["title", "shops", "price"]),
    ):
        answer = await owner.send_form(f"/databases/{goods}/fields/{shops}/move", to=to)
        assert answer.status_code == 303
        assert list(await fields(client, space, goods)) == order


async def test_the_uses_of_a_field_are_named_before_it_is_deleted(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    view = {"label": "By <price>", "manifest": {"sorts": [{"field": "price", "direction": "asc"}]}}
    read(await client.post(f"/v1/databases/{goods}/views", json=view), 201)
    template = {"label": "Cheap", "data": {"price": 1}}
    read(await client.post(f"/v1/databases/{goods}/record-templates", json=template), 201)
    price = (await fields(client, space, goods))["price"]["id"]
    place = f"/databases/{goods}/fields"
    for path in (place, f"{place}/{price}/edit"):
        page = (await owner.get(path)).text
        assert "View “By &lt;price&gt;”" in page
        assert "Record template “Cheap”" in page
        assert f"{price}/delete" in page
    settings = {"expression": "record.price * 2.0"}
    double = await add_field(client, goods, "Double", "formula", settings=settings)
    page = (await owner.get(f"{place}/{price}/edit")).text
    assert "Double of Goods" in page
    assert f"{price}/delete" not in page
    assert (await owner.send_form(f"{place}/{price}/delete")).status_code == 409
    for field_id in (double["id"], price):
        assert (await owner.send_form(f"{place}/{field_id}/delete")).status_code == 303
    assert list(await fields(client, space, goods)) == ["title", "shops"]
    assert "The other side of the relation in “Shops” is deleted" in (await owner.get(place)).text


async def test_fields_of_closed_databases_are_counted_and_not_named(
    app: FastAPI, client: Client, space: Space
) -> None:
    goods = await make_database(client, space, "Goods", {"label": "Price", "kind": "number"})
    secret = await make_database(client, space, "Payroll")
    await relate(client, secret, goods, "Goods")
    settings = {"relationFieldKey": "goods", "targetFieldKey": "price", "aggregate": "sum"}
    await add_field(client, secret, "Bonus", "rollup", settings=settings)
    item = read(await client.get(f"{space.path}/databases/{secret}"))["itemId"]
    read(await client.patch(f"/v1/items/{item}", json={"accessMode": "restricted"}))
    user_id, _ = await space.member(Role.EDITOR)
    async with await signed_in(app, space, user_id) as editor:
        page = (await editor.get(f"/databases/{goods}/fields")).text
        assert "1 in databases that you cannot see" in page
        assert "Bonus" not in page
        # The inverse is named by the label that it was given.
        assert "Another database, many" in page
        assert (await editor.get(f"/databases/{secret}/fields")).status_code == 404
        assert (await editor.get(f"/databases/{secret}/fields/new")).status_code == 404
        answer = await editor.send_form(f"/databases/{secret}/fields", kind="text", label="X")
        assert answer.status_code == 404


async def test_a_conversion_is_previewed_and_begun(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    note = await add_field(client, goods, "Note", "text")
    for text in ("1", "2.5", HOSTILE):
        await add(client, goods, data={"note": text})
    own = f"/databases/{goods}/fields/{note['id']}"
    assert f"{own}/convert" in (await owner.get(f"{own}/edit")).text
    page = (await owner.get(f"{own}/convert?kind=number")).text
    assert "1 of 3 values do not fit" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert HOSTILE not in page
    select = (await owner.get(f"{own}/convert?kind=select")).text
    assert "All 3 values fit" in select
    assert (await owner.get(f"{own}/convert?kind=relation")).status_code == 200
    known = re.search(r'name="updatedAt" value="([^"]+)"', page)
    assert known is not None
    answer = await owner.send_form(f"{own}/convert", kind="number", updatedAt=known[1])
    assert answer.status_code == 303, answer.text
    outcome = await owner.get(answer.headers["location"])
    assert "converting" in outcome.text
    other = answer.headers["location"].replace(note["id"], (await _price(client, space, goods)))
    assert (await owner.get(other)).status_code == 404
    stale = await owner.send_form(
        f"{own}/convert", kind="number", updatedAt="2020-01-01T00:00:00.000Z"
    )
    assert stale.status_code in {400, 409}


async def _price(client: Client, space: Space, goods: str) -> str:
    return str((await fields(client, space, goods))["price"]["id"])


async def test_the_title_is_renamed_and_neither_converted_nor_deleted(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    title = (await fields(client, space, goods))["title"]["id"]
    own = f"/databases/{goods}/fields/{title}"
    page = (await owner.get(f"{own}/edit")).text
    assert f"{own}/convert" not in page
    assert f"{own}/delete" not in page
    assert (await owner.send_form(f"{own}/edit", label="Product")).status_code == 303
    assert (await fields(client, space, goods))["title"]["label"] == "Product"
    assert "Cannot be converted" in (await owner.get(f"{own}/convert")).text
    assert (await owner.send_form(f"{own}/delete")).status_code == 409


async def test_a_viewer_looks_at_fields_and_changes_none(
    app: FastAPI, client: Client, space: Space, goods: str
) -> None:
    price = (await fields(client, space, goods))["price"]["id"]
    place = f"/databases/{goods}/fields"
    user_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(place)).text
        assert "Price" in page
        for part in ("/new", "/edit", "/delete", "/move"):
            assert part not in page
        for path in (f"{place}/new", f"{place}/{price}/edit", f"{place}/{price}/convert"):
            assert (await viewer.get(path)).status_code == 403


async def test_a_form_acts_once_and_only_for_its_session(
    client: Client, owner: Visitor, nobody: Visitor, space: Space, goods: str
) -> None:
    place = f"/databases/{goods}/fields"
    form = await owner.get(f"{place}/new?kind=text")
    sent: Json = {"csrfToken": form_token(form), "idempotencyKey": form_key(form)}
    body = {**sent, "kind": "text", "label": "Once"}
    for _ in range(2):
        assert (await owner.post(place, data=body)).status_code == 303
    assert [key for key in await fields(client, space, goods) if "once" in key] == ["once"]
    foreign = {**body, "csrfToken": "x" * 43, "idempotencyKey": "other"}
    assert (await owner.post(place, data=foreign)).status_code == 403
    assert (await nobody.get(place)).status_code == 303


async def test_the_equal_call_has_the_body_of_the_form(owner: Visitor, goods: str) -> None:
    sent: Json = {"settings.min": "9", "settings.max": "1"}
    answer = await owner.send_form(
        f"/databases/{goods}/fields", kind="number", label="Weight", **sent
    )
    found = re.search(r"-d (&#39;.*?&#39;)", answer.text, re.DOTALL)
    assert found is not None
    body = json.loads(unescape(found[1]).strip("'"))
    assert body == {"label": "Weight", "kind": "number", "settings": {"min": 9, "max": 1}}


async def test_another_kind_keeps_what_was_typed(owner: Visitor, goods: str) -> None:
    place = f"/databases/{goods}/fields"
    typed: Json = {"label": HOSTILE, "key": "mine", "settings.min": "5", "required": "on"}
    for kind, kept in (("number", {"settings.min": "5"}), ("select", {}), ("currency", {})):
        page = await owner.send_form(place, kind=kind, row="kind", **typed)
        assert page.status_code == 200
        assert HOSTILE not in page.text
        shown = inputs(page.text)
        assert (shown["kind"], shown["label"], shown["key"]) == (kind, HOSTILE, "mine")
        assert kept.items() <= shown.items()
        assert ("options.1.name" in shown) is (kind == "select")
    assert (await owner.send_form(place, kind="pigeon", row="kind")).status_code == 400


@pytest.mark.parametrize(
    ("rows", "path", "fault"),
    [
        ([("", "field", "title")], "0", "Enter a name."),
        ([("a", "field", "title"), ("a", "literal", "5")], "1", "Use each name once."),
    ],
)
async def test_inputs_of_a_button_need_names(
    owner: Visitor, goods: str, rows: list[tuple[str, str, str]], path: str, fault: str
) -> None:
    keys = ("name", "type", "value")
    sent: Json = {
        f"settings.bindings.{place}.{key}": text
        for place, row in enumerate(rows)
        for key, text in zip(keys, row, strict=True)
    }
    answer = await owner.send_form(f"/databases/{goods}/fields", kind="button", label="Go", **sent)
    assert answer.status_code == 400
    assert f'id="h-settings.bindings.{path}.name" class="fault">{fault}' in answer.text


@pytest.mark.parametrize(
    "value", ["title", "5", 5, 1.5, True, None, "true", '"', ["a", 1], {"a": {"b": [1]}}, "[1", ""]
)
def test_a_literal_is_typed_and_read_back(value: object) -> None:
    controls = laid_out(settings_model(FieldKind.BUTTON), "settings", words={}, offers={})
    stored: Json = {"bindings": {"it": {"type": "literal", "value": value}}}
    texts = texts_of(controls, stored)
    assert values_of(controls, texts, stored) == stored
    if value not in (None, ""):
        assert values_of(controls, texts, {}) == stored
