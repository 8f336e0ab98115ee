"""A workspace with one of everything, made through the API, for tests that go through all of it."""

import io
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from openpyxl import Workbook
from sqlalchemy import insert, update

from models.automation.alert_rules.queries import alert_rule
from models.automation.inbox.rules import EventOutcome, EventSource, Judgement, Received
from models.automation.inbox.store import keep
from models.automation.waits.links import NodeAddress, resume_path
from models.core.access.rules import Role
from models.data.record_exports.exports import accept_export
from models.data.record_exports.shapes import CreateExport
from models.messages.deliveries.commands import close_delivery
from models.messages.deliveries.rules import DeliveryStatus
from models.messages.jobs.rules import JobStatus
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.realtime import realtime_ticket
from models.people.experiments.commands import create_experiment
from models.people.experiments.rules import TargetType
from models.people.experiments.shapes import CreateExperiment, VariantInput
from models.people.release_notices import PublishRelease, ReleaseChannel, publish_release
from models.sources.data_source_runs.imports import accept_import
from models.sources.data_source_runs.rules import RunTrigger
from models.sources.data_source_runs.shapes import ImportSpreadsheet, RunStats
from models.sources.data_source_runs.staging import find_run, keep_rejections
from models.sources.data_source_runs.tables import data_source_run
from models.sources.tabular.rules.options import ErrorKind
from models.sources.tabular.rules.rejections import Rejection
from models.workspace.legacy_imports.queries import legacy_import_run, legacy_import_workspace
from models.workspace.legacy_imports.rules import ImportStage, LegacyImportStatus
from runtime.crypto import fingerprint
from runtime.ids import new_id
from tests.support.alerts import evaluated
from tests.support.client import Client
from tests.support.incidents import open_incident
from tests.support.spaces import Space
from tests.support.undos import automation_to_undo, updated
from tests.support.written_runs import node

Json = dict[str, Any]


@dataclass
class Furnished:
    """`ids` maps the name of a path parameter or of a body's id to what it is here."""

    space: Space
    client: Client
    ids: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    checksum: str | None = None
    """Its contents at the last read; None after any possible change."""

    async def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """What stands under `data` of the answer to a call that must succeed."""
        answer = await self.client.post(path, json={} if body is None else body, **options)
        assert answer.is_success, f"POST {path}: {answer.status_code} {answer.text}"
        return answer.json()["data"]

    async def put(self, path: str, body: Any) -> None:
        """A PUT that must succeed."""
        answer = await self.client.put(path, json=body)
        assert answer.is_success, f"PUT {path}: {answer.status_code} {answer.text}"


async def furnish(space: Space, client: Client) -> Furnished:
    """One of everything."""
    made = Furnished(space, client)
    made.ids["workspaceId"] = str(space.id)
    made.secrets["asset"] = "initialize.js"
    made.secrets["pageFile"] = "run.js"
    made.secrets["template"] = "tasks"
    folder = await made.post("/v1/items", {"kind": "folder", "title": "Folder"})
    made.ids["folderId"] = folder["item"]["id"]
    await _people(made)
    await _keys(made)
    await _databases(made)
    await _records(made)
    await _surfaces(made)
    await _files(made)
    await _exports(made)
    await _forms(made)
    await _engine(made)
    await _imports(made)
    await _experiments(made)
    await _webhook_endpoints(made)
    await _legacy_imports(made)
    await _notifications(made)
    await _ticket(made)
    await _release(made)
    await _automations(made)
    await _waits(made)
    await _webhooks(made)
    await _calendar(made)
    await _run_operations(made)
    await _undos(made)
    await _incidents(made)
    await _trigger_events(made)
    await _alert_rules(made)
    await _changes(made)
    return made


async def _ticket(made: Furnished) -> None:
    """A ticket that is fresh as long as the tests take."""
    made.secrets["ticket"] = f"a-ticket-that-is-used-late-in-{made.space.id}"
    async with made.space.database.transaction() as work:
        late = work.now_after(86_400)
        await work.execute(
            insert(realtime_ticket).values(
                digest=fingerprint(made.secrets["ticket"].encode()),
                workspace_id=made.space.id,
                user_id=made.space.user_id,
                expires_at=late,
                session_expires_at=late,
            )
        )


