"""How the OpenAPI document is served, and what it says and does not say."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from api.app import WorkspaceApi, create_app
from api.kernel import openapi
from api.openapi_file import openapi_text
from runtime.settings import Settings
from tests.support.client import Client

DOCUMENT: dict[str, Any] = json.loads(openapi_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


async def test_the_document_is_served_compressed_and_only_when_it_has_changed(
    client: Client,
) -> None:
    answer = await client.get("/openapi.json", headers={"Accept-Encoding": "br;q=1, gzip"})
    assert answer.json() == DOCUMENT
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < 200_000
    assert "accept-encoding" in answer.headers["vary"].lower()
    plain = await client.get("/openapi.json", headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == DOCUMENT
    assert plain.headers["etag"] != answer.headers["etag"]
    for one, coding in ((answer, "gzip"), (plain, "identity")):
        same = {"If-None-Match": f'"other", W/{one.headers["etag"]}', "Accept-Encoding": coding}
        again = await client.get("/openapi.json", headers=same)
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == one.headers["etag"]


async def test_the_document_is_made_before_the_first_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: FastAPI = create_app(settings, background=())
    assert isinstance(app, WorkspaceApi)
    async with app.router.lifespan_context(app):
        monkeypatch.setattr(openapi, "render", None)
        assert json.loads(app.document.content) == DOCUMENT


def test_the_document_names_its_server() -> None:
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/"]


def test_a_change_has_no_defaults() -> None:
    changes = [
        methods["patch"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for methods in DOCUMENT["paths"].values()
        if "application/json" in methods.get("patch", {}).get("requestBody", {}).get("content", {})
        and "$ref" in methods["patch"]["requestBody"]["content"]["application/json"]["schema"]
    ]
    assert "#/components/schemas/UpdateItem" in changes
    for change in changes:
        properties = SCHEMAS[change.split("/")[-1]]["properties"]
        assert not [name for name, schema in properties.items() if "default" in schema], change


INTERNAL = re.compile(
    r"\b(?:decisions|ADR|docs/adr|reliability|issue \d+)\b|\b[CD]\d{1,2}\b"
    r"|\b(?:the )?interface[.,)]|:(?:class|meth|func):|\b\w+\.(?:rules|shapes|commands|queries)\b"
)


def test_no_text_of_the_document_speaks_of_what_its_reader_cannot_see() -> None:
    texts = list(_texts(DOCUMENT))
    assert len(texts) > 200
    assert [text for text in texts if INTERNAL.search(text)] == []
    # A word with an underscore is one of the wire: a value, a key, a scope; never a name of ours.
    known = set(re.findall(r"\w+_\w+", re.sub(r"`[^`]*`", "", openapi_text())))
    named = {word for text in texts for word in re.findall(r"`(\w+_\w+)`", text)}
    assert named - known == set()


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _texts(part)
    elif isinstance(node, dict):
        for key, part in node.items():
            if key in {"description", "summary"} and isinstance(part, str):
                yield part
            else:
                yield from _texts(part)
