"""A public form in a browser: asked, answered, wrong, closed, private."""

import asyncio
import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI

from api.kernel.limits import RateLimits
from runtime.configuration.settings import Settings
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


async def test_any_visitor_answers_and_is_thanked(
    client: Client, nobody: Visitor, asked: Any
) -> None:
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
        ({"field.title": "Ada", "field.age": "young"}, "valid number"),
        ({"field.title": "Ada", "field.age": "12"}, "at least 18"),
        ({"field.age": "36"}, "required"),
        ({"field.title": "Ada", "field.age": "36", "field.colour": "green"}, "option"),
    ],
)
async def test_each_error_is_shown_beside_its_question(
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
    assert (closed.status_code, "not accepting responses" in closed.text) == (200, True)
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


ANSWERS = {"field.title": "Ada", "field.age": "36"}
_KEY = re.compile(r'name="idempotencyKey" value="([^"]+)"')


async def _records(client: Client, asked: Any) -> int:
    listed = await client.get(f"/v1/databases/{asked['databaseId']}/records")
    return len(read(listed)["records"])


async def test_a_page_that_is_sent_twice_makes_one_record(
    client: Client, nobody: Visitor, asked: Any
) -> None:
    """A double click, a page that is reloaded, and one that was gone back to send the same."""
    path = f"/forms/{asked['itemId']}"
    page = await nobody.get(path)
    assert "no-store" not in page.headers["Cache-Control"]
    (key,) = _KEY.findall(page.text)
    sent = {**ANSWERS, "idempotencyKey": key}
    clicks = await asyncio.gather(*(nobody.post(path, data=sent) for _ in range(6)))
    reloaded = await nobody.post(path, data=sent)
    for answer in (*clicks, reloaded):
        assert (answer.status_code, "Thank you" in answer.text) == (200, True)
    assert await _records(client, asked) == 1
    changed = await nobody.post(path, data={**sent, "field.title": "Bob"})
    assert (changed.status_code, "Already submitted" in changed.text) == (422, True)
    assert f'href="{path}"' in changed.text
    anew = _KEY.findall((await nobody.get(path)).text)
    assert anew != [key]
    assert (await nobody.post(path, data={**ANSWERS, "idempotencyKey": anew[0]})).is_success
    assert await _records(client, asked) == 2


async def test_a_wrong_answer_that_is_put_right_is_taken(
    client: Client, nobody: Visitor, asked: Any
) -> None:
    path = f"/forms/{asked['itemId']}"
    (key,) = _KEY.findall((await nobody.get(path)).text)
    wrong = await nobody.post(path, data={"field.title": "Ada", "idempotencyKey": key})
    assert wrong.status_code == 400
    for sent in (key, *_KEY.findall(wrong.text)):
        answer = await nobody.post(path, data={**ANSWERS, "idempotencyKey": sent})
        assert (answer.status_code, "Thank you" in answer.text) == (200, True)
    assert await _records(client, asked) == 2


async def test_too_many_answers_are_kept_on_a_page_to_be_sent_later(
    app: FastAPI,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    nobody: Visitor,
    asked: Any,
) -> None:
    few = {"rate_limit_form_address": 2, "rate_limit_form_address_burst": 1}
    limits = RateLimits(settings.model_copy(update=few))
    monkeypatch.setattr(app.state.services, "limits", limits)
    path = f"/forms/{asked['itemId']}"
    assert (await nobody.post(path, data=ANSWERS)).is_success
    sent = {**ANSWERS, "field.title": HOSTILE, "idempotencyKey": "mine"}
    refused = await nobody.post(path, data=sent)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")
    assert "Too many submissions. Try again in 30 seconds." in refused.text
    assert HOSTILE not in refused.text
    fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', refused.text)
    assert {name: unescape(value) for name, value in fields} == sent
    monkeypatch.undo()
    assert (await nobody.post(path, data=sent)).is_success
    assert await _records(client, asked) == 2


async def test_links_without_an_account_are_limited_by_address(
    app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    few = {"rate_limit_visitor": 0.1, "rate_limit_visitor_burst": 1}
    anybody = client.with_token(None)
    async with Visitor(app) as visitor:
        calls = {
            "sign-in": lambda: visitor.post(f"/sign-in/{'a' * 43}"),
            "decision": lambda: visitor.post("/approvals/a", data={"decision": "approved"}),
            "shared page": lambda: visitor.post(f"/v1/share/{uuid4()}", data={"token": "a"}),
            "share link": lambda: anybody.get(f"/v1/share/{uuid4()}?token=a"),
            "resume URL": lambda: anybody.post("/v1/resume/a", json={}),
        }
        for name, call in calls.items():
            limits = RateLimits(settings.model_copy(update=few))
            monkeypatch.setattr(app.state.services, "limits", limits)
            answers = [await call(), await call()]
            assert [one.status_code == 429 for one in answers] == [False, True], name
            assert answers[1].headers["Retry-After"] == "10"


LINKED = [
    {"key": "title"},
    {"key": "age", "hidden": True},
    {"key": "colour", "hidden": True},
    {"key": "likes"},
    {"key": "why", "hidden": True},
]


async def _linked(client: Client, space: Space, asked: Any) -> str:
    read(await client.patch(f"{space.path}/forms/{asked['id']}", json={"fields": LINKED}))
    return f"/forms/{asked['itemId']}"


async def test_a_link_fills_in_answers_that_are_shown_or_hidden(
    client: Client, space: Space, nobody: Visitor, asked: Any
) -> None:
    path = await _linked(client, space, asked)
    query = {"title": HOSTILE, "age": "20", "colour": "BLUE", "likes": "milk, Tea, gin", "utm": "x"}
    page = (await nobody.get(path, params=query)).text
    assert (HOSTILE in page, "Age" in page, "gin" in page, "utm" in page) == (False,) * 4
    assert '<input type="hidden" name="field.age" value="20">' in page
    assert '<input type="hidden" name="field.colour" value="blue">' in page
    assert page.count("checked") == 2
    sent = re.findall(r'name="(field\.[^"]+)" value="([^"]*)"', page)
    answers = {name: unescape(value) for name, value in sent}
    assert (await nobody.post(path, data=answers)).status_code == 200
    [record] = read(await client.get(f"/v1/databases/{asked['databaseId']}/records"))["records"]
    assert (record["title"], record["data"]["age"]) == (HOSTILE, 20)
    assert record["data"]["colour"] == "blue"


@pytest.mark.parametrize("age", ["young", "12", "1" * 400, "\x00"])
async def test_a_hidden_answer_that_does_not_fit_keeps_no_visitor_out(
    client: Client, space: Space, nobody: Visitor, asked: Any, age: str
) -> None:
    path = await _linked(client, space, asked)
    assert (await nobody.get(path, params={"age": age})).status_code in {200, 400}
    sent = await nobody.post(path, data={"field.title": "Ada", "field.age": age})
    if sent.status_code == 400:
        assert age == "\x00"
        return
    [record] = read(await client.get(f"/v1/databases/{asked['databaseId']}/records"))["records"]
    assert (record["title"], record["data"].get("age")) == ("Ada", None)


async def test_a_shown_answer_that_does_not_fit_is_refused_beside_its_question(
    client: Client, space: Space, nobody: Visitor, asked: Any
) -> None:
    path = await _linked(client, space, asked)
    sent = await nobody.post(path, data={"field.title": "x" * 20_000, "field.age": "1"})
    assert (sent.status_code, 'class="problem"' in sent.text) == (400, True)


async def test_a_hidden_question_is_not_required(client: Client, space: Space, asked: Any) -> None:
    question = {"key": "age", "hidden": True, "required": True}
    answer = await client.patch(f"{space.path}/forms/{asked['id']}", json={"fields": [question]})
    assert (answer.status_code, "fields.0.required" in answer.text) == (400, True)
    needed = {"label": "Needed", "kind": "text", "required": True}
    path = f"/v1/databases/{asked['databaseId']}/fields"
    key = read(await client.post(path, json=needed), 201)["key"]
    hidden = {"fields": [{"key": key, "hidden": True}]}
    answer = await client.patch(f"{space.path}/forms/{asked['id']}", json=hidden)
    assert (answer.status_code, key in answer.text) == (400, True)