async def _changes(made: Furnished) -> None:
    page = {"kind": "create_item", "input": {"kind": "page", "title": "Planned"}}
    proposed = await made.post(f"{made.space.path}/changes", {"operations": [page]})
    made.ids["changeId"] = proposed["id"]


async def _people(made: Furnished) -> None:
    user_id, _ = await made.space.member(Role.COMMENTER)
    made.ids["userId"] = str(user_id)
    email = f"guest-{uuid.uuid4().hex}@example.test"
    invited = await made.post(f"{made.space.path}/invitations", {"email": email, "role": "viewer"})
    made.ids["invitationId"] = invited["invitation"]["id"]
    made.secrets["token"] = invited["token"]
    made.secrets["email of accept_invitation"] = email


async def _keys(made: Furnished) -> None:
    created = await made.post(
        f"{made.space.path}/api-keys", {"name": "spare", "scopes": ["records:read"]}
    )
    made.ids["apiKeyId"] = created["apiKey"]["id"]


async def _webhook_endpoints(made: Furnished) -> None:
    path = f"{made.space.path}/webhook-endpoints"
    endpoint = await made.post(path, {"url": "https://hooks.example.test/"})
    made.ids["endpointId"] = endpoint["id"]
    sent = await made.post(f"{path}/{endpoint['id']}/test")
    made.ids["deliveryId"] = sent["id"]
    async with made.space.database.transaction() as work:
        await close_delivery(work, uuid.UUID(sent["id"]), DeliveryStatus.FAILED)


async def _experiments(made: Furnished) -> None:
    body = CreateExperiment(
        name="Short form",
        targetType=TargetType.FLAG,
        flagKey=uuid.uuid4().hex,
        variants=[VariantInput(label=label, split=50) for label in ("As it is", "Other")],
    )
    async with made.space.database.transaction() as work:
        principal = made.space.actor.principal
        shown = await create_experiment(work, principal, uuid.uuid4(), body)
    made.ids["experimentId"] = str(shown.id)


async def _legacy_imports(made: Furnished) -> None:
    """A run for each state in which one of the operations is called."""
    states = {
        "reviewedImport": (LegacyImportStatus.AWAITING_REVIEW, ImportStage.READY),
        "approvedImport": (LegacyImportStatus.APPROVED, ImportStage.READY),
        "failedImport": (LegacyImportStatus.FAILED, ImportStage.FAILED),
        "finishedImport": (LegacyImportStatus.CANCELLED, ImportStage.DONE),
        "openImport": (LegacyImportStatus.UPLOADED, ImportStage.QUEUED),
    }
    written = {LegacyImportStatus.FAILED, LegacyImportStatus.CANCELLED}
    async with made.space.database.transaction() as work:
        for place, (name, (status, stage)) in enumerate(states.items()):
            run_id, entry_id = uuid.uuid4(), uuid.uuid4()
            run = {
                "id": run_id,
                "bundle_object_key": "bundles/one.zip",
                "bundle_checksum": "0" * 64,
                "uploaded": False,
                "status": status.value,
                "mode": "dry_run",
                "created_by_user_id": made.space.user_id,
                "created_at": work.now + timedelta(milliseconds=place),
                "updated_at": work.now,
                "completed_at": work.now if status in written else None,
            }
            entry = {
                "id": entry_id,
                "run_id": run_id,
                "position": 0,
                "source_workspace_id": str(uuid.uuid4()),
                "source_name": "Old",
                "creates": True,
                "selected": True,
                "stage": stage.value,
                "lifecycle_state": "hidden" if status in written else "pending",
                "rollback_state": "none",
                "created_at": work.now,
                "updated_at": work.now,
            }
            await work.execute(insert(legacy_import_run).values(run))
            await work.execute(insert(legacy_import_workspace).values(entry))
            made.ids[f"{name}Id"], made.ids[f"{name}EntryId"] = str(run_id), str(entry_id)


async def _databases(made: Furnished) -> None:
    fields = [{"label": "Price", "kind": "number"}, {"label": "Spent", "kind": "timer"}]
    body = {"label": "Goods", "fields": fields}
    database = await made.post(f"{made.space.path}/databases", body)
    made.ids["databaseId"] = database["id"]
    made.ids["itemId"] = database["itemId"]
    made.ids["fieldId"] = next(one["id"] for one in database["fields"] if one["key"] == "price")
    timer = next(one["id"] for one in database["fields"] if one["key"] == "spent")
    made.ids["timerFieldId"] = timer
    path = f"/v1/databases/{database['id']}"
    view = await made.post(f"{path}/views", {"label": "Cheap", "kind": "table"})
    made.ids["viewId"] = view["id"]
    template = await made.post(f"{path}/record-templates", {"label": "Usual", "data": {"price": 1}})
    made.ids["templateId"] = template["id"]


