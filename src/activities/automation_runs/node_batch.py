"""Successes of nodes that only compute, kept for a moment and written together (ADR 0080).

Nothing outside has seen such a node, so that it may be computed again where its batch is lost.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from activities.automation_runs.runs import OpenRun
from activities.database_errors import is_away
from models.automation.automation_runs import batched_writes
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automation_runs.node_writes import Completion, NodeKey
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import JsonObject
from runtime.database import Database

HOLD_SECONDS = 0.02
"""The longest a batch waits for another node: a run that is watched shows what it has done."""
MOST_NODES = 100
MOST_BYTES = 1024 * 1024
"""Of outputs, which are kept in memory until they are written."""


class BatchRefusedError(Exception):
    """A batch was not written: another execution was faster, or a value cannot be stored.

    Its nodes are to be executed anew, each in a transaction of its own, which finds the cause.
    """

    retryable = True


@dataclass(slots=True)
class _Rows:
    """The rows that are written next."""

    rows: list[JsonObject] = field(default_factory=list)
    outputs: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    """By node and scope."""
    size: int = 0
    answers: bool = False
    until: float = field(default_factory=lambda: time.monotonic() + HOLD_SECONDS)


class NodeBatch:
    """The nodes of one run that have succeeded and are not written.

    Lanes of a loop share one. As a context, it lets go of what was not written when the block ends.
    """

    def __init__(self, database: Database, run: OpenRun) -> None:
        self._database = database
        self._run = run
        self._next = _Rows()
        self._lock = asyncio.Lock()
        self._failed = False

    def __enter__(self) -> "NodeBatch":
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go(self._next)

    def add(self, key: NodeKey, completion: Completion) -> None:
        """Take a success, whose output the other nodes of the run can read from now on."""
        if not self._next.rows:
            self._next = _Rows()
        part, place = self._next, (key.node_id, key.scope_key)
        part.rows.append(batched_writes.success_row(key, completion))
        part.outputs[place] = self._run.unwritten[place] = completion.output
        part.size += completion.size
        part.answers |= key.kind == NodeKind.RESPOND

    @property
    def is_due(self) -> bool:
        """True when it waits for no other node: it is old, large, or what a caller waits for."""
        part = self._next
        if not part.rows:
            return False
        is_large = len(part.rows) >= MOST_NODES or part.size >= MOST_BYTES
        return part.answers or is_large or time.monotonic() > part.until

    async def write(self) -> None:
        """Write what was added before. Raises RunClosedError, BatchRefusedError."""
        # Also with nothing to write: what another lane writes comes first.
        async with self._taken_rows() as part:
            if not part.rows:
                return
            async with self._database.statement() as work:
                if part.answers:
                    work.answered.add(self._run.header.run_id)
                run_id = self._run.header.run_id
                if not await batched_writes.write_nodes(work, run_id, part.rows):
                    raise RunClosedError
            for (node_id, scope_key), output in part.outputs.items():
                self._run.keep(node_id, scope_key, output)

    async def end_run(self, skipped: Iterable[tuple[str, str]]) -> bool:
        """Write them and the run's end in success; False when it had ended before.

        `skipped` are nodes to which the run did not come. Raises BatchRefusedError.
        """
        run = self._run
        async with self._taken_rows() as part, self._database.statement() as work:
            part.rows += [
                batched_writes.skipped_row(work, *place, run.graph.nodes[place[0]].kind)
                for place in skipped
            ]
            leaves = run.plan.leaves()
            return await batched_writes.succeed(work, run.header.run_id, leaves, part.rows)

    @asynccontextmanager
    async def _taken_rows(self) -> AsyncIterator[_Rows]:
        """Take the rows to write, one writer after the other: nodes come before their readers.

        After a failure nothing more is written.
        """
        async with self._lock:
            if self._failed:
                raise BatchRefusedError
            part, self._next = self._next, _Rows()
            try:
                yield part
            except RunClosedError:
                self._failed = True
                raise
            except Exception as error:
                self._failed = True
                if is_away(error) or not part.outputs:
                    raise
                raise BatchRefusedError from error
            finally:
                self._let_go(part)

    def _let_go(self, part: _Rows) -> None:
        for place in part.outputs:
            self._run.unwritten.pop(place, None)
