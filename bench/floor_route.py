"""The floor of an accepted run: a bare route with one committed INSERT, on the same stack."""

import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

engine = create_async_engine(os.environ["FLOOR_DATABASE_URL"], pool_size=10)
INSERT = text("INSERT INTO floor_row (id, body) VALUES (:id, CAST(:body AS jsonb))")


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
