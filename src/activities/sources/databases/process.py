"""The process that asks one database: bounded in memory, ended by its parent."""

import os
import resource
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

from pydantic_core import to_json

from activities.sources.databases import mysql, postgresql
from activities.sources.databases.query import DatabaseQuery
from models.sources.connections.providers import ProviderName
from models.sources.tabular.rules.problems import ErrorKind, SourceProblem

_MEMORY = 256 * 1024 * 1024
_FETCHES = {ProviderName.POSTGRESQL: postgresql.fetch, ProviderName.MYSQL: mysql.fetch}


def answer_query(connection: Connection, query: DatabaseQuery, path: Path) -> None:
    """Write the rows of a query to a file, and tell the parent how many, or why there are none."""
    signal.signal(signal.SIGTERM, _interrupt)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, held + _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    try:
        answer: dict[str, object] = {"rows": _FETCHES[query.address.provider](query, path)}
    except KeyboardInterrupt:
        return
    except SourceProblem as problem:
        answer = _problem_fields(problem)
    except MemoryError:
        message = "The rows of the query take more memory than there is for them. Ask for less."
        answer = _problem_fields(SourceProblem(ErrorKind.TOO_LARGE, message))
    # Whoever has heard the answer ends the process.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    connection.send_bytes(to_json(answer))


def _problem_fields(problem: SourceProblem) -> dict[str, object]:
    return {"kind": problem.kind, "message": problem.message, "final": not problem.retryable}


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Let the driver cancel its statement at the server, which it does when it is interrupted."""
    raise KeyboardInterrupt
