"""Forms of views, without scripts: made with all their parts, changed, deleted."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from models.data.views.rules.kinds import ViewKind
from tests.api.console.test_fields import HOSTILE, Json, inputs
from tests.support.automations import read
from tests.support.client import Client
from tests.support.related import make_database
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

pytestmark = pytest.mark.takes(seconds=10)

SENT: Json = {
    "label": "Open",
    "kind": "board",
    "manifest.stackFieldKey": "state",
    "manifest.groupBy.field": "state",
    "manifest.sorts.0.field": "price",
    "manifest.sorts.0.direction": "desc",
    "manifest.sorts.2.field": "title",
    "manifest.sorts.2.direction": "asc",
    "join": "or",
    "filter.0.field": "price",
    "filter.0.comparison": "more",
    "filter.0.value": "5",
    "filter.1.field": "state",
    "filter.1.comparison": "is",
    "filter.1.value": "open",
    "fields.0.key": "price",
    "fields.0.visible": "on",
    "fields.1.key": "title",
    "fields.1.visible": "on",
    "fields.2.key": "state",
}
MANIFEST = {
    "stackFieldKey": "state",
    "groupBy": {"field": "state"},
    "sorts": [{"field": "price", "direction": "desc"}, {"field": "title", "direction": "asc"}],
    "filter": {
        "or": [
            {"field": "price", "op": "gt", "value": 5},
            {"field": "state", "op": "eq", "value": "open"},
        ]
    },
    "fields": [
        {"key": "price", "visible": True},
        {"key": "title", "visible": True},
        {"key": "state", "visible": False},
    ],
}


@pytest.fixture
async def goods(client: Client, space: Space) -> str:
    """The id of a database with a price and a state."""
    state = {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": HOSTILE}]}
    return await make_database(client, space, "Goods", {"label": "Price", "kind": "number"}, state)


async def views(client: Client, goods: str) -> list[Json]:
    listed: list[Json] = read(await client.get(f"/v1/databases/{goods}/views"))["views"]
    return listed


async def test_a_view_is_made_with_all_its_parts(
    client: Client, owner: Visitor, space: Space, goods: str
) -> None:
    page = (await owner.get(f"/workspaces/{space.id}/databases/{goods}")).text
    assert f"/databases/{goods}/views/new" in page
    form = (await owner.get(f"/databases/{goods}/views/new?kind=board")).text
    assert all(f'name="{name}"' in form for name in SENT if not name.startswith("manifest.sorts.2"))
    answer = await owner.send_form(f"/databases/{goods}/views", **SENT)
    assert answer.status_code == 303, answer.text
    made = (await views(client, goods))[-1]
    assert answer.headers["location"].endswith(f"/databases/{goods}?view={made['id']}")
    assert (made["label"], made["kind"], made["manifest"]) == ("Open", "board", MANIFEST)
    shown = (await owner.get(answer.headers["location"])).text
    own = f"/databases/{goods}/views/{made['id']}/edit"
    assert own in shown
    # The form as it is shown, sent back, changes nothing.
    sent = inputs((await owner.get(own)).text)
    assert (await owner.send_form(own, **sent)).status_code == 303
    again = (await views(client, goods))[-1]
    assert again["manifest"] == MANIFEST
    assert (await owner.send_form(own, **sent)).status_code == 409
    changed = {**inputs((await owner.get(own)).text), "label": HOSTILE, "kind": "table"}
    assert (await owner.send_form(own, **changed)).status_code == 303
    page = (await owner.get(own)).text
    assert HOSTILE not in page
    assert (await owner.send_form(own.replace("/edit", "/delete"))).status_code == 303
    assert len(await views(client, goods)) == 1
    left = (await views(client, goods))[0]["id"]
    last = await owner.send_form(f"/databases/{goods}/views/{left}/delete")
    assert last.status_code == 409


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ({"label": ""}, 'id="h-label" class="fault"'),
        (
            {"manifest.stackFieldKey": "price"},
            "must be the key of an option, person or checkbox field",
        ),
        ({"manifest.stackFieldKey": ""}, "is required for a board view"),
        ({"filter.0.value": "cheap"}, "Enter a valid number"),
        ({"filter.0.comparison": ""}, "Choose a field and a comparison."),
        ({"filter.0.value": ""}, "Enter a value to compare with."),
        ({"filter.0.field": "gone"}, "Choose a field and a comparison."),
        ({"manifest.sorts.0.field": "gone"}, 'class="fault"'),
    ],
)
async def test_a_refused_view_comes_back(
    client: Client, owner: Visitor, goods: str, sent: dict[str, str], fault: str
) -> None:
    answer = await owner.send_form(f"/databases/{goods}/views", **{**SENT, **sent})
    assert answer.status_code == 400, answer.text
    assert fault in answer.text
    assert inputs(answer.text)["manifest.groupBy.field"] == "state"
    assert len(await views(client, goods)) == 1


async def test_fields_are_put_in_order_before_the_view_is_saved(
    client: Client, owner: Visitor, goods: str
) -> None:
    place = f"/databases/{goods}/views"
    shown = inputs((await owner.send_form(place, row="down.0", **SENT)).text)
    assert [shown[f"fields.{n}.key"] for n in range(3)] == ["title", "price", "state"]
    assert "fields.2.visible" not in shown
    for button in ("up.0", "up.9", "down.x"):
        assert (await owner.send_form(place, row=button, **SENT)).status_code == 200
    assert len(await views(client, goods)) == 1


async def test_parts_that_the_form_has_not_stay(client: Client, owner: Visitor, goods: str) -> None:
    manifest: dict[str, Any] = {
        "filter": {"and": [{"or": [{"field": "price", "op": "gt", "value": 5}]}]},
        "groupBy": [{"field": "state", "direction": "desc"}, {"field": "price"}],
        "aggregates": [{"op": "count"}],
        "fields": [{"key": "price", "width": 90, "visible": True}],
        "own": {"colour": "red"},
    }
    body = {"label": "Whole", "manifest": manifest}
    made = read(await client.post(f"/v1/databases/{goods}/views", json=body), 201)
    own = f"/databases/{goods}/views/{made['id']}/edit"
    page = (await owner.get(own)).text
    assert "Keep the filter set by the API" in page
    assert (await owner.send_form(own, **inputs(page))).status_code == 303
    after = (await views(client, goods))[-1]["manifest"]
    assert {**after, "fields": after["fields"][:1]} == manifest
    assert [one["visible"] for one in after["fields"]] == [True, False, False]


async def test_a_viewer_makes_no_view(
    app: FastAPI, client: Client, space: Space, goods: str
) -> None:
    user_id, _ = await space.member(Role.VIEWER)
    (view,) = await views(client, goods)
    async with await signed_in(app, space, user_id) as viewer:
        page = (await viewer.get(f"/workspaces/{space.id}/databases/{goods}")).text
        assert "/views/new" not in page
        for path in ("new", f"{view['id']}/edit"):
            assert (await viewer.get(f"/databases/{goods}/views/{path}")).status_code == 403


OWN = {
    ViewKind.BOARD: {"stackFieldKey"},
    ViewKind.CALENDAR: {"dateFieldKey"},
    ViewKind.TIMELINE: {"dateFieldKey", "endDateFieldKey"},
    ViewKind.GALLERY: {"coverFieldKey"},
    ViewKind.CHART: {
        "chart.type",
        "chart.xFieldKey",
        "chart.aggregate.op",
        "chart.aggregate.field",
    },
    ViewKind.FORM: {"form.title", "form.description", "form.submitLabel", "form.confirmation"},
}
"""The settings of each kind; the others have none."""


@pytest.mark.long
@pytest.mark.parametrize("kind", ViewKind)
async def test_the_form_has_the_settings_of_its_kind_alone(
    owner: Visitor, goods: str, kind: ViewKind
) -> None:
    place = f"/databases/{goods}/views"
    every = set().union(*OWN.values())
    chosen = await owner.send_form(place, kind=kind.value, label=HOSTILE, row="kind")
    assert chosen.status_code == 200
    for page in (chosen.text, (await owner.get(f"{place}/new?kind={kind.value}")).text):
        shown = {name for name in every if f'name="manifest.{name}"' in page}
        assert shown == OWN.get(kind, set())
    # Without scripts, too, what was typed stays when another kind is chosen.
    assert inputs(chosen.text)["label"] == HOSTILE
    assert inputs(chosen.text)["kind"] == kind.value


async def test_a_chart_is_made_and_stays_as_it_is(
    client: Client, owner: Visitor, goods: str
) -> None:
    place = f"/databases/{goods}/views"
    sent: Json = {
        **inputs((await owner.get(f"{place}/new?kind=chart")).text),
        "label": "Turnover",
        "manifest.chart.type": "bar",
        "manifest.chart.xFieldKey": "state",
        "manifest.chart.aggregate.op": "sum",
        "manifest.chart.aggregate.field": "price",
    }
    wrong = await owner.send_form(place, **{**sent, "manifest.chart.xFieldKey": ""})
    assert (wrong.status_code, inputs(wrong.text)["label"]) == (400, "Turnover")
    assert 'id="h-manifest.chart.xFieldKey" class="fault"' in wrong.text
    assert (await owner.send_form(place, **sent)).status_code == 303
    made = (await views(client, goods))[-1]
    chart = {"type": "bar", "xFieldKey": "state", "aggregate": {"op": "sum", "field": "price"}}
    assert (made["kind"], made["manifest"]["chart"]) == ("chart", chart)
    own = f"{place}/{made['id']}/edit"
    assert (await owner.send_form(own, **inputs((await owner.get(own)).text))).status_code == 303
    assert (await views(client, goods))[-1]["manifest"] == made["manifest"]
    counted: Json = {**inputs((await owner.get(own)).text), "manifest.chart.aggregate.op": ""}
    assert (await owner.send_form(own, **counted)).status_code == 303
    assert "aggregate" not in (await views(client, goods))[-1]["manifest"]["chart"]


@pytest.mark.long
async def test_a_form_is_made_with_its_questions(
    client: Client, owner: Visitor, goods: str
) -> None:
    place = f"/databases/{goods}/views"
    sent = inputs((await owner.get(f"{place}/new?kind=form")).text)
    sent |= {"label": "Ask", "manifest.form.title": "Tell us", "manifest.form.submitLabel": "Send"}
    assert "join" not in sent, "a form has no filter"
    place_of = {text: name.removesuffix("key") for name, text in sent.items()}
    del sent[f"{place_of['state']}visible"]
    assert (await owner.send_form(place, **sent)).status_code == 303
    made = (await views(client, goods))[-1]
    form = made["manifest"]["form"]
    assert (made["kind"], form["title"], form["submitLabel"]) == ("form", "Tell us", "Send")
    assert [one["key"] for one in form["fields"]] == ["title", "price"]
    own = f"{place}/{made['id']}/edit"
    assert (await owner.send_form(own, **inputs((await owner.get(own)).text))).status_code == 303
    assert (await views(client, goods))[-1]["manifest"] == made["manifest"]
    none = {name: text for name, text in sent.items() if not name.endswith(".visible")}
    refused = await owner.send_form(place, **none)
    assert (refused.status_code, inputs(refused.text)["label"]) == (400, "Ask")
