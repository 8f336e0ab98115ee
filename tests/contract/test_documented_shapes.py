"""The document promises the fields the interface lists, and null only where the interface does.

A field without a value is absent unless it is marked nullable (interface.md#absent-and-null).
Answers are held against the document by the client of the tests, so a null too many fails there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import ValidationError

from models.automation.automation_runs.filters import WorkspaceRunQuery
from tests.contract.furnished import Furnished
from tests.contract.operations import call, operations
from tests.support.document import DOCUMENT
from tests.support.events import described

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

_ACTION_RUN = "id actionId workspaceId status startedAt completedAt error result input stepResults"
_RUN = """id automationId automationVersionId workspaceId status source startedAt completedAt
    triggerPayload output metadata error startNodeId replayOfRunId"""

INTERFACE = {
    "ApiKeyBody": """id workspaceId name prefix scopes boundUserId? createdByUserId? lastUsedAt?
        expiresAt? revokedAt? createdAt? updatedAt?""",
    "IssuedApiKey": "apiKey token",
    "RequestLogBody": """id principalType method path status workspaceId? apiKeyId? principalId?
        idempotencyKey? error? durationMs? createdAt?""",
    "ItemDetail": """id workspaceId parentItemId? kind targetId? title icon? color? order archived
        accessMode metadata createdAt? updatedAt?""",
    "DeletedItem": "item database file",
    "DeletedFields": "fields",
    "StoredFile": "fileId name mimeType byteSize downloadUrl createdAt",
    "DatabaseDetail": """id workspaceId itemId parentItemId key label description icon order
        settings recordLayout archived fields views createdAt updatedAt""",
    "RecordLayout": """version pageWidth propertyColumns propertyDensity propertyOrder
        hiddenFieldKeys sections contentPosition showComments showActivity pinnedFieldKeys
        autoAddNewFields collapsedSectionIds relationViews showReferences""",
    "LayoutSection": "id label fieldKeys",
    "RelationViewLayout": "defaultViewId position collapsed",
    "FieldShape": """id workspaceId databaseId key label kind required defaultValue options
        settings order createdAt updatedAt""",
    "OptionShape": "id key name color order",
    "ViewShape": """id workspaceId databaseId key label kind placement manifest relationFieldId
        ownerUserId scope locked definitionVersion createdAt updatedAt""",
    "RecordDetail": """id workspaceId databaseId contentSurfaceId title data relations computed
        system related archived createdByUserId updatedByUserId createdAt updatedAt""",
    "AutomationDetail": """id workspaceId key label enabled versionId version publishedVersionId
        draftVersionId hasUnpublishedChanges trigger triggerConfig graph webhookPath webhookSecret
        nextRunAt lastTriggeredAt createdAt updatedAt referenceIssues""",
    "ReferenceIssue": "nodeId message",
    "AutomationRunDetail": f"{_RUN} nodeRuns",
    "AutomationRunShape": _RUN,
    "NodeRunShape": """id runId nodeId nodeKind scopeKey status attempt input output error
        startedAt completedAt""",
    "ActionDetail": "id workspaceId key label kind config enabled createdAt updatedAt",
    "ActionRunDetail": _ACTION_RUN,
    "StepResult": "stepId index kind status result error startedAt completedAt",
    "ShareLinkBody": """id workspaceItemId workspaceId kind url expiresAt allowDownload maxUses
        useCount createdAt revokedAt""",
    "NotificationBody": "id readAt archivedAt",
    "DataSourceRunDetail": """id workspaceId dataSourceId status trigger actorUserId stats error
        errorKind startedAt completedAt""",
    "RunStats": """rowsFetched rowsInserted rowsUpdated rowsUnchanged rowsRemoved rowsSkipped
        bytesFetched durationMs""",
    "SpreadsheetImportResult": """databaseId itemId label sheetNameUsed fieldCount recordCount
        skippedRowCount""",
    "TimeEntryDetail": """id workspaceId userId userDisplayName targetKind targetId
        targetTitleSnapshot databaseId fieldId fieldLabelSnapshot source mode status startedAt
        endedAt pausedAt dueAt accumulatedPausedMs durationMs targetDurationMs summary soundId
        completedBy clientMutationId createdByUserId updatedByUserId createdAt updatedAt""",
    "TimeEntryState": "entry serverTime authoritativeElapsedMs",
    "LegacyImport": """id bundleObjectKey bundleChecksum sourceSnapshotTimestamp sourceVersion
        converterVersion status mode selectedWorkspaceCount sourceCounts targetCounts warnings
        errors approvedAt canceledByUserId cancellationReason rollbackRequestedByUserId
        rollbackReason startedAt completedAt createdAt updatedAt workspaces""",
    "ImportWorkspaceEntry": """id sourceWorkspaceId targetWorkspaceId selected stage
        lifecycleState counts warnings verification rollbackState attempt lastError""",
    "ExperimentBody": """id name hypothesis targetKey flagKey audience primaryMetric
        guardrailMetric winner targetType assignmentUnit status allocation startedAt endsAt
        variants""",
    "VariantBody": "id label split exposures conversionRate errorRate",
    "ProviderResource": """externalType externalId name surfaceKind capabilities mimeType
        canonicalUrl parentExternalId revision providerCreatedAt providerModifiedAt metadata""",
    "ResourceContent": "format content? revision readOnly fallbackUrl",
    "FormImportResult": "surfaceId itemId databaseId title fieldCount skipped",
    "OauthClientWorkspace": "oauthClientId workspaceId?",
    "HomeLayoutAnswer": "homeLayout",
    "HomeWidget": "id kind x y w h config",
    "ReleaseState": "channel lastSeenReleaseId accountCreatedAt",
    "PushRegistration": "installationId revoked",
    "ApplyResult": "runId status results appliedCount skippedCount failedCount",
    "OperationResult": "index kind stake status needsApproval error subjectId",
    "StarterPlan": "headline nodes",
    "PlanNode": "type ref label fields records",
    "PlanField": "key label kind",
    "PlanRecord": "title",
    "SeededDraft": "headline databaseCount pageCount",
    "Ticket": "ticket expiresAt url",
    "ApiNotFound": "_tag error message status",
}
"""The fields of each shape as the interface lists them; `?` marks those that may be null."""

PAGES = {
    "list_items": "items cursor?",
    "browse_connection": "resources cursor?",
}
"""The fields of pages, which are described where they are answered, by operation."""

NULLABLE = {
    (shape, field.rstrip("?"))
    for shape, fields in INTERFACE.items()
    for field in fields.split()
    if field.endswith("?")
}


def _allows_null(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type", [])
    if "null" in ([kinds] if isinstance(kinds, str) else kinds):
        return True
    return any(_allows_null(one) for key in ("anyOf", "oneOf") for one in schema.get(key, []))


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if part.get("$ref", "").startswith("#/components/schemas/"):
            yield part["$ref"].rpartition("/")[2]
        for each in part.values():
            yield from _references(each)
    elif isinstance(part, list):
        for each in part:
            yield from _references(each)


def _reached(part: str) -> set[str]:
    """The schemas that occur in this part of any operation."""
    operations = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    left = {name for one in operations for name in _references(one.get(part))}
    found: set[str] = set()
    while left:
        found |= left
        # A planned operation repeats what was sent.
        own = [one for one in left if one != "PlannedOperation"]
        left = {name for one in own for name in _references(SCHEMAS[one])} - found
    return found


def _variants(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema itself, or those of its kinds."""
    if "properties" in schema:
        yield schema
    for name in _references(schema.get("oneOf")):
        yield from _variants(SCHEMAS[name])


