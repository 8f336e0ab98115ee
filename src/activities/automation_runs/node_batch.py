"""Successes of nodes that only compute, kept for a moment and written together (ADR 0080).

Nothing outside has seen such a node, so that it may be computed again where its batch is lost.
"""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from activities.automation_runs.runs import OpenRun
from activities.database_errors import is_away
from models.automation.automation_runs import batched_writes
from models.automation.automation_runs.errors import RunClosedError
from models.automation.automation_runs.node_writes import Completion, NodeKey
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import JsonObject
from runtime.database import Database
from runtime.work import Work

HOLD_SECONDS = 0.02
"""The longest a batch waits for another node: a run that is watched shows what it has done."""
MOST_NODES = 100
MOST_BYTES = 1024 * 1024
"""Of outputs, which are kept in memory until they are written."""


class BatchRefusedError(Exception):
    """A batch was not written: another execution was faster, or a value cannot be stored.

    Its nodes are to be executed anew, each in a transaction of its own, which finds the cause.
    """


class NodeBatch:
    """The nodes of one run that have succeeded and are not written.

    As a context, it lets go of what was not written when the block ends.
    """

    def __init__(self, database: Database, run: OpenRun) -> None:
        self._database = database
        self._run = run
        self._begin()

    def _begin(self) -> None:
        self._rows: list[JsonObject] = []
        self._outputs: dict[tuple[str, str], JsonObject] = {}
        self._bytes = 0
        self._answers = False
        self._until = 0.0

    def __enter__(self) -> "NodeBatch":
        return self

    def __exit__(self, *_: object) -> None:
        self._empty()

    def add(self, key: NodeKey, completion: Completion) -> None:
        """Take a success, whose output the other nodes of the run can read from now on."""
        if not self._rows:
            self._until = time.monotonic() + HOLD_SECONDS
        self._rows.append(batched_writes.success_row(key, completion))
        place = key.node_id, key.scope_key
        self._outputs[place] = self._run.unwritten[place] = completion.output
        self._bytes += completion.size
        self._answers |= key.kind == NodeKind.RESPOND

    @property
    def is_due(self) -> bool:
        """True when it waits for no other node: it is old, large, or what a caller waits for."""
        if not self._rows:
            return False
        is_large = len(self._rows) >= MOST_NODES or self._bytes >= MOST_BYTES
        return self._answers or is_large or time.monotonic() > self._until

    async def write(self) -> None:
        """Write the nodes that it holds. Raises RunClosedError, BatchRefusedError."""
        if not self._rows:
            return
        async with self._statement() as work:
            if self._answers:
                work.answered.add(self._run.header.run_id)
            written = await batched_writes.write_nodes(work, self._run.header.run_id, self._rows)
        if not written:
            raise RunClosedError
        for (node_id, scope_key), output in self._outputs.items():
            self._run.keep(node_id, scope_key, output)
        self._empty()

    async def end_run(self, skipped: Iterable[tuple[str, str]]) -> bool:
        """Write them and the run's end in success; False when it had ended before.

        `skipped` are nodes to which the run did not come. Raises BatchRefusedError.
        """
        run = self._run
        async with self._statement() as work:
            self._rows += [
                batched_writes.skipped_row(work, *place, run.graph.nodes[place[0]].kind)
                for place in skipped
            ]
            leaves = run.plan.leaves()
            return await batched_writes.succeed(work, run.header.run_id, leaves, self._rows)

    @asynccontextmanager
    async def _statement(self) -> AsyncIterator[Work]:
        try:
            async with self._database.statement() as work:
                yield work
        except Exception as error:
            if is_away(error) or not self._outputs:
                raise
            raise BatchRefusedError from error

    def _empty(self) -> None:
        for place in self._outputs:
            self._run.unwritten.pop(place, None)
        self._begin()
