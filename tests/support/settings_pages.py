"""The settings of a workspace as a person without scripts uses them."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from html import unescape

import httpx2

from models.core.access.rules import Role
from models.people.experiments.shapes import CreateExperiment
from tests.support.spaces import Space
from tests.support.visitor import Visitor

Visit = Callable[[Role], Awaitable[Visitor]]

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"
"""A name that is markup, ends an attribute and is a template."""
INERT = "&lt;img src=x onerror=alert(1)&gt;&#39;&#34;{{7*7}}"

_NEXT = re.compile(r'href="([^"]+)" rel="next"')
_COMMAND = re.compile(r'<code class="command" data-copy>(.*?)</code>', re.DOTALL)


def settings_of(space: Space, *parts: object) -> str:
    """The path of a page of the settings."""
    return "/".join((space.path.removeprefix("/v1"), "settings", *map(str, parts)))


def next_of(page: httpx2.Response) -> str | None:
    """The address of the next page of a list, if there is one."""
    found = _NEXT.search(page.text)
    return None if found is None else unescape(found[1])


def commands_of(page: httpx2.Response) -> list[str]:
    """The texts on a page that can be copied."""
    return [unescape(text) for text in _COMMAND.findall(page.text)]


def assert_inert(page: httpx2.Response) -> None:
    """The page shows any input as text."""
    assert page.status_code == 200, page.text
    assert INERT in page.text
    assert "<img" not in page.text


def a_draft(name: str, flag: str) -> CreateExperiment:
    """An experiment that has not begun."""
    variants = [
        {"id": "control", "label": "As it is", "split": 50},
        {"id": "short", "label": name, "split": 50},
    ]
    body = {"name": name, "targetType": "flag", "flagKey": flag, "variants": variants}
    return CreateExperiment.model_validate_json(json.dumps(body))


async def posted(
    visitor: Visitor, page: str, path: str, fields: Mapping[str, str]
) -> httpx2.Response:
    """The answer to a form of a page, with these fields filled in."""
    return await visitor.post(path, data={"csrfToken": await visitor.token(page), **fields})


async def sent(visitor: Visitor, page: str, path: str, **fields: str) -> str:
    """The path to which a form that was taken leads."""
    answer = await posted(visitor, page, path, fields)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])
