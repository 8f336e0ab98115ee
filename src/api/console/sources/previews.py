"""The first rows of a data source, one that is there or one that is being described."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from api.console.forms import body_of, paged, read_json
from api.console.integrations.calls import Outcome, outcome_of
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.sources.routes import CREATE, MODES, REMOVALS, NewSource
from api.console.words import curl
from api.kernel.routing import ApiRequest
from api.routers.sources.data_sources import DATA_SOURCE, DATA_SOURCES, WRITE
from models.core.base import JsonObject
from models.messages.jobs.queries import own_job
from models.sources.data_sources.previews import (
    MAX_ROWS,
    Read,
    Target,
    accept_preview,
    accept_reading,
    preview_outcome,
)
from models.sources.data_sources.queries import find_data_source
from models.sources.data_sources.rules.configs import DataSourceKind, FieldMapping
from models.sources.data_sources.shapes import DataSourcePreview, PreviewDataSource
from runtime.errors import NotFoundError
from runtime.families import Family

router = page_router()

_ALL = DATA_SOURCES.removeprefix("/v1")
_ONE = DATA_SOURCE.removeprefix("/v1")
_READ = paged(replace(CREATE, joins=True, heavy=True))
_ROWS = 20


@router.post(f"{_ALL}/preview", access=_READ)
async def preview_described(request: ApiRequest, body: NewSource) -> Response:
    """Read the first rows of a source that is being described."""
    fields = {"kind": body.kind, "config": read_json("config", body.config), "limit": _ROWS}
    wanted = body_of(PreviewDataSource, fields)
    draft = body.model_dump(by_alias=True, exclude_none=True)
    await accept_preview(request.work, request.actor, request.new_id, wanted, draft)
    return _lead(request)


@router.post(f"{_ONE}/preview", access=paged(replace(WRITE, joins=True, heavy=True)))
async def preview_stored(request: ApiRequest) -> Response:
    """Read the first rows of a source as they are now."""
    work, actor, source_id = request.work, request.actor, request.ids["dataSourceId"]
    source = await find_data_source(work, actor.workspace_id, source_id)
    draft: JsonObject = {"source": str(source_id), "label": source.label}
    mapping = [FieldMapping.model_validate(one) for one in source.fields]
    target = Target(mapping, source.target_database_id)
    read = Read(DataSourceKind(source.kind), source.config, _ROWS, target)
    await accept_reading(work, actor, request.new_id, read, draft)
    return _lead(request)


@router.get(f"{_ALL}/previews/{{previewId}}", access=paged(replace(CREATE, idempotent=False)))
async def get_source_preview(request: ApiRequest) -> Response:
    """Look at the first rows of a source, and at the fields that its columns suggest."""
    work, actor, preview_id = request.work, request.actor, request.ids["previewId"]
    job = await own_job(work, actor, Family.DATA_SOURCE_PREVIEW, preview_id)
    outcome: Outcome[DataSourcePreview] = await outcome_of(
        preview_outcome(work, actor, preview_id, last=False)
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
        call=_call(shell, job.input),
    )


def _call(shell: Shell, held: Mapping[str, Any]) -> str:
    """The equal call; the config of a source that is there may hold what only it shows in part."""
    path = f"/v1{shell.at('data-sources')}"
    if "source" in held["draft"]:
        return curl(shell.base, "GET", f"{path}/{held['draft']['source']}")
    body = {"kind": held["kind"], "config": held["config"], "limit": MAX_ROWS}
    return curl(shell.base, "POST", f"{path}/preview", json.dumps(body))


def _lead(request: ApiRequest) -> Response:
    path = f"/workspaces/{request.workspace_id}/data-sources/previews"
    return see_other(f"{path}/{request.new_id}")
