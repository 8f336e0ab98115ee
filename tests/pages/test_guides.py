"""The guides of the documentation say what is true: their examples are sent as they stand."""

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import api.reference.guides
import runtime.errors
from api.reference.guides import guides
from api.reference.guides.parser import Guide, MalformedGuideError, Step, Topic, read_guide
from cli.supervisor.development import DevelopmentIssuer
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.structure import OUTPUTS
from runtime.errors import PlatformError
from tests.support.admins import admin_session
from tests.support.client import Client
from tests.support.spaces import Space

_PLACE = re.compile(r"{(\w+)}")


@pytest.mark.parametrize("guide", guides(), ids=[guide.slug for guide in guides()])
async def test_the_example_of_a_guide_works(
    client: Client, space: Space, issuer: DevelopmentIssuer, guide: Guide
) -> None:
    kept = {"workspaceId": str(space.id)}
    callers = {
        "key": client,
        "anonymous": client.with_token(None),
        "administrator": client.with_token(admin_session(issuer)),
    }
    for step in (step for topic in guide.topics for step in topic.steps):
        await _send(callers[step.by], step, kept)


async def _send(caller: Client, step: Step, kept: dict[str, str]) -> None:
    method, _, path = step.request.partition(" ")
    body = {} if step.body is None else {"json": _filled(step.body, kept)}
    headers = _filled(dict(step.headers), kept)
    answer = await caller.request(method, _filled(path, kept), headers=headers, **body)
    assert answer.status_code == step.status, (step.request, answer.text)
    answered = answer.json()
    # A dry run is shown whole: its changes stand beside the data.
    answered = answered if "changes" in answered else answered.get("data", answered)
    for name, place in step.keeps.items():
        value: Any = answered
        for key in place.split("."):
            value = value[key]
        kept[name] = value
    if step.answers is not None:
        _check_part(_filled(step.answers, kept), answered, step.request)


def _filled(value: Any, kept: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        # Only whole names in single braces: templates have two.
        return _PLACE.sub(lambda place: kept.get(place[1], place[0]), value)
    if isinstance(value, list):
        return [_filled(one, kept) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, kept) for key, one in value.items()}
    return value


def _check_part(part: Any, whole: Any, where: str) -> None:
    if isinstance(part, dict):
        for key, one in part.items():
            assert key in whole, (where, key, whole)
            _check_part(one, whole[key], f"{where} {key}")
    elif isinstance(part, list):
        assert len(part) == len(whole), (where, whole)
        for one, other in zip(part, whole, strict=True):
            _check_part(one, other, where)
    else:
        assert part == whole, where


@pytest.mark.parametrize("guide", guides(), ids=[guide.slug for guide in guides()])
async def test_each_topic_has_a_page(client: Client, guide: Guide) -> None:
    listed = (await client.get(f"/docs/{guide.slug}")).text
    for topic in guide.topics:
        assert f'href="/docs/{guide.slug}/{topic.name}"' in listed
        page = unescape(re.sub("<[^>]+>", "", await _page(client, guide.slug, topic.name)))
        for step in topic.steps:
            assert step.request in page
    assert any(topic.steps for topic in guide.topics)


async def _page(client: Client, slug: str, name: str) -> str:
    answer = await client.get(f"/docs/{slug}/{name}")
    assert answer.status_code == 200, (slug, name)
    return answer.text


async def test_the_graph_begins_with_how_often_a_node_is_tried(client: Client) -> None:
    page = (await client.get("/docs/graph")).text
    assert "<p class=lead>A node without <code>retry</code> is tried once." in page


async def test_each_node_tells_its_output(client: Client) -> None:
    for kind in NodeKind:
        page = await _page(client, "nodes", kind)
        told = page.partition('<h2 id="Output">')[2] + page.partition("<dt>Output</dt>")[2]
        assert told, kind
        for key in OUTPUTS[kind].keys:  # a field of that name
            assert f"<code>{key}</code>" in told, (kind, key)


async def test_each_error_tells_when_it_comes_and_what_to_do(client: Client) -> None:
    classes = [
        one
        for one in vars(runtime.errors).values()
        if isinstance(one, type) and issubclass(one, PlatformError) and one is not PlatformError
    ]
    assert len(classes) > 15
    for one in classes:
        assert one.__doc__, one
        assert one.advice, one
        page = await _page(client, "errors", one.code)
        assert f"<code>{one.status}</code>" in page
        assert f"<code>{one.tag}</code>" in page


