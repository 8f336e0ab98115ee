"""The page of a form for its makers: made, worded, opened, closed, answered."""

from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor, signed_in

HOSTILE = '"><script>alert(1)</script>'
FIELDS = [
    {"label": "Age", "kind": "number"},
    {"label": "Colour", "kind": "select", "options": [{"name": "Red"}, {"name": "Blue"}]},
    {"label": "Likes", "kind": "multi_select", "options": [{"name": "Tea"}]},
    {"label": "Owner", "kind": "person"},
]


@pytest.fixture
async def answers(client: Client, space: Space) -> str:
    body = {"label": f"Answers {HOSTILE}", "fields": FIELDS}
    return str(read(await client.post(f"{space.path}/databases", json=body), 201)["id"])


@pytest.fixture
async def form(client: Client, space: Space, answers: str) -> Any:
    body = {"label": f"Ask {HOSTILE}", "databaseId": answers}
    return read(await client.post(f"{space.path}/forms", json=body), 201)


def page_of(space: Space, form: Any) -> str:
    return f"/workspaces/{space.id}/forms/{form['id']}"


async def stored(client: Client, space: Space, form: Any) -> Any:
    return read(await client.get(f"{space.path}/forms/{form['id']}"))


async def test_a_form_is_made_opened_and_answered(
    space: Space, owner: Visitor, nobody: Visitor, answers: str
) -> None:
    place = f"/workspaces/{space.id}/forms"
    new = await owner.get(f"{place}/new?database={answers}")
    assert f'value="{answers}" selected' in new.text
    made = await owner.send_form(place, f"{place}/new", label="Tell us", database=answers)
    assert made.status_code == 303
    path = made.headers["location"]
    page = await owner.get(path)
    assert (page.status_code, "private" in page.text, HOSTILE in page.text) == (200, True, False)
    # A person is never asked for.
    assert page.text.count("Remove") == 4 * 2

    settings = f"{path}/settings"
    words = {
        "title": "Tell us all",
        "submitLabel": "Send",
        "confirmation": "Thank you.",
        "public": "on",
        "accepting": "on",
        "maxSubmissions": "1",
        "closesAt": "2099-01-31T09:30",
        "version": "1",
    }
    saved = await owner.send_form(settings, settings, None, **words)
    assert (saved.status_code, saved.headers["location"]) == (303, f"{path}?notice=saved")
    opened = await owner.get(path)
    assert "Anyone with the link can respond" in opened.text
    public = "/forms/" + opened.text.partition('<a href="/forms/')[2].partition('"')[0]
    assert "Tell us all" in (await nobody.get(public)).text
    assert "Thank you." in (await nobody.post(public, data={"field.title": "Ada"})).text
    answered = await owner.get(path)
    assert ("1 of 1" in answered.text, ">Ada</a>" in answered.text) == (True, True)
    assert "Limit reached" in answered.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"public": True, "accepting": False}, "Not accepting responses"),
        ({"public": True, "closesAt": "2020-01-01T00:00:00Z"}, "Deadline passed"),
        ({"public": False}, "Not public yet"),
    ],
)
async def test_a_form_says_why_it_takes_no_answers(
    client: Client, space: Space, owner: Visitor, form: Any, change: Any, words: str
) -> None:
    read(await client.patch(f"{space.path}/forms/{form['id']}", json=change))
    assert words in (await owner.get(page_of(space, form))).text


async def test_a_field_that_is_required_since_closes_the_form(
    client: Client, space: Space, owner: Visitor, form: Any, answers: str
) -> None:
    read(await client.patch(f"{space.path}/forms/{form['id']}", json={"public": True}))
    body = {"label": "Proof", "kind": "text", "required": True}
    read(await client.post(f"/v1/databases/{answers}/fields", json=body), 201)
    page = await owner.get(page_of(space, form))
    assert "not always asked: Proof" in page.text