async def _records(made: Furnished) -> None:
    path = f"/v1/databases/{made.ids['databaseId']}/records"
    record = await made.post(path, {"title": "Tea", "data": {"price": 3}})
    made.ids["recordId"] = record["id"]
    comment = await made.post(f"/v1/records/{record['id']}/comments", {"body": "Good."})
    made.ids["recordCommentId"] = comment["id"]
    timed = {"targetKind": "database_record", "targetId": record["id"]}
    started = await made.post(f"{made.space.path}/time-entries", timed)
    made.ids["entryId"] = started["entry"]["id"]


async def _surfaces(made: Furnished) -> None:
    page = await made.post("/v1/items", {"kind": "page", "title": "Page"})
    made.ids["pageItemId"] = page["item"]["id"]
    made.ids["surfaceId"] = page["item"]["targetId"]
    path = f"/v1/surfaces/{made.ids['surfaceId']}"
    blocks = await made.post(
        f"{path}/blocks",
        {"blocks": [{"kind": "paragraph", "content": {"text": [{"text": "Words"}]}}]},
    )
    made.ids["blockId"] = blocks["blocks"][0]["id"]
    comment = await made.post(f"{path}/comments", {"body": "Well said."})
    made.ids["surfaceCommentId"] = comment["id"]
    link = await made.post(f"{made.space.path}/items/{made.ids['pageItemId']}/share-links")
    made.ids["shareLinkId"] = link["id"]
    made.secrets["share token"] = link["token"]


async def _files(made: Furnished) -> None:
    answer = await made.client.post(
        f"{made.space.path}/files?name=note.txt",
        content=b"Words",
        headers={"Content-Type": "text/plain"},
    )
    assert answer.status_code == 201, answer.text
    stored = answer.json()["data"]
    made.ids["fileId"] = stored["fileId"]
    made.secrets["assetToken"] = stored["downloadUrl"].rpartition("/")[2]
    item = await made.post(
        "/v1/items", {"kind": "file", "title": "Note", "config": {"fileId": stored["fileId"]}}
    )
    made.ids["fileItemId"] = item["item"]["id"]
    link = await made.post(
        f"{made.space.path}/items/{item['item']['id']}/share-links", {"allowDownload": True}
    )
    made.ids["fileShareLinkId"] = link["id"]
    made.secrets["file share token"] = link["token"]


async def _calendar(made: Furnished) -> None:
    fields = [{"label": "Day", "kind": "date"}]
    database = await made.post(f"{made.space.path}/databases", {"label": "Trips", "fields": fields})
    link = await made.post(f"{made.space.path}/items/{database['itemId']}/share-links")
    made.ids["calendarShareLinkId"] = link["id"]
    made.secrets["calendar share token"] = link["token"]


async def _imports(made: Furnished) -> None:
    answer = await made.client.post(
        f"{made.space.path}/files?name=sheet.csv",
        content=b"title,price\nTea,3\n",
        headers={"Content-Type": "text/csv"},
    )
    made.ids["sheetFileId"] = answer.json()["data"]["fileId"]
    path = f"{made.space.path}/files?name=sheet.xlsx"
    answer = await made.client.post(path, content=_workbook(), headers={"Content-Type": "text/x"})
    made.ids["workbookFileId"] = answer.json()["data"]["fileId"]
    given = {"label": "Sheet", "kind": "file", "fileId": made.ids["sheetFileId"]}
    async with made.space.database.transaction() as work:
        body = ImportSpreadsheet.model_validate(given)
        import_id = await accept_import(work, made.space.actor, uuid.uuid4(), body)
    made.ids["importId"] = str(import_id)
    made.ids["importDoneId"] = await _ended_run(made, None)
    made.ids["dataSourceDoneRunId"] = await _ended_run(made, made.ids["dataSourceId"])
    await _ended_run(made, made.ids["dataSourceId"], JobStatus.FAILED)
    idle = {"label": "Idle", "kind": "http_json", "config": {"url": "https://example.test/"}}
    made.ids["idleSourceId"] = (await made.post(f"{made.space.path}/data-sources", idle))["id"]
    failed = await _ended_run(made, made.ids["idleSourceId"], JobStatus.FAILED)
    made.ids["failedSourceRunId"] = failed


