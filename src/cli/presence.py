"""A worker process says in the database that it is there, for administrators to see."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence

import psycopg
import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from models.workspace.system.commands import beat, leave
from models.workspace.system.rules import BEAT_SECONDS
from runtime.database import Database
from runtime.families import Queue
from runtime.ids import new_id

log = structlog.get_logger()

_AWAY = (psycopg.Error, DBAPIError, PoolTimeoutError)


async def report_presence(database: Database, queues: Sequence[Queue]) -> None:
    """Report it again and again, and the end of the process when this is cancelled."""
    worker_id = new_id()
    try:
        while True:
            try:
                async with database.statement() as work:
                    await beat(work, worker_id, socket.gethostname(), os.getpid(), queues)
            except _AWAY:
                log.warning("the worker could not say that it is there")
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        with contextlib.suppress(*_AWAY):
            async with database.transaction() as work:
                await leave(work, worker_id)
