"""Data sources as pages: made, previewed, refreshed, switched and removed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Form, given, read_as, redisplays
from api.console.forms import done, paged, read_json
from api.console.integrations.resources import Outcome, outcome_of
from api.console.rendering import Shell, console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import named
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.sources import data_sources as api
from api.routers.sources.data_sources import DATA_SOURCE, DATA_SOURCES, READ, RUN, WRITE
from models.core.access.rules import Level, Scope
from models.core.base import Id, JsonObject
from models.data.fields.queries import database_label, seen_databases
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import own_job
from models.sources.data_source_runs import acceptance
from models.sources.data_source_runs.overviews import get_data_source, list_data_sources
from models.sources.data_source_runs.queries import list_runs, remarks
from models.sources.data_source_runs.rules import OPEN_RUN
from models.sources.data_sources import commands
from models.sources.data_sources import queries as data_source_queries
from models.sources.data_sources.rules import DataSourceKind, FieldMapping, RemovedRows, WriteMode
from runtime.errors import ConflictError, NotFoundError
from runtime.temporal.workflow_kinds import WorkflowKind

router = page_router()

PAGE = 50
_SHOWN_RUNS = 30
_ALL = DATA_SOURCES.removeprefix("/v1")
_ONE = DATA_SOURCE.removeprefix("/v1")
_RUN = RUN.removeprefix("/v1")
CREATE = Access(scopes=[Scope.DATA_SOURCES_WRITE], level=Level.EDIT, idempotent=True)

EXAMPLES: Mapping[DataSourceKind, JsonObject] = {
    DataSourceKind.HTTP_JSON: {"url": "https://example.com/orders.json", "jsonPath": "$.orders"},
    DataSourceKind.HTTP_CSV: {"url": "https://example.com/prices.csv", "delimiter": ";"},
    DataSourceKind.HTTP_XLSX: {"url": "https://example.com/prices.xlsx", "sheetName": "Prices"},
    DataSourceKind.FILE: {"fileId": "file ID", "format": "csv"},
    DataSourceKind.SQL: {"connectionId": "connection ID", "query": "SELECT id, name FROM t"},
}
"""A config of each kind that a person can write by hand."""

MODES = [(one.value, named(one)) for one in WriteMode]
REMOVALS = [(one.value, named(one)) for one in RemovedRows]


class NewSource(Form):
    """A data source as a person describes it; the config is JSON, the keys stand between commas."""

    label: str | None = None
    kind: str
    config: str = "{}"
    key_fields: str = ""
    write_mode: str = WriteMode.UPSERT.value
    removed_rows: str = RemovedRows.ARCHIVE.value


class Switch(Form):
    """The state that the data source is to have."""

    enabled: Literal["true", "false"]


class Refresh(Form):
    """A refresh; with `force` it may remove more rows than the guard allows."""

    force: Literal["true"] | None = None


@router.get(_ALL, access=paged(Access(scopes=[Scope.DATA_SOURCES_READ], level=Level.VIEW)))
async def get_sources(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the data sources of a workspace."""
    shown = request.page("console data sources", PAGE, cursor)
    listed = await list_data_sources(request.work, request.actor, shown)
    return await console_page(
        request,
        "sources.html",
        (api.list_data_sources, {"limit": PAGE}),
        api.create_data_source,
        listed=listed,
        cursor=cursor,
    )


async def _new(
    request: ApiRequest, entered: Entered, kind: DataSourceKind | None = None
) -> Response:
    """The form of a new data source of a kind."""
    named_kinds = {kind.value: kind for kind in DataSourceKind}
    kind = kind or named_kinds.get(entered.texts.get("kind", "")) or DataSourceKind.HTTP_JSON
    example = EXAMPLES.get(kind, {})
    body = {"label": "Orders", "kind": kind.value, "config": example, "keyFields": ["id"]}
    return await console_page(
        request,
        "source_form.html",
        (api.create_data_source, body),
        kind=kind,
        kinds=[(one.value, named(one)) for one in EXAMPLES],
        draft={"kind": kind.value, "config": json.dumps(example, indent=2)},
        modes=MODES,
        removals=REMOVALS,
        entered=entered,
    )


@router.get(f"{_ALL}/new", access=paged(CREATE))
async def get_new(request: ApiRequest, kind: DataSourceKind = DataSourceKind.HTTP_JSON) -> Response:
    """Describe a new data source."""
    return await _new(request, BLANK, kind)


@router.post(_ALL, access=paged(CREATE), errors=[ConflictError])
@redisplays(_new)
async def create(request: ApiRequest, body: NewSource) -> Response:
    """Create a data source, and lead to it."""
    keys = [key.strip() for key in body.key_fields.split(",")]
    fields = {
        "label": body.label,
        "kind": body.kind,
        "config": read_json("config", body.config),
        "keyFields": [key for key in keys if key],
        "writeMode": body.write_mode,
        "removedRows": body.removed_rows,
    }
    description = read_as(data_source_queries.CreateDataSource, given(fields))
    source = await commands.create_data_source(request.work, request.actor, description)
    return see_other(f"/workspaces/{request.workspace_id}/data-sources/{source.id}")


