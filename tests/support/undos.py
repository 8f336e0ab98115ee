"""Runs that wrote records, as rows and as commands of their nodes, and their undoes over HTTP."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from models.automation.automation_runs.run_header import automation_actor
from models.core.access.rules import Actor
from models.data.records import commands
from models.data.records.shapes import CreateRecord, UpdateRecord
from runtime.database import UnitOfWork
from tests.support.ageing import make_automation
from tests.support.automations import read
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.written_runs import insert_run

Json = dict[str, Any]
Write = Callable[[UnitOfWork, Actor], Awaitable[Any]]


def created(database_id: str, **body: Any) -> Write:
    """The effect of a node that creates a record."""
    content = CreateRecord.model_validate(body, strict=False)
    return lambda work, actor: commands.create_record(work, actor, UUID(database_id), content)


def updated(record_id: str, **body: Any) -> Write:
    """The effect of a node that updates a record."""
    content = UpdateRecord.model_validate(body, strict=False)
    return lambda work, actor: commands.update_record(work, actor, UUID(record_id), content)


def deleted(record_id: str) -> Write:
    """The effect of a node that deletes a record."""
    return lambda work, actor: commands.delete_record(work, actor, UUID(record_id))


@dataclass(frozen=True, slots=True)
class UndoneAutomation:
    """An automation whose runs write what a test says."""

    client: Client
    space: Space
    version: Any

    async def run(self, *writes: Write, nodes: Sequence[Json] = (), **values: Any) -> str:
        """An ended run that wrote this, each write in a transaction of its own."""
        run_id = await insert_run(self.space, self.version, 1, nodes, **values)
        await self.write(run_id, *writes)
        return run_id

    async def write(self, run_id: str, *writes: Write, node_id: str | None = None) -> list[str]:
        """What a node of a run writes; the ids of the records."""
        actor = automation_actor(
            self.space.id, self.version.automation_id, None, (UUID(run_id),), node_id
        )
        ids = []
        for write in writes:
            async with self.space.database.transaction() as work:
                ids.append(str((await write(work, actor)).id))
        return ids

    def path(self, run_id: str) -> str:
        return f"{self.space.path}/automations/{self.version.automation_id}/runs/{run_id}"

    async def undo(self, run_id: str, status: int = 200, **body: Any) -> Json:
        answer: Json = read(await self.client.post(f"{self.path(run_id)}/undo", json=body), status)
        return answer


async def automation_to_undo(client: Client, space: Space) -> UndoneAutomation:
    """An automation of a space."""
    return UndoneAutomation(client, space, await make_automation(space))
