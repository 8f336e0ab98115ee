"""The documentation explains everything there is, whole from this server."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

import api.reference.document
from api.reference.document import written_document
from api.reference.documentation import Documentation
from api.reference.guides import guides
from api.routers.registry import ROUTERS
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import BindingType
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.filters.grammar import Op
from models.data.fields.rules.fields import FieldKind
from models.sources.data_source_runs.documentation import ERROR_NOTES, Subject
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.options import ErrorKind
from models.workspace.changes.rules import RULES, OperationKind, keys_of
from tests.support.client import Client
from tests.support.visitor import Visitor

KNOWN: dict[str, Any] = {
    "nodes": list(NodeKind),
    "triggers": list(TriggerKind),
    "actions": list(ActionKind),
    "fields": list(FieldKind),
    "filters": list(Op),
    "bindings": list(BindingType),
    "expressions": [function.name for function in FUNCTIONS],
    "data-sources": list(DataSourceKind),
    "rows": list(Subject),
    "changes": list(OperationKind),
}


@pytest.mark.parametrize("section", KNOWN)
async def test_each_kind_has_a_page_with_an_example(client: Client, section: str) -> None:
    listed = (await client.get(f"/docs/{section}")).text
    for name in KNOWN[section]:
        assert f'href="/docs/{section}/{name}"' in listed
        page = await client.get(f"/docs/{section}/{name}")
        assert page.status_code == 200
        assert f"<h1><code>{name}</code></h1>" in page.text
        example = re.search(r"<h2>Example</h2><pre>(.*?)</pre>", page.text, re.DOTALL)
        assert example
        text = unescape(re.sub("<[^>]+>", "", example[1]))
        assert section == "expressions" or json.loads(text)


async def test_the_input_of_a_change_is_described_by_the_names_of_its_ids(client: Client) -> None:
    for kind in OperationKind:
        page = unescape(re.sub("<[^>]+>", "", (await client.get(f"/docs/changes/{kind}")).text))
        told = re.search(r"Input\s*(.*?)the keys of", page, re.DOTALL)
        ids = re.findall(r"\w+", told[1]) if told else list(keys_of(RULES[kind].about))
        assert [name for name in ids if name.endswith("Id")] == list(keys_of(RULES[kind].about))


async def test_every_kind_of_error_says_what_to_do(client: Client) -> None:
    page = (await client.get("/docs/rows/errors")).text
    assert ERROR_NOTES.keys() == set(ErrorKind)
    for kind in ErrorKind:
        assert f"<dt><code>{kind}</code></dt>" in page


async def test_every_link_of_the_pages_has_a_target(app: FastAPI, client: Client) -> None:
    described: Documentation = await app.documentation()  # type: ignore[attr-defined]
    pages = {path: page.content.decode() for path, page in described.pages.items()}
    html = {path: text for path, text in pages.items() if text.startswith("<!DOCTYPE html>")}
    assert len(html) > 180
    asked: set[str] = set()
    for path, text in html.items():
        ids = set(re.findall(r' id="([^"]+)"', text))
        for link in re.findall(r'(?:src|href)="([^"]+)"', text):
            if link.startswith("#"):
                assert link[1:] in ids, (path, link)
            else:
                assert link.startswith("/") or link == "data:,", (path, link)
                asked.add(link)
    for link in asked - {"data:,"}:
        below = link.removeprefix("/docs").removeprefix("/")
        assert below in pages or (await client.get(link)).status_code == 200, link


async def test_every_table_has_rows_and_stands_once(app: FastAPI) -> None:
    described: Documentation = await app.documentation()  # type: ignore[attr-defined]
    for path, page in described.pages.items():
        text = page.content.decode()
        tables = re.findall(r'<h2 id="(\w+)">', text)
        assert len(tables) == len(set(tables)), path
        assert "<tbody></tbody>" not in text, path


async def test_texts_and_numbers_tell_their_form(client: Client) -> None:
    imports = (await client.get("/docs/rows/imports")).text
    assert "<code>content</code> is a file in base64" in imports
    assert "<code>content</code></th><td>base64 or null" in imports
    entries = (await client.get("/docs/time/modes")).text
    assert "<code>startedAt</code></th><td>moment (ISO 8601) or " in entries
    assert "whole number from 1 to 31,622,400,000" in entries


async def test_pages_are_cached_and_run_no_script_of_others(client: Client) -> None:
    page = await client.get("/docs/nodes/for_each", headers={"Accept-Encoding": "gzip"})
    assert page.headers["content-encoding"] == "gzip"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'; connect-src 'self'" in policy
    again = {"If-None-Match": page.headers["etag"], "Accept-Encoding": "gzip"}
    assert (await client.get("/docs/nodes/for_each", headers=again)).status_code == 304
    operations = await client.get("/docs/operations")
    assert "default-src 'self'" in operations.headers["content-security-policy"]
    for unknown in ("nodes/teleport", "nothing", "..%2f..%2fapp.py"):
        assert (await client.get(f"/docs/{unknown}")).status_code == 404


async def test_a_missing_path_is_a_page_for_people(app: FastAPI, client: Client) -> None:
    async with Visitor(app) as person:
        for unknown in ("nodes/teleport", "nothing"):
            page = await person.get(f"/docs/{unknown}")
            assert (page.status_code, "<h1>Page not found</h1>" in page.text) == (404, True)
            assert 'href="/docs"' in page.text
            again = await person.get(
                f"/docs/{unknown}", headers={"If-None-Match": page.headers["etag"]}
            )
            assert again.status_code == 404
            refused = await client.get(f"/docs/{unknown}")
            assert refused.json()["error"] == "not_found"


async def test_guides_have_a_page_and_every_page_leads_to_the_console(client: Client) -> None:
    page = (await client.get("/docs/guides")).text
    assert [f'href="/docs/{guide.slug}"' in page for guide in guides()] == [True] * len(guides())
    assert "/docs/nodes/for_each" not in page, "a reference is no guide"
    for path in ("", "/guides", "/nodes", "/nodes/for_each", "/operations", "/console/keyboard"):
        shown = (await client.get(f"/docs{path}")).text
        assert '<a class="console" href="/">' in shown
        assert 'id="search"' in shown


async def test_the_search_index_has_every_entry_and_operation(app: FastAPI, client: Client) -> None:
    found = (await client.get("/docs/search.json")).json()
    paths = {one["path"] for one in found}
    described: Documentation = await app.documentation()  # type: ignore[attr-defined]
    pages = {path for path in described.pages if "/" in path}
    assert {f"/docs/{path}" for path in pages} <= paths
    document = (await client.get("/openapi.json")).json()
    operations = sum(len(methods) for methods in document["paths"].values())
    assert sum("/docs/operations#" in path for path in paths) == operations
    (wait,) = [one for one in found if one["path"] == "/docs/nodes/for_each"]
    assert wait["title"] == "for_each"
    assert all(one["text"] for one in found)


def test_the_written_document_is_served_only_for_its_operations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To make a document takes seconds; one of other operations would be wrong."""
    routes = [route for router in ROUTERS for route in router.routes]
    written = tmp_path / "openapi.json"
    monkeypatch.setattr(api.reference.document, "_WRITTEN", (written,))
    assert written_document(routes) is None
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.is_documented:
            paths.setdefault(route.path, {})[route.operation.method.lower()] = {}
    written.write_text(json.dumps({"paths": paths}))
    assert written_document(routes) == {"paths": paths}
    without = [route for route in routes if route.path != "/v1/workspaces"]
    assert written_document(without) is None