@pytest.mark.parametrize("shape", INTERFACE)
def test_a_shape_has_the_fields_of_the_interface(shape: str) -> None:
    fields = {field.rstrip("?") for field in INTERFACE[shape].split()}
    for variant in _variants(SCHEMAS[shape]):
        assert fields - variant["properties"].keys() == set()


@pytest.mark.parametrize("operation", PAGES)
def test_a_page_has_the_fields_of_the_interface(operation: str) -> None:
    answer = _described(operation)["responses"]["200"]["content"]["application/json"]["schema"]
    page = answer["properties"]["data"]
    fields = {field.rstrip("?") for field in PAGES[operation].split()}
    assert fields == page["properties"].keys() == set(page["required"])


def test_answers_have_null_only_where_the_interface_marks_it() -> None:
    nullable = {
        (name, field)
        for name in _reached("responses")
        for field, schema in SCHEMAS[name].get("properties", {}).items()
        if _allows_null(schema) and field != "cursor"
    }
    assert nullable - NULLABLE == set()


PARTS = [
    ("automation", ("graph", "triggerConfig")),
    ("action", ("config",)),
    ("dataSource", ("config",)),
    ("database", ("recordLayout", "settings")),
    ("view", ("manifest",)),
]


@pytest.mark.parametrize(("resource", "parts"), PARTS)
async def test_a_part_is_sent_back_as_it_was_answered(
    resource: str, parts: Sequence[str], used: Furnished
) -> None:
    by_method = {one.id: one for one in operations()}
    snake = re.sub(r"([A-Z])", r"_\1", resource).lower()
    change = by_method[f"update_{snake}"]
    get = by_method.get(f"get_{snake}")
    body = _body_of(change.id)
    if get is None:
        listed = await used.client.get(f"/v1/databases/{used.ids['databaseId']}/views")
        this = next(
            one for one in listed.json()["data"]["views"] if one["id"] == used.ids["viewId"]
        )
    else:
        this = (await call(used.client, get, used)).json()["data"]
    sent = {part: this[part] for part in parts}
    described(f"#/components/schemas/{body}").validate(sent)
    answer = await call(used.client, change, used, body=sent)
    assert answer.status_code == 200, answer.text
    kept = {part: answer.json()["data"][part] for part in parts}
    for layout in (kept, sent):
        # It counts its changes.
        layout.get("recordLayout", {}).pop("version", None)
    assert kept == sent


