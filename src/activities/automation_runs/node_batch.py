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


@dataclass(slots=True)
class _Held:
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
        self._held = _Held()
        self._writing = asyncio.Lock()
        self._failed = False

    def __enter__(self) -> "NodeBatch":
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go(self._held)

    def add(self, key: NodeKey, completion: Completion) -> None:
        """Take a success, whose output the other nodes of the run can read from now on."""
        if not self._held.rows:
            self._held = _Held()
        held, place = self._held, (key.node_id, key.scope_key)
        held.rows.append(batched_writes.success_row(key, completion))
        held.outputs[place] = self._run.unwritten[place] = completion.output
        held.size += completion.size
        held.answers |= key.kind == NodeKind.RESPOND

    @property
    def is_due(self) -> bool:
        """True when it waits for no other node: it is old, large, or what a caller waits for."""
        held = self._held
        if not held.rows:
            return False
        is_large = len(held.rows) >= MOST_NODES or held.size >= MOST_BYTES
        return held.answers or is_large or time.monotonic() > held.until

    async def write(self) -> None:
        """Write what was added before. Raises RunClosedError, BatchRefusedError."""
        # Also with nothing to write: what another lane writes comes first.
        async with self._written() as held:
            if not held.rows:
                return
            async with self._database.statement() as work:
                if held.answers:
                    work.answered.add(self._run.header.run_id)
                run_id = self._run.header.run_id
                if not await batched_writes.write_nodes(work, run_id, held.rows):
                    raise RunClosedError
            for (node_id, scope_key), output in held.outputs.items():
                self._run.keep(node_id, scope_key, output)

    async def end_run(self, skipped: Iterable[tuple[str, str]]) -> bool:
        """Write them and the run's end in success; False when it had ended before.

        `skipped` are nodes to which the run did not come. Raises BatchRefusedError.
        """
        run = self._run
        async with self._written() as held, self._database.statement() as work:
            held.rows += [
                batched_writes.skipped_row(work, *place, run.graph.nodes[place[0]].kind)
                for place in skipped
            ]
            leaves = run.plan.leaves()
            return await batched_writes.succeed(work, run.header.run_id, leaves, held.rows)

    @asynccontextmanager
    async def _written(self) -> AsyncIterator[_Held]:
        """What is held, one writer after the other: nodes are written before those that read them.

        After a failure nothing more is written.
        """
        async with self._writing:
            if self._failed:
                raise BatchRefusedError
            held, self._held = self._held, _Held()
            try:
                yield held
            except RunClosedError:
                self._failed = True
                raise
            except Exception as error:
                self._failed = True
                if is_away(error) or not held.outputs:
                    raise
                raise BatchRefusedError from error
            finally:
                self._let_go(held)

    def _let_go(self, held: _Held) -> None:
        for place in held.outputs:
            self._run.unwritten.pop(place, None)
