"""Home layouts over HTTP: replaced whole, compared as JSON, each member's own."""

from typing import Any

import pytest

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import Space


def widget(id_: str = "a", **parts: Any) -> Json:
    return {"id": id_, "kind": "recent", "x": 0, "y": 0, "w": 6, "h": 2, **parts}


def place(space: Space) -> str:
    return f"{space.path}/preferences/home-layout"


async def put(client: Client, space: Space, *widgets: Any) -> Json:
    answer = read(await client.put(place(space), json={"widgets": list(widgets)}))
    layout: Json = answer["homeLayout"]
    assert read(await client.get(place(space))) == answer
    return layout


async def test_there_is_an_empty_one_to_begin_with(client: Client, space: Space) -> None:
    assert read(await client.get(place(space))) == {"homeLayout": {"widgets": []}}


async def test_it_is_replaced_whole_and_answered_with_its_configs(
    client: Client, space: Space
) -> None:
    config = {"deep": [{"a": None, "b": 1.5, "c": True}], "": "ü"}
    both = [widget(config=config), widget("b", kind="my-own_2", x=6.5, w=5.5, config={})]
    assert (await put(client, space, *both))["widgets"] == both
    assert (await put(client, space, widget("c", config=None)))["widgets"] == [widget("c")]
    assert (await put(client, space))["widgets"] == []


async def test_unknown_kinds_are_kept(client: Client, space: Space) -> None:
    kinds = ["recentItems", "Recent", "quick.links", "my/widget", "Ä b", " ", "a" * 64, "🙂" * 64]
    placed = [widget(str(number), kind=kind) for number, kind in enumerate(kinds)]
    assert (await put(client, space, *placed))["widgets"] == placed


async def test_the_same_one_changes_nothing(client: Client, space: Space) -> None:
    one = widget(config={"a": 1, "b": [2, 3]})
    first = await put(client, space, one, widget("b"))
    same = dict(reversed({**one, "x": 0.0, "config": {"b": [2.0, 3], "a": 1}}.items()))
    assert (await put(client, space, same, widget("b")))["updatedAt"] == first["updatedAt"]
    other = await put(client, space, widget("b"), one)
    assert other["updatedAt"] > first["updatedAt"], "their order is a part of it"


async def test_everybody_has_their_own(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.VIEWER)
    await put(client, space, widget())
    other = client.with_token(token)
    await put(other, space, widget("b"))
    assert read(await client.get(place(space)))["homeLayout"]["widgets"] == [widget()]
    await space.remove(user_id)
    assert refused(await other.get(place(space))) == (404, "not_found")


DEEP: Json = {}
for _ in range(10):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    "widgets",
    [
        [widget(str(number)) for number in range(51)],
        [widget(), widget()],
        [widget(x=7)],
        [widget(x=-1)],
        [widget(x=12, w=0.5)],
        [widget(w=0)],
        [widget(w=13)],
        [widget(y=-0.1)],
        [widget(y=10_001)],
        [widget(h=0)],
        [widget(h=1_001)],
        [widget(x="0")],
        [widget(x=True)],
        [widget(x=None)],
        [widget("")],
        [widget("a" * 101)],
        [widget(id=1)],
        [widget(kind="")],
        [widget(kind="a" * 65)],
        [widget(kind="a\nb")],
        [widget(kind="a\x00")],
        [widget(kind="\x85")],
        [widget(kind=None)],
        [widget(config=[])],
        [widget(config={"a": "b" * 20_000})],
        [widget(config=DEEP)],
        [widget(color="red")],
        [{"id": "a", "kind": "recent"}],
        {},
        None,
        [None],
    ],
)
async def test_an_invalid_layout_is_refused(client: Client, space: Space, widgets: Any) -> None:
    before = await put(client, space, widget())
    answer = await client.put(place(space), json={"widgets": widgets})
    assert refused(answer) == (400, "validation_error")
    assert read(await client.get(place(space)))["homeLayout"] == before


async def test_fifty_widgets_fill_the_grid(client: Client, space: Space) -> None:
    full = [widget(str(number), x=0, w=12, y=number) for number in range(50)]
    assert (await put(client, space, *full))["widgets"] == full
