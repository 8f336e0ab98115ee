"""Changing a connection: its name, its config, and new credentials."""

import json

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import paged
from api.console.integrations.config_fields import (
    PREFIX,
    SECRET,
    config_fields,
    config_of,
    credentials_of,
    filled_config_fields,
    words,
)
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest
from api.routers.sources.connections import CONNECTION, WRITE
from models.core.access.rules import Scope
from models.sources.connections.commands import update_connection
from models.sources.connections.providers import PROVIDERS
from models.sources.connections.queries import get_connection
from models.sources.connections.shapes import ConnectionDetail, UpdateConnection
from runtime.errors import PlatformError

router = page_router()

_EDIT = f"{CONNECTION.removeprefix('/v1')}/edit"


@router.get(_EDIT, access=paged(Access(scopes=[Scope.INTEGRATIONS_WRITE])))
async def get_connection_edit(request: ApiRequest) -> Response:
    """Fill in what is to change."""
    return await _form(request, await _connection(request), BLANK)


@router.post(_EDIT, access=paged(WRITE))
async def edit_connection_by_form(request: ApiRequest, body: Fields) -> Response:
    """Change what the form has changed. Another config needs the credentials again."""
    connection, texts = await _connection(request), body.texts

    async def change() -> ConnectionDetail:
        content = read_as(UpdateConnection, _changes(connection, texts))
        keys = request.services.keys
        return await update_connection(request.work, request.actor, keys, connection.id, content)

    outcome = await attempt(request, change)
    if isinstance(outcome, PlatformError):
        return await _form(request, connection, Entered(texts, outcome))
    return see_other(f"/workspaces/{request.workspace_id}/integrations/connections/{outcome.id}")


def _changes(connection: ConnectionDetail, texts: dict[str, str]) -> dict[str, object]:
    """The fields that differ: the operation replaces config and credentials as a whole."""
    changes: dict[str, object] = {"label": texts.get("label", "")}
    config = config_of(connection.provider, texts)
    stored = filled_config_fields(connection)
    before = {one.name: one.default for one in stored if one.default}
    if config != config_of(connection.provider, before):
        changes["config"] = config
    if credentials := credentials_of(texts):
        changes["credentials"] = credentials
    return changes


async def _connection(request: ApiRequest) -> ConnectionDetail:
    return await get_connection(request.work, request.actor, request.ids["connectionId"])


async def _form(request: ApiRequest, connection: ConnectionDetail, entered: Entered) -> Response:
    provider = PROVIDERS[connection.provider]
    shell = await shell_of(request)
    path = f"/v1{shell.at('integrations', 'connections', connection.id)}"
    body = {"label": connection.label, "credentials": dict.fromkeys(provider.credentials, "…")}
    return page(
        request,
        "connection_edit.html",
        shell,
        connection=connection,
        fields=filled_config_fields(connection),
        secrets=[(SECRET + key, f"credentials.{key}", words(key)) for key in provider.credentials],
        told=[
            "label",
            *(PREFIX + one.key for one in config_fields(connection.provider)),
            *(f"credentials.{key}" for key in provider.credentials),
        ],
        entered=entered,
        call=curl(shell.base, "PATCH", path, json.dumps(body, ensure_ascii=False)),
    )