def _workbook() -> bytes:
    book = Workbook()
    assert book.active is not None
    book.active.append(["Title", "Price"])
    book.active.append(["Tea", 3])
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


async def _ended_run(
    made: Furnished,
    data_source_id: str | None,
    status: JobStatus = JobStatus.SUCCEEDED,
) -> str:
    """A run that has ended without a row."""
    failed = status is JobStatus.FAILED
    run_id, database_id = uuid.uuid4(), made.ids["databaseId"]
    counted = RunStats().model_dump(by_alias=True)
    result = {"databaseId": database_id, "itemId": made.ids["itemId"], "label": "G", "lost": 0}
    async with made.space.database.transaction() as work:
        row: dict[str, Any] = {
            "id": run_id,
            "workspace_id": made.space.id,
            "data_source_id": data_source_id,
            "database_id": database_id,
            "status": status.value,
            "trigger": RunTrigger.MANUAL.value,
            "actor_user_id": made.space.actor.user_id,
            "chain": [],
            "plan": {"kind": "file", "force": False},
            "progress": {"mapping": []},
            "stats": counted,
            "result": result,
            "error": "The host does not answer." if failed else None,
            "error_kind": ErrorKind.FETCH.value if failed else None,
            "created_at": work.now,
            "completed_at": work.now,
        }
        await work.execute(insert(data_source_run).values(row))
        rejected = Rejection(3, "Price", "price", "two", "Not a number.")
        run = await find_run(work, run_id)
        await keep_rejections(work, run, [rejected], 0)
    return str(run_id)


async def _exports(made: Furnished) -> None:
    export_id = uuid.uuid4()
    async with made.space.database.transaction() as work:
        body = CreateExport.model_validate({"format": "csv"})
        database_id = uuid.UUID(made.ids["databaseId"])
        await accept_export(work, made.space.actor, database_id, export_id, body)
    made.ids["exportId"] = str(export_id)
    exported = await made.post(f"{made.space.path}/workspace-exports")
    made.ids["workspaceExportId"] = exported["id"]


async def _forms(made: Furnished) -> None:
    config = {
        "databaseId": made.ids["databaseId"],
        "fields": [{"key": "title"}, {"key": "price"}],
        "public": True,
    }
    form = await made.post("/v1/items", {"kind": "form", "title": "Form", "config": config})
    made.ids["formItemId"] = form["item"]["id"]
    made.ids["formId"] = form["item"]["targetId"]


async def _engine(made: Furnished) -> None:
    source = {"label": "Source", "kind": "http_json", "config": {"url": "https://example.test/"}}
    data_source = await made.post(f"{made.space.path}/data-sources", source)
    made.ids["dataSourceId"] = data_source["id"]
    refreshed = await made.post(f"{made.space.path}/data-sources/{data_source['id']}/refresh")
    made.ids["dataSourceRunId"] = refreshed["id"]
    refresh = {"kind": "refresh_data_source", "dataSourceId": data_source["id"]}
    action = await made.post(
        f"{made.space.path}/actions",
        {"label": "Refresh", "kind": "refresh_data_source", "config": refresh},
    )
    made.ids["actionId"] = action["id"]
    path = f"{made.space.path}/actions/{action['id']}"
    made.ids["actionRunId"] = (await made.post(f"{path}/run", {"wait": False}))["id"]
    button = {"label": "Press", "kind": "button", "settings": {"actionId": action["id"]}}
    field = await made.post(f"/v1/databases/{made.ids['databaseId']}/fields", button)
    made.secrets["fieldKey"] = field["key"]


async def _notifications(made: Furnished) -> None:
    notice = Notice(kind=NotificationKind.SYSTEM, title="Something happened")
    async with made.space.database.transaction() as work:
        await notify(work, made.space.id, [made.space.user_id], notice)
    listed = await made.client.get(f"{made.space.path}/notifications")
    made.ids["notificationId"] = listed.json()["data"]["notifications"][0]["id"]


