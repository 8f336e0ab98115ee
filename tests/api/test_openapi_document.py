"""How the OpenAPI document is served, and what it says and does not say."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fastapi import FastAPI
from jsonschema_rs import Draft202012Validator, Registry
from pydantic.alias_generators import to_pascal

from api.app import WorkspaceApi, create_app, openapi_text
from api.kernel.routing import Route
from api.reference import document, openapi
from models.automation.actions.rules import ActionKind
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import BindingType
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.content.items.rules import ItemKind
from models.core.expressions.rules.functions import FUNCTIONS
from models.core.filters.grammar import Op
from models.data.fields.rules.fields import FieldKind
from models.data.records.rules.writes import WriteOp
from models.sources.data_sources.rules import DataSourceKind
from models.workspace.changes.rules import OperationKind
from models.workspace.starters.seeding import Template, templates
from runtime.configuration.settings import Settings
from tests.support.client import Client
from tests.support.document import DOCUMENT, TEXT

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def test_the_document_says_what_the_code_does() -> None:
    """It takes three seconds, and notices any bound of a shape that moves."""
    assert openapi_text() == TEXT


@pytest.mark.long
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


@pytest.mark.long
async def test_the_document_is_made_once_and_beside_requests(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def render(routes: Sequence[Route]) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return openapi.render(routes)

    monkeypatch.setattr(document, "render", render)
    monkeypatch.setattr(document, "_WRITTEN", ())
    app: FastAPI = create_app(settings, background=())
    assert isinstance(app, WorkspaceApi)
    async with app.router.lifespan_context(app):
        first, second = await asyncio.gather(app.documentation(), app.documentation())
    assert first is second
    assert json.loads(first.document.content) == DOCUMENT
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


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


def test_every_kind_operator_binding_and_function_is_named() -> None:
    nodes = SCHEMAS["GraphNode"]["discriminator"]["mapping"]
    assert nodes.keys() == set(NodeKind)
    for kind, reference in nodes.items():
        shape = SCHEMAS[reference.split("/")[-1]]
        assert shape["properties"]["kind"]["const"] == kind
        config = SCHEMAS[shape["properties"]["config"]["anyOf"][0]["$ref"].split("/")[-1]]
        assert config["description"]
        assert config["examples"]
    for union, key, kinds in (
        ("TriggerConfig", "kind", TriggerKind),
        ("CreateAction", "kind", ActionKind),
        ("ActionDetail", "kind", ActionKind),
        ("CreateField", "kind", FieldKind),
        ("FieldShape", "kind", FieldKind),
        ("CreateDataSource", "kind", DataSourceKind),
        ("CreateItem", "kind", ItemKind),
        ("BatchOperation", "op", WriteOp),
        ("Binding", "type", BindingType),
        ("Condition", "op", Op),
        ("Operation", "kind", OperationKind),
    ):
        assert SCHEMAS[union]["discriminator"]["propertyName"] == key
        assert SCHEMAS[union]["discriminator"]["mapping"].keys() == set(kinds), union
    for function in FUNCTIONS:
        assert f"`{function.call}`" in SCHEMAS["CelExpression"]["description"]


FREE = {
    "by the keys of fields, which each database has of its own": (
        *("data", "computed", "before", "after", "aggregates", "rows"),
    ),
    "what its author, or a node, wants it to be": (
        *("input", "output", "result", "payload", "triggerPayload", "variables", "mocks", "nodes"),
        "payloads",
        "ActionInput",
        "ResumeData",
    ),
    "a JSON Schema": ("inputSchema",),
    "a client's own, kept as it is": ("metadata", "settings", "config"),
    "by the kind of a block, of which there may be more tomorrow": ("content",),
    "by the outcome of an event": ("detail",),
    "unused": ("references",),
    "not complete yet, or written by somebody else": ("PartialConfig", "LoosePlan"),
    "described without the references in it": ("Referring",),
    "by the kind of a view; a client may keep more in it": ("Manifest",),
}
"""The objects that have no shape, as keys or components, by the reason why."""
DESCRIBED = {
    *("Operation.input", "SeedDraft.plan", "RecordDetail.system"),
    *("AutomationRunDetail.metadata", "ActionRunDetail.metadata", "NodeRunShape.metadata"),
    "SourceRunOverview.metadata",
}
"""Keys of those names that have one all the same."""


def _free(schema: Any, name: str) -> Iterator[str]:
    """The objects without a shape in a schema, by the component and the key where they stand."""
    if not isinstance(schema, dict):
        return
    shapes = {"properties", "patternProperties", "additionalProperties"} & schema.keys()
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is True or not shapes
    ):
        yield name
    for key in ("anyOf", "oneOf"):
        for one in schema.get(key, ()):
            yield from _free(one, name)
    for key in ("items", "additionalProperties"):
        yield from _free(schema.get(key), name)
    for one in schema.get("patternProperties", {}).values():
        yield from _free(one, name)
    for key, one in schema.get("properties", {}).items():
        yield from _free(one, f"{name.partition('.')[0]}.{key}")


def test_no_other_object_is_left_undescribed() -> None:
    free = {one for name, schema in SCHEMAS.items() for one in _free(schema, name)}
    assert free & DESCRIBED == set()
    reasons = [name for names in FREE.values() for name in names]
    assert {one.rpartition(".")[2] for one in free} == set(reasons)
    assert len(reasons) == len(set(reasons))


def test_every_reference_leads_to_a_component() -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', TEXT))
    assert names <= SCHEMAS.keys()
    assert not [name for name in names if name.startswith(("_", "models__"))]
    assert "x-documented-as" not in TEXT


FOREIGN = {"providerCreatedAt", "providerModifiedAt"}
"""Texts of providers."""
LOCAL = {
    *("ScheduleTrigger.startAt", "ScheduleTrigger.endAt", "ImportedDocument.exportedAt"),
}
"""Times that may lack their offset, and one that is never read."""


def test_a_moment_is_a_date_and_time() -> None:
    loose = {
        f"{name}.{key}"
        for name, schema in SCHEMAS.items()
        for key, part in schema.get("properties", {}).items()
        if key.endswith("At") and key not in FOREIGN and "$ref" not in part
        if "date-time" not in {one.get("format") for one in (part, *part.get("anyOf", []))}
    }
    assert loose == LOCAL


def test_an_answer_declares_its_headers() -> None:
    paths, shared = DOCUMENT["paths"], DOCUMENT["components"]["responses"]
    done = paths["/v1/records/{recordId}"]["patch"]["responses"]["200"]["headers"]
    assert {"X-Request-Id", "Idempotency-Replayed", "X-RateLimit-Remaining"} <= done.keys()
    assert "ETag" in paths["/v1/assets/{fileId}/{assetToken}"]["get"]["responses"]["304"]["headers"]
    assert "Retry-After" in shared["RateLimited"]["headers"]
    assert "Retry-After" in shared["Unavailable"]["headers"]
    assert "Idempotency-Replayed" in shared["ConflictOrInProgress"]["headers"]


REGISTRY = Registry([("urn:openapi", {"components": DOCUMENT["components"]})])


def validator(name: str) -> Draft202012Validator:
    reference = {"$ref": f"urn:openapi#/components/schemas/{name}"}
    return Draft202012Validator(reference, registry=REGISTRY)


def test_an_example_is_valid() -> None:
    examples = 0
    for name, schema in SCHEMAS.items():
        for example in schema.get("examples", ()):
            validator(name).validate(example)
            examples += 1
    assert examples > 80


@pytest.mark.parametrize("template", templates().values(), ids=lambda one: one.key)
def test_the_operations_of_a_starter_are_as_the_document_says(template: Template) -> None:
    for one in template.operations:
        body = one.model_dump(mode="json", by_alias=True, exclude_none=True)
        validator(f"{to_pascal(one.kind.value)}Operation").validate(body)
        assert not validator("Operation").is_valid({**body, "input": {**body["input"], "x": 1}})


ID = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        ({"kind": "folder"}, True),
        ({"kind": "folder", "config": {}}, False),
        ({"kind": "page", "content": {"blocks": []}}, True),
        ({"kind": "page", "content": {"text": ""}}, False),
        ({"kind": "page", "config": {}}, False),
        ({"kind": "database"}, True),
        ({"kind": "database", "config": {"fields": [{"kind": "text", "label": "Name"}]}}, True),
        ({"kind": "database", "config": {"label": "Twice"}}, False),
        ({"kind": "file"}, False),
        ({"kind": "file", "config": {"fileId": ID}}, True),
        ({"kind": "view", "config": {"databaseId": ID}}, True),
        ({"kind": "action", "config": {"kind": "refresh_data_source"}}, False),
        (
            {
                "kind": "action",
                "config": {"kind": "refresh_data_source", "config": {"dataSourceId": ID}},
            },
            True,
        ),
    ],
)
def test_the_body_of_an_item_is_that_of_its_kind(body: dict[str, Any], valid: bool) -> None:
    assert validator("CreateItem").is_valid({"title": "New", **body}) == valid


INTERNAL = re.compile(
    r"\b(?:decisions|ADR|docs/adr|reliability|issue \d+)\b|\b[CD]\d{1,2}\b"
    r"|\b(?:the )?interface[.,)]|:(?:class|meth|func):|\b\w+\.(?:rules|shapes|commands|queries)\b"
)


def test_no_text_of_the_document_speaks_of_what_its_reader_cannot_see() -> None:
    texts = list(_texts(DOCUMENT))
    assert len(texts) > 200
    assert [text for text in texts if INTERNAL.search(text)] == []
    # A word with an underscore is one of the wire: a value, a key, a scope; never a name of ours.
    plain = [re.sub(r"`[^`]*`", "", text) for text in texts]
    known = set(re.findall(r"\w+_\w+", json.dumps([plain, list(_values(DOCUMENT))])))
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


def _values(node: Any) -> Iterator[Any]:
    """What is no text for people: keys, and values of other keys."""
    if isinstance(node, list):
        for part in node:
            yield from _values(part)
    elif isinstance(node, dict):
        for key, part in node.items():
            yield key
            if key not in {"description", "summary"} or not isinstance(part, str):
                yield from _values(part)
    else:
        yield node