def test_every_file_is_a_guide_of_the_navigation() -> None:
    files = Path(api.reference.guides.__file__).parent.glob("*.md")
    assert sorted(guide.slug for guide in guides()) == sorted(file.stem for file in files)


_TOPIC = "# tea\n\nHow to make tea.\n\n## pot\n\nIt is warmed first.\n\n"
_GET = "```http\nGET /v1/pot\n```\n\n"


def _read(path: Path, text: str) -> Guide:
    file = path / "tea.md"
    file.write_text(text, "utf-8")
    return read_guide(
        file, {"leaves": [("green", "80 °C")]}, {"cups": [Topic(name="mug", says="")]}
    )


def test_a_guide_is_read(tmp_path: Path) -> None:
    told = "- `milk`: as you\n  like\n\n{{ facts: leaves }}\n\n{{ shapes: Pot, Lid }}\n\n"
    post = '```http as anonymous\nPOST /v1/pot\nPrefer: wait=3\n\n{"cups": 2}\n```\n\nFor\ntwo.\n\n'
    answer = '```answer\n201\nkeep pot.id as {potId}\n\n{"cups": 2}\n```\n\n'
    guide = _read(tmp_path, f"{_TOPIC}{told}{post}{answer}{_GET}")
    first = Step(
        request="POST /v1/pot",
        body={"cups": 2},
        says="For two.",
        headers={"Prefer": "wait=3"},
        status=201,
        answers={"cups": 2},
        keeps={"potId": "pot.id"},
        by="anonymous",
    )
    pot = Topic(
        name="pot",
        says="It is warmed first.",
        facts=[("`milk`", "as you like"), ("green", "80 °C")],
        shapes=["Pot", "Lid"],
        steps=[first, Step(request="GET /v1/pot")],
    )
    assert guide == Guide(slug="tea", says="How to make tea.", topics=[pot])


def test_the_example_of_a_topic_that_code_tells_is_read(tmp_path: Path) -> None:
    guide = _read(tmp_path, f"# tea\n\n{{{{ topics: cups }}}}\n\n## mug\n\n{_GET}")
    assert guide.topics == [Topic(name="mug", says="", steps=[Step(request="GET /v1/pot")])]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: a guide begins with the heading # tea"),
        ("# coffee\n", "line 1: a guide begins with the heading # tea"),
        ("# tea\n\n- green: 80 °C\n", "line 3: fact does not belong here"),
        ("# tea\n\n{{ topics: pots }}\n", "line 3: there are no topics named pots; known: cups"),
        ("# tea\n\n{{ topics: cups\n", "line 3: this fence or placeholder has no end"),
        ("# tea\n\n## pot\n", "line 3: a topic says what it is about"),
        (f"{_TOPIC}## pot\n", "line 9: a topic has a heading ## and a name of its own"),
        (f"{_TOPIC}- milk\n", "line 9: '- milk' is not of the form"),
        (
            f"{_TOPIC}{{{{ facts: milk }}}}\n",
            "line 9: there are no facts named milk",
        ),
        (f"{_TOPIC}```json\n{{}}\n```\n", "line 9: json does not belong here"),
        (f"{_TOPIC}```http\nGET /v1/pot\n", "line 9: this fence or placeholder has no end"),
        (f"{_TOPIC}```http\n```\n", "line 10: '' is not of the form"),
        (f"{_TOPIC}```http\nBREW /v1/pot\n```\n", "line 10: 'BREW /v1/pot' is not of the form"),
        (f"{_TOPIC}```http\nGET /\nmilk\n```\n", "line 11: 'milk' is not of the form"),
        (f"{_TOPIC}```http\nGET /\n\n{{\n1}}\n```\n", "line 13: this is not valid JSON"),
        (f"{_TOPIC}```answer\n200\n```\n", "line 9: answer does not belong here"),
        (f"{_TOPIC}{_GET}```answer\nfine\n```\n", "line 14: 'fine' is not of the form"),
        (f"{_TOPIC}{_GET}```answer\n200\n```\n\nHot.\n", "line 13: a request is followed"),
    ],
)
def test_a_malformed_guide_is_refused_at_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(MalformedGuideError, match=re.escape(f"tea.md, {problem}")):
        _read(tmp_path, text)
