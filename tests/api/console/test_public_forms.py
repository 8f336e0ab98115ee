"""A public form in a browser: asked, answered, wrong, closed, private."""

from typing import Any

import pytest

from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space
from tests.support.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>'
FIELDS = [
    {"label": "Age", "kind": "number", "settings": {"min": 18}},
    {"label": "Colour", "kind": "select", "options": [{"name": "Red"}, {"name": "Blue"}]},
    {"label": "Likes", "kind": "multi_select", "options": [{"name": "Tea"}, {"name": "Milk"}]},
    {"label": "Why", "kind": "long_text"},
]
QUESTIONS = [
    {"key": "title", "required": True, "label": f"Name {HOSTILE}", "help": "As on your card"},
    {"key": "age", "required": True},
    {"key": "colour"},
    {"key": "likes"},
    {"key": "why", "visibleIf": {"field": "colour", "op": "eq", "value": "red"}},
]


@pytest.fixture
async def asked(client: Client, space: Space) -> Any:
    """A public form of a database."""
    body = {"label": "Answers", "fields": FIELDS}
    database = read(await client.post(f"{space.path}/databases", json=body), 201)
    form = {"label": "Ask", "databaseId": database["id"], "public": True, "title": "Tell us"}
    return read(await client.post(f"{space.path}/forms", json={**form, "fields": QUESTIONS}), 201)


async def test_anybody_answers_and_is_thanked(client: Client, nobody: Visitor, asked: Any) -> None:
    path = f"/forms/{asked['itemId']}"
    page = await nobody.get(path)
    assert page.status_code == 200
    assert "As on your card" in page.text
    assert HOSTILE not in page.text
    answers = {
        "field.title": "Ada",
        "field.age": "36",
        "field.colour": "red",
        "field.likes.tea": "on",
        "field.likes.milk": "on",
        "field.why": "One\r\nTwo",
    }
    thanked = await nobody.post(path, data=answers)
    assert (thanked.status_code, "Thank you" in thanked.text) == (200, True)
    records = read(await client.get(f"/v1/databases/{asked['databaseId']}/records"))["records"]
    assert records[0]["data"] == {
        "title": "Ada",
        "age": 36,
        "colour": "red",
        "likes": ["tea", "milk"],
        "why": "One\nTwo",
    }


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"field.title": "Ada", "field.age": "young"}, "no number"),
        ({"field.title": "Ada", "field.age": "12"}, "at least 18"),
        ({"field.age": "36"}, "required"),
        ({"field.title": "Ada", "field.age": "36", "field.colour": "green"}, "option"),
    ],
)
async def test_what_is_wrong_is_told_beside_its_question(
    client: Client, nobody: Visitor, asked: Any, answers: dict[str, str], words: str
) -> None:
    answer = await nobody.post(f"/forms/{asked['itemId']}", data=answers)
    assert answer.status_code == 400
    assert 'class="problem"' in answer.text
    assert words in answer.text
    if "field.title" in answers:
        assert 'value="Ada"' in answer.text
    found = read(await client.get(f"/v1/databases/{asked['databaseId']}/records"))
    assert found["records"] == []


async def test_a_closed_form_says_so_and_a_private_one_is_not_there(
    client: Client, space: Space, nobody: Visitor, asked: Any
) -> None:
    path, own = f"/forms/{asked['itemId']}", f"{space.path}/forms/{asked['id']}"
    read(await client.patch(own, json={"accepting": False}))
    closed = await nobody.get(path)
    assert (closed.status_code, "takes no answers" in closed.text) == (200, True)
    sent = await nobody.post(path, data={"field.title": "Ada", "field.age": "36"})
    assert sent.status_code == 404
    read(await client.patch(own, json={"accepting": True, "public": False}))
    assert (await nobody.get(path)).status_code == 404


async def test_another_site_sends_no_answers(nobody: Visitor, asked: Any) -> None:
    answers = {"field.title": "Ada", "field.age": "36"}
    sent = await nobody.post(
        f"/forms/{asked['itemId']}", data=answers, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert sent.status_code == 403
