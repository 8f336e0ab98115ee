"""Indexes of fields, built as their job does."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from models.data.fields.queries import load_schema
from models.data.records.side_index import build_index
from runtime.ids import new_id
from tests.support.spaces import Space


async def index(space: Space, database_id: UUID, key: str) -> None:
    """Index a field as its job does."""
    progress: dict[str, Any] | None = {}
    job_id = new_id()
    async with space.database.transaction() as work:
        schema = await load_schema(work, space.id, database_id)
    subject = {"workspace_id": space.id, "subject_id": schema.fields[key].id}
    given = {"id": job_id, "input": {"databaseId": str(database_id)}, **subject}
    while progress is not None:
        async with space.database.transaction() as work:
            progress = await build_index(work, SimpleNamespace(**given, progress=progress))
