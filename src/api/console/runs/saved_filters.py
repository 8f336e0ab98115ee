"""Saved filters of the list of runs: saved, renamed and deleted above the list."""

import json
from dataclasses import replace
from typing import Literal
from urllib.parse import urlencode

from starlette.responses import Response

from api.console.entered import read_as
from api.console.forms import Form, paged
from api.console.rendering import see_other
from api.console.routing import page_router
from api.kernel.routing import ApiRequest
from api.routers.automation.run_filters import CHANGE, FILTER, FILTERS
from models.automation.saved_run_filters import commands
from models.automation.saved_run_filters.shapes import (
    CreateRunFilter,
    RunFilterShape,
    UpdateRunFilter,
)
from models.core.base import JsonObject
from runtime.errors import ConflictError, ValidationError

router = page_router()

_CHANGE = replace(paged(CHANGE), joins=True)
_FILTER = FILTER.removeprefix("/v1")


class Save(Form):
    """A name, and the filter as JSON."""

    label: str = ""
    query: str = "{}"
    share: Literal["on"] | None = None


class Rename(Form):
    """The new name."""

    label: str = ""


@router.post(FILTERS.removeprefix("/v1"), access=_CHANGE, errors=[ConflictError])
async def save_filter(request: ApiRequest, body: Save) -> Response:
    """Save a filter, and lead to the runs that fit it."""
    values = {"label": body.label, "query": _read(body.query), "shared": body.share is not None}
    creation = read_as(CreateRunFilter, values)
    saved = await commands.create_filter(request.work, request.actor, request.new_id, creation)
    return _led(request, saved)


@router.post(f"{_FILTER}/rename", access=_CHANGE)
async def rename_filter(request: ApiRequest, body: Rename) -> Response:
    """Give a saved filter another name."""
    change = read_as(UpdateRunFilter, {"label": body.label})
    filter_id = request.ids["filterId"]
    return _led(
        request, await commands.update_filter(request.work, request.actor, filter_id, change)
    )


@router.post(f"{_FILTER}/delete", access=_CHANGE)
async def delete_saved_filter(request: ApiRequest) -> Response:
    """Delete a saved filter, and lead to all runs."""
    await commands.delete_filter(request.work, request.actor, request.ids["filterId"])
    return see_other(f"/workspaces/{request.workspace_id}/runs")


def _read(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError:
        raise ValidationError.at("query", "must be JSON") from None
    if not isinstance(value, dict):
        raise ValidationError.at("query", "must be a JSON object")
    return value


def _led(request: ApiRequest, saved: RunFilterShape) -> Response:
    """Lead to the runs that fit a filter."""
    place = f"/workspaces/{request.workspace_id}/runs"
    return see_other(f"{place}?{urlencode(saved.query)}" if saved.query else place)