def _body_of(operation: str) -> str:
    """The component of the body of an operation."""
    schema = _described(operation)["requestBody"]["content"]["application/json"]["schema"]
    name: str = schema["$ref"].rpartition("/")[2]
    return name


def _described(operation: str) -> Any:
    return next(
        one
        for methods in DOCUMENT["paths"].values()
        for one in methods.values()
        if one["operationId"] == operation
    )


def test_bodies_and_answers_share_the_shapes_of_their_parts() -> None:
    graph = {"$ref": "#/components/schemas/Graph"}
    assert SCHEMAS["AutomationDetail"]["properties"]["graph"] == graph
    for body in ("CreateAutomation", "UpdateAutomation", "ValidateAutomation"):
        part = SCHEMAS[body]["properties"]["graph"]
        assert graph in part.get("anyOf", [part]), body


def test_a_field_that_may_be_absent_is_not_required() -> None:
    required = set(SCHEMAS["ShareLinkBody"]["required"])
    assert required.isdisjoint({"expiresAt", "maxUses", "revokedAt"})


@pytest.mark.parametrize("name", ["list_automation_runs", "list_workspace_automation_runs"])
@pytest.mark.parametrize(
    "text",
    [
        *("order:1", "order:1,city:Bern", "order:1,", r"a:1\,2", r"a:\\", "a.b-c_d:x", "a:b:c"),
        *("", "order", "order:", ":1", "Order:1", "a:1,,b:2", "a:1,b", "a:\\", "a:\n", "ä:1"),
        *(f"{'a' * 40}:1", f"{'a' * 41}:1", "a:1,\n", "a:1\n,b:2", "a:\x00"),
    ],
)
def test_the_form_of_the_filter_of_attributes_is_what_is_read(name: str, text: str) -> None:
    parameter = next(
        one
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        if operation["operationId"] == name
        for one in operation["parameters"]
        if one["name"] == "attribute"
    )
    assert "key:value" in parameter["description"]
    form = next(one for one in parameter["schema"]["anyOf"] if one["type"] == "string")
    assert Draft202012Validator(form).is_valid(text) is _is_read(text)


def _is_read(text: str) -> bool:
    try:
        WorkspaceRunQuery.model_validate({"attribute": text})
    except ValidationError:
        return False
    return True
