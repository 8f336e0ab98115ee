"""Asking a database in a process of its own, from the worker's side."""

import asyncio
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from pydantic_core import from_json

from activities.sources.databases import process
from activities.sources.databases.query import DatabaseQuery
from activities.sources.processes import context, process_of, start
from activities.sources.requests import problem_of
from models.core.base import JsonObject
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem
from runtime.outbound.client import OutboundClient
from runtime.outbound.errors import OutboundError

CANCEL_SECONDS = 2.0
"""The time a process has to cancel its statement."""


async def fetch_rows(
    outbound: OutboundClient, query: DatabaseQuery, path: Path, seconds: float
) -> int:
    """Write the rows of a query, as lines of JSON, to a file; gives how many.

    Raises SourceProblem. All of it takes at most so many seconds.
    """
    address = query.address
    try:
        async with outbound.turn(address.host):
            found = await outbound.addresses(address.host, address.port)
            checked = replace(query, addresses=[str(one) for one in found])
            return await _rows(checked, path, seconds)
    except OutboundError as error:
        raise problem_of(error) from error


async def _rows(checked: DatabaseQuery, path: Path, seconds: float) -> int:
    """Have a process write the rows that a database at a judged address gives."""
    ours, theirs = context.Pipe(duplex=False)
    asking = process_of(process.answer_query, theirs, checked, path)
    await start(asking)
    theirs.close()
    try:
        answer = await _answer(ours, seconds)
    except EOFError:
        raise RuntimeError("The process that asks a database broke down.") from None
    finally:
        asking.terminate()
        await asyncio.shield(asyncio.to_thread(_end, asking))
        ours.close()
    if "rows" in answer:
        rows: int = answer["rows"]
        return rows
    raise SourceProblem(ErrorKind(answer["kind"]), answer["message"], final=answer["final"])


async def _answer(connection: Connection, seconds: float) -> JsonObject:
    """The answer of the process. It needs no thread to wait, for a query takes minutes."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
        answer: JsonObject = from_json(connection.recv_bytes())
    except TimeoutError:
        raise SourceProblem(
            ErrorKind.TIMEOUT, "The database takes too long to give its rows.", final=True
        ) from None
    finally:
        loop.remove_reader(connection.fileno())
    return answer


def _end(asking: BaseProcess) -> None:
    asking.join(CANCEL_SECONDS)
    if asking.is_alive():
        asking.kill()
        asking.join()
