"""Each operation of the interface document answers what its tables say: declared, and live."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from cli.supervisor.development import DevelopmentIssuer
from tests.contract.callers import caller_of
from tests.contract.furnished import Furnished
from tests.contract.interface_document import Row, Schema, answer, rows, section
from tests.contract.operations import Operation, call, operations
from tests.support.document import DOCUMENT

pytestmark = pytest.mark.takes(seconds=20)

ROWS = sorted(
    rows(section("### Operations with known method and path")),
    key=lambda row: "DELETE" in row["Method and path"],
)
"""What takes something away comes last."""
BY_PATH = {(one.method.upper(), one.path): one for one in operations()}
TITLED = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["Operation"])

WIDER = {
    "fields[].defaultValue", "database.fields[].defaultValue",
    "config",  # `dataSourceId` is that of one kind
}  # fmt: skip
"""Where more is allowed than the document shows."""


WITHOUT_VALUE = {
    "Test-run automation": """startedAt completedAt output error startNodeId replayOfRunId
        nodeRuns[].input nodeRuns[].output nodeRuns[].error nodeRuns[].startedAt
        nodeRuns[].completedAt""",
    "Restore automation version": """nextRunAt graph.failureAutomationId graph.triggerPosition
        graph.notes graph.nodes[].actionId graph.nodes[].label graph.nodes[].position
        graph.nodes[].retry""",
    "Cancel automation run": "error startNodeId replayOfRunId nodeRuns[].error",
    "Browse connection": "resources[].metadata resources[].parentExternalId",
    "Duplicate database": """description icon parentItemId fields[].defaultValue
        views[].ownerUserId views[].relationFieldId""",
    "Approve legacy import run": """sourceSnapshotTimestamp sourceVersion converterVersion startedAt
        completedAt canceledByUserId cancellationReason rollbackReason rollbackRequestedByUserId""",
    "Cancel legacy import run": """sourceSnapshotTimestamp sourceVersion converterVersion startedAt
        approvedAt rollbackReason rollbackRequestedByUserId""",
    "List action runs": "[].error [].stepResults[].error",
    "Create record": "contentSurfaceId",
    "Update record": "contentSurfaceId",
    "Replace home layout": "homeLayout.widgets[].config",
    "Apply AI run": "results[].error results[].subjectId response",
    "Create share link": "expiresAt revokedAt",
    "Update experiment": "endsAt guardrailMetric primaryMetric startedAt targetKey winner",
    "Delete item": "file database.fields[].defaultValue",
}
"""Fields that nothing has a value for in the example call, and that are absent for that reason."""


def operation_of(row: Row) -> Operation:
    """The operation a row is about: one whose path differs at most in the names of parameters."""
    method, _, path = row["Method and path"].partition(",")[0].partition(" ")
    return BY_PATH[method, path]


# ---- as openapi.json declares it


@TITLED
def test_an_answer_is_declared_with_the_fields_of_the_interface(row: Row) -> None:
    operation, wanted = operation_of(row), answer(row["Success response"])
    described = DOCUMENT["paths"][operation.path][operation.method]
    assert row["Success response"][:3] in {str(operation.success), "dat"}
    if wanted is not None:
        content = described["responses"][str(operation.success)]["content"]
        declared = content["application/json"]["schema"]
        assert list(_deviations(wanted, _key(declared, "data"), "")) == []


def _key(schema: Schema, key: str) -> Schema:
    (found,) = [one["properties"][key] for one in _variants(schema)]
    return dict(found)


def _variants(schema: Schema) -> Iterator[Schema]:
    """The schemas that a value may have, without references."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    options = schema.get("anyOf") or schema.get("oneOf")
    if options is None:
        yield schema
    for one in options or ():
        yield from _variants(one)


def _types(schema: Schema) -> set[str]:
    if "type" not in schema and ("const" in schema or "enum" in schema):
        return {"string"}
    known = schema.get("type", [])
    return {
        {"integer": "number"}.get(one, one) for one in ([known] if known == str(known) else known)
    }


def _deviations(wanted: Schema, declared: Schema, path: str) -> Iterator[str]:
    """Where a declared schema is not what the interface wants."""
    if path in WIDER:
        return
    allowed = {wanted["type"]} if isinstance(wanted.get("type"), str) else {*wanted.get("type", ())}
    for variant in _variants(declared):
        if allowed and not (types := _types(variant)) <= allowed:
            yield f"{path}: {sorted(types)}"
        if variant.get("type") == "array" and "items" in wanted:
            yield from _deviations(wanted["items"], variant["items"], f"{path}[]")
        if variant.get("type") == "object":
            yield from _of_object(wanted, variant, path)


def _of_object(wanted: Schema, declared: Schema, path: str) -> Iterator[str]:
    each = wanted.get("additionalProperties")
    if each is not None and isinstance(declared.get("additionalProperties"), dict):
        yield from _deviations(each, declared["additionalProperties"], f"{path}.*")
    properties = declared.get("properties", {})
    if properties or declared.get("additionalProperties") is not True:
        yield from (f"{path}.{key}" for key in wanted.get("properties", {}).keys() - properties)
    for key in wanted.get("required", ()):
        if key not in declared.get("required", ()):
            yield f"{path}.{key} may be absent"
    for key, one in wanted.get("properties", {}).items():
        if key in properties:
            yield from _deviations(one, properties[key], f"{path}.{key}".lstrip("."))


# ---- as the platform answers


@TITLED
async def test_an_answer_has_the_fields_of_the_interface(
    platform: Furnished, issuer: DevelopmentIssuer, row: Row
) -> None:
    operation = operation_of(row)
    found = await call(caller_of(platform, operation, issuer), operation, platform)
    assert found.status_code == operation.success, found.text
    wanted = answer(row["Success response"])
    if wanted is not None:
        data = found.json()["data"]
        Draft202012Validator(wanted).validate(data)
        absent = set(_absent(wanted, [data], ""))
        assert absent == set(WITHOUT_VALUE.get(row["Operation"], "").split())


def _absent(wanted: Schema, values: Sequence[Any], path: str) -> Iterator[str]:
    """The fields that no value in a place of an answer has."""
    objects = [one for one in values if isinstance(one, dict)]
    for key, one in wanted.get("properties", {}).items():
        there = [value[key] for value in objects if key in value]
        where = f"{path}.{key}".lstrip(".")
        if objects and not there:
            yield where
        yield from _absent(one, there, where)
    inner = wanted.get("items") or wanted.get("additionalProperties")
    if isinstance(inner, dict):
        elements = [
            each
            for one in values
            for each in (one.values() if isinstance(one, dict) else one or ())
        ]
        yield from _absent(inner, elements, f"{path}[]")