@router.get(_ONE, access=paged(READ))
async def get_source(request: ApiRequest) -> Response:
    """Look at a data source and its runs, and follow them."""
    work, workspace_id, source_id = request.work, request.actor.workspace_id, _id(request)
    source = await get_data_source(work, workspace_id, source_id)
    latest = request.page("runs on the page of a data source", _SHOWN_RUNS, None)
    runs = (await list_runs(work, workspace_id, source_id, latest)).items
    return await console_page(
        request,
        "source.html",
        api.refresh_data_source,
        api.get_data_source,
        api.update_data_source,
        source=source,
        runs=runs,
        remarks=remarks,
        target=await _target_label(request, source.target_database_id),
        open_states=OPEN_RUN,
        states=JobStatus,
        config=json.dumps(source.config, indent=2, ensure_ascii=False),
    )


@router.post(f"{_ONE}/refresh", access=paged(WRITE))
async def refresh(request: ApiRequest, body: Refresh) -> Response:
    """Refresh a data source."""
    run_id, force = request.new_id, body.force is not None
    await acceptance.accept_refresh(request.work, request.actor, _id(request), run_id, force=force)
    return done(request, "Refresh started", _path(request))


@router.post(f"{_ONE}/enable", access=paged(WRITE), errors=[ConflictError])
async def enable(request: ApiRequest, body: Switch) -> Response:
    """Let a data source be refreshed, or stop that."""
    change = read_as(
        data_source_queries.UpdateDataSource, given({"enabled": body.enabled == "true"})
    )
    await commands.update_data_source(request.work, request.actor, _id(request), change, None)
    word = "enabled" if body.enabled == "true" else "disabled"
    return done(request, f"Data source {word}", _path(request))


act(router, f"{_ONE}/delete", api.delete_data_source, then=_ALL)


for _verb, _operation, _message in (
    ("cancel", api.cancel_data_source_run, "Run cancelled"),
    ("retry", api.retry_data_source_run, "Retry started"),
    ("revert", api.revert_data_source_run, "Reverting run"),
):
    act(router, f"{_RUN}/{_verb}", _operation, message=_message, then=_ONE)


async def _target_label(request: ApiRequest, database_id: Id | None) -> str | None:
    """The name of the database that rows go to, if the caller sees it."""
    work, actor = request.work, request.actor
    if database_id is None or await work.scalar(seen_databases(actor, [database_id])) is None:
        return None
    return await database_label(work, actor.workspace_id, database_id)


def _id(request: ApiRequest) -> Id:
    return request.ids["dataSourceId"]


def _path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/data-sources/{_id(request)}"


_READ = paged(replace(CREATE, joins=True, heavy=True, safe=True))
_ROWS = 20


@router.post(f"{_ALL}/preview", access=_READ)
@redisplays(_new)
async def preview_described(request: ApiRequest, body: NewSource) -> Response:
    """Read the first rows of a source that is being described."""
    fields = {"kind": body.kind, "config": read_json("config", body.config), "limit": _ROWS}
    wanted = read_as(data_source_queries.PreviewDataSource, given(fields))
    draft = body.model_dump(by_alias=True, exclude_none=True)
    await commands.accept_preview(request.work, request.actor, request.new_id, wanted, draft)
    return _lead(request)


@router.post(f"{_ONE}/preview", access=paged(replace(WRITE, joins=True, heavy=True, safe=True)))
async def preview_stored(request: ApiRequest) -> Response:
    """Read the first rows of a source as they are now."""
    work, actor, source_id = request.work, request.actor, request.ids["dataSourceId"]
    source = await data_source_queries.find_data_source(work, actor.workspace_id, source_id)
    draft: JsonObject = {"source": str(source_id), "label": source.label}
    mapping = [FieldMapping.model_validate(one) for one in source.fields]
    target = commands.Target(mapping, source.target_database_id)
    read = commands.Read(DataSourceKind(source.kind), source.config, _ROWS, target)
    await commands.accept_reading(work, actor, request.new_id, read, draft)
    return _lead(request)


@router.get(f"{_ALL}/previews/{{previewId}}", access=paged(replace(CREATE, idempotent=False)))
async def get_source_preview(request: ApiRequest) -> Response:
    """Look at the first rows of a source, and at the fields that its columns suggest."""
    work, actor, preview_id = request.work, request.actor, request.ids["previewId"]
    job = await own_job(work, actor, WorkflowKind.DATA_SOURCE_PREVIEW, preview_id)
    outcome: Outcome[data_source_queries.DataSourcePreview] = await outcome_of(
        commands.preview_outcome(work, actor, preview_id, last=False)
    )
    preview, draft = outcome.value, job.input["draft"]
    if not {"source", "kind"} & draft.keys():
        raise NotFoundError("data source preview")
    shell = await shell_of(request)
    return page(
        request,
        "source_preview.html",
        shell,
        outcome=outcome,
        draft=draft,
        stored=draft.get("source"),
        columns=[] if preview is None else [one.source_path for one in preview.columns],
        rows=[] if preview is None else preview.rows,
        modes=MODES,
        removals=REMOVALS,
        api=_calls(shell, job.input),
    )


def _calls(shell: Shell, held: Mapping[str, Any]) -> Mapping[str, str]:
    """The equal call; the config of a source that is there may hold what only it shows in part."""
    if "source" in held["draft"]:
        return shell.calls(api.get_data_source, data_source_id=held["draft"]["source"])
    body = {"kind": held["kind"], "config": held["config"], "limit": commands.MAX_ROWS}
    return shell.calls((api.preview_data_source, body))


def _lead(request: ApiRequest) -> Response:
    path = f"/workspaces/{request.workspace_id}/data-sources/previews"
    return see_other(f"{path}/{request.new_id}")