async def _release(made: Furnished) -> None:
    made.secrets["channel"] = "web"
    body = PublishRelease(channel=ReleaseChannel.WEB, title="New", body="Words")
    async with made.space.database.transaction() as work:
        release = await publish_release(work, made.space.actor.principal, body)
    made.ids["releaseId"] = str(release.id)


async def _automations(made: Furnished) -> None:
    graph: Json = {
        "nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}],
        "edges": [],
    }
    automations = f"{made.space.path}/automations"
    body = {"label": "Test", "triggerConfig": {"kind": "manual"}, "graph": graph}
    automation = await made.post(automations, {**body, "enabled": True})
    made.ids["automationId"] = automation["id"]
    hourly = {"kind": "schedule", "intervalSeconds": 3_600}
    scheduled = await made.post(automations, {**body, "enabled": True, "triggerConfig": hourly})
    made.ids["scheduledAutomationId"] = scheduled["id"]
    await made.post(f"{automations}/{scheduled['id']}/publish")
    edited = await made.post(automations, body)
    made.ids["draftAutomationId"] = edited["id"]
    await made.post(f"{automations}/{edited['id']}/publish")
    changed = {**graph, "nodes": [{**graph["nodes"][0], "label": "Changed"}]}
    await made.client.patch(f"{automations}/{edited['id']}", json={"graph": changed})
    names = ("startedAutomationId", "canaryAutomationId", "otherCanaryAutomationId")
    for name in names:
        tried = await made.post(automations, {**body, "enabled": True})
        made.ids[name] = tried["id"]
        await made.post(f"{automations}/{tried['id']}/publish")
        await made.client.patch(f"{automations}/{tried['id']}", json={"graph": changed})
        if name != names[0]:
            await made.post(f"{automations}/{tried['id']}/canary", {"percent": 10})
    path = f"{automations}/{automation['id']}"
    published = await made.post(f"{path}/publish")
    made.ids["versionId"] = published["publishedVersionId"]
    run = await made.post(f"{path}/run")
    made.ids["runId"] = run["id"]
    batch = await made.post(f"{path}/runs/batch", {"payloads": [{}]})
    made.ids["batchId"] = batch["id"]
    saved = await made.post(
        f"{made.space.path}/run-filters",
        {"label": "Failed", "query": {"status": "failed"}, "shared": True},
    )
    made.ids["filterId"] = saved["id"]


async def _waits(made: Furnished) -> None:
    """A run with a node that will wait for an event."""
    graph: Json = {"nodes": [{"id": "w", "kind": "wait_event"}], "edges": []}
    body = {"label": "Waits", "graph": graph, "enabled": True, "triggerConfig": {"kind": "manual"}}
    automation = await made.post(f"{made.space.path}/automations", body)
    path = f"{made.space.path}/automations/{automation['id']}"
    await made.post(f"{path}/publish")
    run = await made.post(f"{path}/run")
    made.ids["waitAutomationId"], made.ids["waitRunId"] = automation["id"], run["id"]
    made.secrets["node"] = "w"
    url = resume_path(made.space.keys, NodeAddress(uuid.UUID(run["id"]), "w"))
    made.secrets["resumeToken"] = url.rpartition("/")[2]


async def _run_operations(made: Furnished) -> None:
    """Operations over runs: one that lasts, one that is paused, and one that has ended."""
    graph: Json = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]}
    body = {"label": "Repeated", "graph": graph, "triggerConfig": {"kind": "manual"}}
    automation = await made.post(f"{made.space.path}/automations", {**body, "enabled": True})
    path = f"{made.space.path}/automations/{automation['id']}"
    await made.post(f"{path}/publish")
    payloads: Json = {"payloads": [{}] * 3}
    runs = await made.post(f"{path}/runs/batch", payloads)
    run_ids = [one["runId"] for one in runs["results"]]
    operations = f"{made.space.path}/run-operations"
    slow: Json = {"action": "retry", "runIds": run_ids, "retry": {"from": "start"}, "rate": 0.01}
    for name in ("runOperationId", "pausedRunOperationId"):
        made.ids[name] = (await made.post(operations, slow))["id"]
    await made.post(f"{operations}/{made.ids['pausedRunOperationId']}/pause")
    await made.post(f"{path}/runs/cancel")
    listed = await made.client.get(operations)
    made.ids["endedRunOperationId"] = listed.json()["data"]["runOperations"][0]["id"]