async def test_questions_are_worded_ordered_taken_out_and_added(
    client: Client, space: Space, owner: Visitor, form: Any
) -> None:
    path = page_of(space, form)
    question = f"{path}/questions/likes"
    words = {
        "label": "What do you like?",
        "help": "Any",
        "required": "on",
        "if": "colour",
        "comparison": "is",
        "value": "red",
    }
    assert (await owner.send_form(question, question, None, **words)).status_code == 303
    likes = (await stored(client, space, form))["fields"][3]
    assert likes == {
        "key": "likes",
        "required": True,
        "label": "What do you like?",
        "help": "Any",
        "visibleIf": {"field": "colour", "op": "eq", "value": "red"},
    }
    shown = await owner.get(question)
    assert 'value="colour" selected' in shown.text
    assert 'value="is" selected' in shown.text
    # A condition is about an earlier question.
    refused = await owner.send_form(f"{path}/questions/colour/move", path, to="down")
    assert refused.status_code == 400
    assert (await owner.send_form(f"{path}/questions/age/move", path, to="up")).status_code == 303
    assert (await owner.send_form(f"{path}/questions/likes/remove", path)).status_code == 303
    keys = [one["key"] for one in (await stored(client, space, form))["fields"]]
    assert keys == ["age", "title", "colour"]
    assert 'value="likes"' in (await owner.get(path)).text
    assert (await owner.send_form(f"{path}/questions", path, key="likes")).status_code == 303
    assert (await stored(client, space, form))["fields"][3]["key"] == "likes"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"if": "colour"}, "Choose a comparison"),
        ({"if": "owner", "comparison": "filled"}, "is not the key of a field"),
        ({"if": "age", "comparison": "more", "value": "young"}, "Enter a valid number."),
        ({"if": "nothing", "comparison": "filled"}, "Choose an earlier question"),
    ],
)
async def test_an_impossible_condition_is_reported_beside_it(
    client: Client, space: Space, owner: Visitor, form: Any, fields: Any, words: str
) -> None:
    question = f"{page_of(space, form)}/questions/likes"
    answer = await owner.send_form(question, question, label="Kept words", **fields)
    assert answer.status_code == 400
    assert words in answer.text
    assert "Kept words" in answer.text
    assert (await stored(client, space, form))["version"] == 1


async def test_a_filter_of_the_api_is_kept(
    client: Client, space: Space, owner: Visitor, form: Any
) -> None:
    condition = {"and": [{"field": "age", "op": "gt", "value": 3}]}
    fields = [{"key": "title"}, {"key": "age"}, {"key": "colour", "visibleIf": condition}]
    read(await client.patch(f"{space.path}/forms/{form['id']}", json={"fields": fields}))
    question = f"{page_of(space, form)}/questions/colour"
    assert "custom filter (API)" in (await owner.get(question)).text
    await owner.send_form(question, question, None, **{"label": "Which?", "if": "kept"})
    colour = (await stored(client, space, form))["fields"][2]
    assert (colour["label"], colour["visibleIf"]) == ("Which?", condition)


async def test_a_form_that_was_changed_meanwhile_is_left(
    client: Client, space: Space, owner: Visitor, form: Any
) -> None:
    read(await client.patch(f"{space.path}/forms/{form['id']}", json={"title": "Theirs"}))
    settings = f"{page_of(space, form)}/settings"
    words = {"title": "Mine", "submitLabel": "Send", "confirmation": "Yes", "version": "1"}
    answer = await owner.send_form(settings, settings, None, **words)
    assert (answer.status_code, 'value="Mine"' in answer.text) == (409, True)
    assert "changed since" in answer.text
    assert (await stored(client, space, form))["title"] == "Theirs"


async def test_a_viewer_looks_and_a_guest_finds_nothing(
    app: FastAPI, space: Space, form: Any
) -> None:
    path = page_of(space, form)
    viewer_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer_id) as viewer:
        page = await viewer.get(path)
        assert (page.status_code, "Remove" in page.text) == (200, False)
        assert (await viewer.get(f"{path}/settings")).status_code == 403
        assert (await viewer.send_form(f"{path}/questions", key="age")).status_code == 403
    guest_id, _ = await space.member(Role.GUEST)
    async with await signed_in(app, space, guest_id) as guest:
        assert (await guest.get(path)).status_code == 404


async def test_a_member_without_access_to_the_database_sees_no_answers(
    client: Client, nobody: Visitor, app: FastAPI, space: Space, form: Any, answers: str
) -> None:
    read(await client.patch(f"{space.path}/forms/{form['id']}", json={"public": True}))
    await nobody.post(f"/forms/{form['itemId']}", data={"field.title": "Ada"})
    item = read(await client.get(f"{space.path}/databases/{answers}"))["itemId"]
    read(await client.patch(f"/v1/items/{item}", json={"accessMode": "restricted"}))
    viewer_id, _ = await space.member(Role.VIEWER)
    async with await signed_in(app, space, viewer_id) as viewer:
        page = await viewer.get(page_of(space, form))
        assert page.status_code == 200
        assert ("Ada" in page.text, "Responses" in page.text.partition("<dl")[2]) == (False, True)
        assert "access to the records" in page.text
        assert "Colour" not in page.text
