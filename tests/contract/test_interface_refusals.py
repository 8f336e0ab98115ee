"""Each operation refuses as the interface document's table of errors says: declared, and live.

A condition of the table without a call here fails: the document decides what is tried.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from cli.supervisor.development import DevelopmentIssuer
from tests.contract.callers import caller_of
from tests.contract.catalogue import VARIANTS
from tests.contract.furnished import Furnished
from tests.contract.interface_document import rows, section
from tests.contract.operations import Operation, call, operations
from tests.support.document import DOCUMENT

pytestmark = pytest.mark.takes(seconds=20)

BY_ID = {one.id: one for one in operations()}
CONDITIONS = [
    pytest.param(condition.strip(), row["Error class"], id=condition.strip()[:50])
    for row in rows(section("## Errors"))
    for condition in row["Condition"].split(";")
]
CODES = {
    "not found": {(404, "not_found")},
    "validation error": {(400, "validation_error")},
    "run error": {(409, "run_error")},
    "conflict": {(409, "conflict")},
    "in-progress or conflicting-mutation error": {
        (409, "in_progress"),
        (422, "conflicting_mutation"),
    },
    "denied": {(403, "denied")},
    "invalid": {(400, "invalid")},
    "unsupported": {(422, "unsupported")},
    "upstream error": {(502, "upstream_error")},
}
"""The classes of errors, as this platform answers them."""

Prepare = Callable[[Furnished], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Refused:
    """A call of an operation that is refused; `prepare` gives what it differs by in `call`."""

    operation: str
    by: Mapping[str, Any] = field(default_factory=dict)
    prepare: Prepare | None = None
    as_owner: bool = False


def nowhere(operation: str, parameter: str) -> Refused:
    return Refused(operation, {"ids": {parameter: str(uuid.uuid4())}})


async def _broken_workbook(made: Furnished) -> Mapping[str, Any]:
    path = f"{made.space.path}/files?name=broken.xlsx"
    answer = await made.client.post(path, content=b"PK broken", headers={"Content-Type": "text/x"})
    return {"body": {"label": "x", "kind": "file", "fileId": answer.json()["data"]["fileId"]}}


async def _version_of_another(made: Furnished) -> Mapping[str, Any]:
    path = f"{made.space.path}/automations/{made.ids['scheduledAutomationId']}"
    other = (await made.client.get(path)).json()["data"]["publishedVersionId"]
    return {"body": {"nodeId": "a", "automationVersionId": other}}


async def _broken_version(made: Furnished) -> Mapping[str, Any]:
    graph = {"nodes": [{"id": "a", "kind": "action", "actionId": str(uuid.uuid4())}], "edges": []}
    body = {"label": "Broken", "triggerConfig": {"kind": "manual"}, "graph": graph}
    automation = await made.post(f"{made.space.path}/automations", body)
    return {"ids": {"automationId": automation["id"], "versionId": automation["draftVersionId"]}}


async def _disabled_action(made: Furnished) -> Mapping[str, Any]:
    refresh = {"kind": "refresh_data_source", "dataSourceId": made.ids["dataSourceId"]}
    body = {"label": "Off", "kind": refresh["kind"], "config": refresh, "enabled": False}
    action = await made.post(f"{made.space.path}/actions", body)
    return {"ids": {"actionId": action["id"]}}


async def _unreadable_button(made: Furnished) -> Mapping[str, Any]:
    bindings = {"amount": {"type": "expression", "value": "1 / (record.title == '' ? 1 : 0)"}}
    settings = {"actionId": made.ids["actionId"], "bindings": bindings}
    body = {"label": "Unreadable", "kind": "button", "settings": settings}
    made_field = await made.post(f"/v1/databases/{made.ids['databaseId']}/fields", body)
    return {"ids": {"fieldKey": made_field["key"]}}


async def _without_version(made: Furnished) -> Mapping[str, Any]:
    automation = await made.post(f"{made.space.path}/automations", {"label": "Empty"})
    return {"ids": {"automationId": automation["id"]}, "body": {"nodeId": "a"}}


async def _test_without_version(made: Furnished) -> Mapping[str, Any]:
    return {"ids": (await _without_version(made))["ids"], "body": {}}


async def _another_input(made: Furnished) -> Mapping[str, Any]:
    mutation = str(uuid.uuid4())
    first = {"label": "One", "kind": "file", "fileId": made.ids["sheetFileId"], "fields": []}
    path = f"{made.space.path}/data-sources/import-spreadsheet"
    await made.post(path, {**first, "clientMutationId": mutation})
    return {"body": {**first, "label": "Another", "clientMutationId": mutation}}


async def _no_adapter(made: Furnished) -> Mapping[str, Any]:
    body = {
        "provider": "postgresql",
        "label": "Shop",
        "config": {"host": "db.example.com", "database": "shop", "user": "reader"},
        "credentials": {"password": "x"},
    }
    connection = await made.post(f"{made.space.path}/integrations/connections", body)
    return {"body": {"connectionId": connection["id"]}}


async def _calendar(made: Furnished) -> Mapping[str, Any]:
    resource = {
        "externalType": "calendar", "externalId": "calendar", "name": "Calendar",
        "surfaceKind": "calendar", "capabilities": ["read"],
    }  # fmt: skip
    return {"body": {"connectionId": made.ids["connectionId"], "resource": resource}}


async def _not_reviewed(made: Furnished) -> Mapping[str, Any]:
    return {"ids": {"runId": made.ids["openImportId"]}}


_FLAG = {"name": "x", "targetType": "flag", "flagKey": uuid.uuid4().hex, "variants": VARIANTS}
"""Its second experiment is one too many."""


CALLS: Mapping[str, list[Refused]] = {
    "Unknown workspace-scoped id, data source, action, template, experiment, or a single"
    " notification id that matches nothing readable": [
        nowhere("get_data_source", "dataSourceId"),
        nowhere("run_action", "actionId"),
        nowhere("get_experiment", "experimentId"),
        Refused("create_database_from_template", {"body": {"templateId": "unknown"}}),
        Refused("mark_notifications_read", {"body": {"notificationId": str(uuid.uuid4())}}),
        Refused("mark_notifications_read", {"body": {"notificationId": "unknown"}}),
        Refused("archive_notifications", {"body": {"notificationIds": ["unknown"]}}),
    ],
    "Malformed or oversized workbook": [Refused("import_spreadsheet", prepare=_broken_workbook)],
    "version of another automation": [
        Refused("run_automation_from_node", prepare=_version_of_another)
    ],
    "graph that no longer compiles": [
        Refused("restore_automation_version", prepare=_broken_version)
    ],
    "field that is not a button": [Refused("run_button", {"ids": {"fieldKey": "price"}})],
    "disabled action": [Refused("run_action", prepare=_disabled_action)],
    "unreadable button configuration": [Refused("run_button", prepare=_unreadable_button)],
    "empty body for mark-read or archive": [
        Refused(one, {"body": {}})
        for one in ("mark_notifications_read", "mark_inbox_read", "archive_notifications")
    ],
    "non-integer `limit`": [
        Refused(one, {"query": {"limit": "many"}})
        for one in ("list_action_runs", "list_data_source_runs", "list_notifications")
    ],
    "non-boolean flag": [Refused("list_notifications", {"query": {"unreadOnly": "maybe"}})],
    "invalid variant set or duplicate experiment key": [
        Refused("create_experiment", {"body": {"name": "x", "targetType": "flag", "variants": []}}),
        Refused("create_experiment", {"body": _FLAG, "twice": True}),
    ],
    "description outside its bounds": [Refused("draft_workspace", {"body": {"description": "x"}})],
    "a plan that normalizes to nothing": [
        Refused("seed_from_draft", {"body": {"plan": {"headline": "x", "nodes": []}}})
    ],
    "fetch failures of a data source preview (secret values redacted)": [
        Refused(
            "preview_data_source",
            {"body": {"kind": "http_json", "config": {"url": "https://unknown.invalid/"}}},
        )
    ],
    "Run of an automation with no version, or not both published and enabled (when no explicit"
    " version is given)": [
        Refused("run_automation", {"body": {}}, prepare=_test_without_version),
        Refused("test_run_automation", prepare=_test_without_version),
        Refused("run_automation_from_node", prepare=_without_version),
    ],
    "Approving a legacy import run not awaiting review, with no selected workspace, or with"
    " blocking errors": [
        Refused("approve_legacy_import", prepare=_not_reviewed),
        Refused("approve_legacy_import", {"body": {"selectedWorkspaceIds": []}}),
    ],
    "Import with a `clientMutationId` still running, or reused with different input": [
        Refused("import_spreadsheet", prepare=_another_input)
    ],
    "Caller not a member of the target workspace (OAuth client choice)": [
        Refused(
            "choose_oauth_client_workspace",
            {"body": {"oauthClientId": "a-client", "workspaceId": str(uuid.uuid4())}},
        )
    ],
    "platform-admin-only operation by another caller": [
        Refused(one, as_owner=True)
        for one in (
            "approve_legacy_import", "cancel_legacy_import", "create_experiment",
            "update_experiment", "list_audience_segments",
        )
    ],
    "Provider whose adapter cannot browse": [Refused("browse_connection", prepare=_no_adapter)],
    "Resource type that cannot be imported": [Refused("import_resource", prepare=_calendar)],
    "Realtime ticket store unavailable": [Refused("create_realtime_ticket", {"store": None})],
}  # fmt: skip


def declared(operation: Operation) -> set[tuple[int, str]]:
    """The refusals that openapi.json declares for an operation, by status and code."""
    described = DOCUMENT["paths"][operation.path][operation.method]["responses"]
    shared = DOCUMENT["components"]["responses"]
    return {
        (int(status), code)
        for status, one in described.items()
        if status >= "400"
        for code in shared[one["$ref"].rpartition("/")[2]]["description"].split(", ")
    }


def test_every_condition_of_the_document_is_tried() -> None:
    assert {one.values[0] for one in CONDITIONS} == CALLS.keys()


@pytest.mark.parametrize(("condition", "kind"), CONDITIONS)
async def test_a_condition_is_refused(
    platform: Furnished, issuer: DevelopmentIssuer, condition: str, kind: str
) -> None:
    for refused in CALLS[condition]:
        operation = BY_ID[refused.operation]
        assert CODES[kind] & declared(operation), f"{operation.id} does not declare it"
        answer = await _refused(platform, issuer, refused)
        assert not answer.is_success, f"{operation.id}: {answer.text}"
        assert (answer.status_code, answer.json()["error"]) in CODES[kind], answer.text


async def _refused(made: Furnished, issuer: DevelopmentIssuer, refused: Refused) -> httpx2.Response:
    operation = BY_ID[refused.operation]
    client = made.client if refused.as_owner else caller_of(made, operation, issuer)
    differs = {**refused.by, **(await refused.prepare(made) if refused.prepare else {})}
    if differs.pop("twice", False):
        await call(client, operation, made, **differs)
    if "store" in differs:
        return await _without_tickets(made, client, operation)
    return await call(client, operation, made, **differs)


async def _without_tickets(made: Furnished, client: Any, operation: Operation) -> httpx2.Response:
    async with made.space.database.transaction() as work:
        await work.execute(text("ALTER TABLE realtime_ticket RENAME TO taken_away"))
    try:
        return await call(client, operation, made)
    finally:
        async with made.space.database.transaction() as work:
            await work.execute(text("ALTER TABLE taken_away RENAME TO realtime_ticket"))