async def _undos(made: Furnished) -> None:
    """A run that wrote a record, with an undo of it."""
    automation = await automation_to_undo(made.client, made.space)
    record = await made.post(f"/v1/databases/{made.ids['databaseId']}/records", {"title": "Before"})
    call = node("call", 1, node_kind="http_request")
    run_id = await automation.run(updated(record["id"], title="After"), nodes=[call])
    undo = await automation.undo(run_id)
    made.ids["undoneAutomationId"] = str(automation.version.automation_id)
    made.ids["undoneRunId"], made.ids["undoId"] = run_id, undo["id"]


async def _incidents(made: Furnished) -> None:
    """Two incidents: an open one, and one that was closed."""
    for name, message in (("incidentId", "It fell."), ("closedIncidentId", "It broke.")):
        about = {"record": {"id": made.ids["recordId"]}}
        incident_id = await open_incident(
            made.space, made.ids["automationId"], message, trigger_payload=about
        )
        made.ids[name] = str(incident_id)
    await made.post(f"{made.space.path}/incidents/{made.ids['closedIncidentId']}/close")


async def _trigger_events(made: Furnished) -> None:
    """A call of the automation that its filter did not match."""
    space, automation_id = made.space, uuid.UUID(made.ids["automationId"])
    event = Received(new_id(), space.id, EventSource.CALL, automation_id, {"order": 17})
    detail = {"term": "trigger.order > 20", "value": {"trigger.order": 17}}
    async with space.database.transaction() as work:
        await keep(work, event, {automation_id: Judgement(EventOutcome.FILTERED, detail=detail)})
    made.ids["eventId"] = str(event.id)


async def _alert_rules(made: Furnished) -> None:
    """A rule about the automation, which has fired."""
    query = {"automationId": made.ids["automationId"]}
    condition = {"kind": "failures", "runs": 1, "minutes": 60, "query": query}
    path = f"{made.space.path}/alert-rules"
    rule = await made.post(path, {"label": "It fails", "condition": condition})
    made.ids["alertRuleId"] = rule["id"]
    await evaluated(made.space)
    # Furnishing another workspace later evaluates all due rules, and must change nothing here.
    async with made.space.database.transaction() as work:
        mine = alert_rule.c.workspace_id == made.space.id
        await work.execute(update(alert_rule).where(mine).values(due_at=work.now_after(86_400)))


async def _webhooks(made: Furnished) -> None:
    """A secret, a connection, and a webhook that was called before."""
    made.ids["secretName"] = "GREETING"
    answer = await made.client.put(f"{made.space.path}/secrets/GREETING", json={"value": "Hello"})
    assert answer.is_success, answer.text
    connected = {
        "provider": "demo",
        "label": "Prices",
        "shared": True,
    }
    connection = await made.post(f"{made.space.path}/integrations/connections", connected)
    made.ids["connectionId"] = connection["id"]
    limit = {"host": "furnished.example.test", "perSecond": 5}
    limited = await made.post(f"{made.space.path}/integrations/outbound-limits", limit)
    made.ids["limitId"] = limited["id"]
    made.secrets.update(provider="demo", oauthClient="a-client")
    resource = {
        "externalType": "document",
        "externalId": "welcome",
        "name": "Welcome.md",
        "surfaceKind": "document",
        "capabilities": ["read"],
    }
    link = {"kind": "external_resource", "title": "Link", "config": {"resource": resource}}
    mounted = await made.post("/v1/items", {**link, "parentItemId": made.ids["folderId"]})
    made.ids["mountId"] = mounted["item"]["targetId"]
    made.ids["resourceImportId"] = str(uuid.uuid4())
    signing_in = {"provider": "github", "label": "Repositories"}
    started = await made.post(f"{made.space.path}/integrations/oauth/start", signing_in)
    made.secrets.update(state=started["state"], code="x")
    trigger = {
        "kind": "webhook",
        "auth": "none",
        "methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
        "dedupe": {"source": "header", "name": "X-Delivery"},
    }
    graph: Json = {"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]}
    body = {"label": "Called", "triggerConfig": trigger, "graph": graph, "enabled": True}
    automation = await made.post(f"{made.space.path}/automations", body)
    await made.post(f"{made.space.path}/automations/{automation['id']}/publish")
    made.ids["webhookToken"] = automation["webhookPath"].rpartition("/")[2]
    await made.post(automation["webhookPath"], headers={"X-Delivery": "1"})
