"""Processor time of processes, and statements of the database, while something happens."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

_STATEMENT = re.compile(
    rb"\[(\d+)\] LOG:  duration: [\d.]+ ms  (?:execute [^:\n]*|statement): "
    rb"(\w+)([^\n]*(?:\n\t[^\n]*)*)"
)
"""A backend's process id, and the first word and the rest of a statement that it executed."""


@dataclass(slots=True)
class Spent:
    """Processor milliseconds of each group of processes."""

    milliseconds: dict[str, float] = field(default_factory=dict)

    def of(self, *groups: str) -> float:
        """The sum of some groups."""
        return sum(self.milliseconds[group] for group in groups)


@contextmanager
def processor_time(groups: Mapping[str, int]) -> Iterator[Spent]:
    """Measure processes by name, each with its children, while the block runs.

    This process, of which the others are children, is measured without them.
    """
    before = {name: _milliseconds(pid) for name, pid in groups.items()}
    spent = Spent()
    yield spent
    for name, pid in groups.items():
        spent.milliseconds[name] = _milliseconds(pid) - before[name]


def _milliseconds(pid: int) -> float:
    parent = psutil.Process(pid)
    children = [] if pid == os.getpid() else parent.children(recursive=True)
    total = 0.0
    for process in (parent, *children):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # Of backends that have ended their parent has the time.
        total += times.user + times.system + times.children_user + times.children_system
    return total * 1000


@dataclass(slots=True)
class Counts:
    """Statements that reached the server, BEGIN and COMMIT among them, and transactions."""

    statements: int = 0
    transactions: int = 0
    log: bytes = b""
    """What the server wrote meanwhile."""


@contextmanager
def counted_statements(superuser: str, log: Path) -> Iterator[Counts]:
    """Count by the server's log while the block runs; the counts are there at its end."""
    counts = Counts()
    with psycopg.connect(superuser, autocommit=True) as connection:
        start = log.stat().st_size
        connection.execute("ALTER SYSTEM SET log_min_duration_statement = 0")
        connection.execute("SELECT pg_reload_conf()")
        try:
            yield counts
        finally:
            connection.execute("ALTER SYSTEM RESET log_min_duration_statement")
            connection.execute("SELECT pg_reload_conf()")
    with log.open("rb") as lines:
        lines.seek(start)
        counts.log = lines.read()
    _count(counts)


def statements_touching(counts: Counts, table: str) -> int:
    """Statements of the transactions in which one names that table."""
    open_ones: dict[bytes, list[bytes]] = {}
    total = 0
    for backend, word, rest in _STATEMENT.findall(counts.log):
        own = open_ones.setdefault(backend, [])
        own.append(rest)
        if word in {b"COMMIT", b"ROLLBACK"}:
            statements = open_ones.pop(backend)
            total += len(statements) if any(table.encode() in one for one in statements) else 0
    return total


def _count(counts: Counts) -> None:
    begun: set[bytes] = set()
    for backend, word, _ in _STATEMENT.findall(counts.log):
        counts.statements += 1
        if word == b"BEGIN":
            begun.add(backend)
        elif word in {b"COMMIT", b"ROLLBACK"} or backend not in begun:
            begun.discard(backend)
            counts.transactions += 1
