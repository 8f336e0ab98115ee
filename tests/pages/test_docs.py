"""The documentation explains everything there is, whole from this server."""

import json
import re
from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI

from api.reference.documentation import Documentation
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import BindingType
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.filters.grammar import Op
from models.data.fields.rules.fields import FieldKind
from models.sources.data_source_runs.documentation import ERROR_NOTES, Subject
from models.sources.data_sources.rules import DataSourceKind
from models.sources.tabular.rules.problems import ErrorKind
from models.workspace.changes.rules import RULES, OperationKind, keys_of
from tests.support.client import Client

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


async def test_the_input_of_a_change_is_told_by_the_names_of_its_ids(client: Client) -> None:
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


async def test_every_link_of_the_pages_leads_somewhere(app: FastAPI, client: Client) -> None:
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
    assert "script-src" not in policy
    again = {"If-None-Match": page.headers["etag"], "Accept-Encoding": "gzip"}
    assert (await client.get("/docs/nodes/for_each", headers=again)).status_code == 304
    operations = await client.get("/docs/operations")
    assert "default-src 'self'" in operations.headers["content-security-policy"]
    for unknown in ("nodes/teleport", "nothing", "..%2f..%2fapp.py"):
        assert (await client.get(f"/docs/{unknown}")).status_code == 404
