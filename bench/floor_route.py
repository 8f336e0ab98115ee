"""The floors of requests: bare routes with one statement each, on the same stack."""

import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, datetime
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

engine = create_async_engine(os.environ["FLOOR_DATABASE_URL"], pool_size=10)
INSERT = text("INSERT INTO floor_row (id, body) VALUES (:id, CAST(:body AS jsonb))")


RECORD = text("SELECT * FROM record WHERE id = :id AND deleted_at IS NULL")
RECORDS = text(
    "SELECT * FROM record WHERE workspace_id = :workspace_id AND database_id = :database_id"
    " AND NOT archived AND deleted_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 31"
)


class Row(BaseModel):
    """What a client sends and gets back."""

    id: uuid.UUID | None = None
    body: dict[str, object]


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.execute(
            text("CREATE TABLE IF NOT EXISTS floor_row (id uuid PRIMARY KEY, body jsonb NOT NULL)")
        )
        await connection.execute(
            text("CREATE TABLE IF NOT EXISTS floor_copy (id uuid PRIMARY KEY, body jsonb NOT NULL)")
        )
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/rows")
async def insert_row(row: Row) -> Row:
    """Insert one row and commit."""
    made = Row(id=uuid.uuid4(), body=row.body)
    async with engine.begin() as connection:
        await connection.execute(INSERT, {"id": made.id, "body": json.dumps(made.body)})
    return made


class Record(BaseModel):
    """What a record's row says."""

    id: uuid.UUID
    workspace_id: uuid.UUID
    database_id: uuid.UUID
    title: str
    data: dict[str, Any]
    archived: bool
    created_by_user_id: uuid.UUID | None
    updated_by_user_id: uuid.UUID | None
    created_at: datetime
    updated_at: datetime


@app.get("/records/{record_id}")
async def get_record(record_id: uuid.UUID) -> Record:
    """Select one row."""
    async with engine.connect() as connection:
        row = (await connection.execute(RECORD, {"id": record_id})).one()
    return Record.model_validate(row._mapping)


@app.get("/databases/{database_id}/records")
async def list_records(database_id: uuid.UUID, workspace_id: uuid.UUID) -> list[Record]:
    """Select a page of rows."""
    parameters = {"workspace_id": workspace_id, "database_id": database_id}
    async with engine.connect() as connection:
        rows = (await connection.execute(RECORDS, parameters)).all()
    return [Record.model_validate(row._mapping) for row in rows[:30]]


class Rows(BaseModel):
    """What a client sends to be copied."""

    rows: list[dict[str, Any]]


@app.post("/copies")
async def copy_rows(body: Rows) -> Rows:
    """COPY rows in one transaction and give them back with their ids."""
    made = [{"id": str(uuid.uuid4()), **row} for row in body.rows]
    async with engine.begin() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        async with driver.cursor().copy("COPY floor_copy (id, body) FROM STDIN") as copy:
            for row in made:
                await copy.write_row((row["id"], json.dumps(row)))
    return Rows(rows=made)


TYPED = {
    "price": text(
        "SELECT * FROM typed_record WHERE price >= CAST(:least AS numeric) AND NOT archived"
        " ORDER BY price, id LIMIT 51"
    ),
    "due": text(
        "SELECT * FROM typed_record WHERE due >= CAST(:least AS date) AND NOT archived"
        " ORDER BY due, id LIMIT 51"
    ),
    "code": text(
        "SELECT * FROM typed_record WHERE code >= :least AND NOT archived"
        " ORDER BY code, id LIMIT 51"
    ),
}


class TypedRecord(BaseModel):
    """A row of the table made by hand."""

    id: uuid.UUID
    title: str
    price: float
    due: date
    code: str
    state: str
    note: str
    archived: bool
    created_at: datetime
    updated_at: datetime


@app.get("/typed/{column}")
async def list_typed(column: str, least: str) -> list[TypedRecord]:
    """Select a page of typed rows by the index of a column."""
    async with engine.connect() as connection:
        rows = (await connection.execute(TYPED[column], {"least": least})).all()
    return [TypedRecord.model_validate(row._mapping) for row in rows[:50]]
