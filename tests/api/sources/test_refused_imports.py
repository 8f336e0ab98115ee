"""Imports of spreadsheets that are refused before anything of them is read."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from models.sources.data_source_runs.tables import data_source_run
from tests.support.client import Client
from tests.support.items import Json, refused
from tests.support.spaces import Space

SOMEWHERE = str(UUID(int=7))
FIELD = {"sourcePath": "Name", "fieldKey": "title", "label": "Name", "kind": "text"}
INLINE = {"kind": "inline", "format": "csv", "content": "YQ=="}
URL = {"kind": "url", "format": "csv"}

BAD: list[tuple[Json, str]] = [
    ({**URL, "url": "http://10.0.0.1/a.csv"}, "url"),
    ({**URL, "url": "http://[::ffff:169.254.169.254]/latest"}, "url"),
    ({**URL, "url": "http://167772161:8080/"}, "url"),
    ({**URL, "url": "https://user:secret@example.com/a.csv"}, "url"),
    ({**URL, "url": "file:///etc/passwd"}, "url"),
    ({"kind": "url"}, "url"),
    ({"kind": "file"}, "fileId"),
    ({"kind": "folder"}, "kind"),
    ({"kind": "inline", "content": "YQ=="}, "format"),
    ({"kind": "inline", "format": "csv"}, "content"),
    ({**INLINE, "content": "no base64"}, "content"),
    ({**INLINE, "text": "a"}, "content"),
    ({**INLINE, "rows": [{"a": 1}]}, "content"),
    ({"kind": "inline", "text": "a"}, "format"),
    ({**INLINE, "format": "pdf"}, "format"),
    ({**INLINE, "fields": [FIELD, FIELD]}, "fields.1.fieldKey"),
    ({**INLINE, "fields": [FIELD] * 201}, "fields"),
    ({**INLINE, "fields": [{**FIELD, "kind": "formula"}]}, "fields.0.kind"),
    ({**INLINE, "fields": [FIELD], "keyFields": ["other"]}, "keyFields.0"),
    ({**INLINE, "mode": "upsert"}, "keyFields"),
    ({**INLINE, "options": {"range": "A:B"}}, "options.range"),
    ({**INLINE, "clientMutationId": ""}, "clientMutationId"),
]


@pytest.mark.parametrize(("body", "path"), BAD)
async def test_a_bad_import_is_refused_where_it_is_wrong(
    client: Client, space: Space, body: Json, path: str
) -> None:
    answer = await _import(client, space, body)
    assert refused(answer) == (400, "validation_error")
    detail = answer.json()["details"][0]
    assert (detail["path"], "secret" in answer.text) == (path, False), detail
    assert await _accepted(space) == 0


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "file", "fileId": SOMEWHERE},
        {**INLINE, "targetDatabaseId": SOMEWHERE},
        {**INLINE, "parentItemId": SOMEWHERE},
    ],
)
async def test_resources_that_an_import_names_must_exist(
    client: Client, space: Space, body: Json
) -> None:
    answer = await _import(client, space, body)
    assert refused(answer) == (404, "not_found")
    assert await _accepted(space) == 0


async def _import(client: Client, space: Space, body: Json) -> Any:
    given = {"label": "x", "fields": [], **body}
    return await client.post(f"{space.path}/data-sources/import-spreadsheet", json=given)


async def _accepted(space: Space) -> int:
    async with space.database.transaction() as work:
        counted = select(func.count()).select_from(data_source_run)
        return int(await work.scalar(counted.where(data_source_run.c.workspace_id == space.id)))
