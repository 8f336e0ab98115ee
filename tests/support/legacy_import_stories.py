"""Histories of legacy imports: what a run can come to, and the work on one workspace of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from hashlib import sha256
from uuid import uuid4

from models.core.base import Id
from models.people.users.queries import find_user
from models.workspace.legacy_imports.commands import creation, decisions, recovery
from models.workspace.legacy_imports.queries import get_run
from models.workspace.legacy_imports.shapes import (
    ApproveLegacyImport,
    CancelLegacyImport,
    CreateLegacyImport,
    LegacyImport,
    RollBackLegacyImport,
)
from runtime.families import Family
from runtime.ids import new_id
from tests.support.bundles import bundle, line
from tests.support.engine import Engine
from tests.support.patience import eventually


async def accept(engine: Engine, content: bytes) -> Id:
    """A run of a bundle, which is put into the store of the engine."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    key = f"bundles/{uuid4()}"
    await engine.store.put(key, pieces())
    body = CreateLegacyImport(bundleObjectKey=key, bundleChecksum=sha256(content).hexdigest())
    run_id: Id = new_id()
    async with engine.database.transaction() as work:
        await creation.create_run(work, engine.actor.principal, run_id, body)
    return run_id


async def until(engine: Engine, run_id: Id, *statuses: str) -> LegacyImport:
    """The run when it is in one of these statuses."""

    async def shown() -> LegacyImport:
        async with engine.database.snapshot() as work:
            return await get_run(work, run_id)

    async def is_there() -> bool:
        return (await shown()).status in statuses

    await eventually(is_there, what=f"run {run_id} as {' or '.join(statuses)}")
    return await shown()


async def begin(engine: Engine, content: bytes) -> Id:
    """A run that is approved and started."""
    run_id = await accept(engine, content)
    await until(engine, run_id, "awaiting_review")
    async with engine.database.transaction() as work:
        body = ApproveLegacyImport()
        await decisions.approve(work, engine.actor.principal, run_id, body)
    async with engine.database.transaction() as work:
        await decisions.start(work, run_id)
    return run_id


async def small(engine: Engine, count: int = 1) -> bytes:
    """A bundle of workspaces with one member each."""
    async with engine.database.reading() as work:
        user = await find_user(work, engine.actor.user_id)
    assert user is not None
    files, told = {}, []
    for number in range(count):
        own = str(uuid4())
        member = {"userId": str(uuid4()), "email": user.email, "role": "owner"}
        moment = "2026-01-01T00:00:00Z"
        files[f"workspaces/{own}/members.ndjson"] = line("member", **member, createdAt=moment)
        told.append({"id": own, "name": f"Old {number}", "counts": {"member": 1}})
    return bundle(files, workspaces=told)


async def completed(engine: Engine) -> str:
    """Four workspaces, three of them at once."""
    run_id = await begin(engine, await small(engine, 4))
    await until(engine, run_id, "completed")
    return Family.LEGACY_IMPORT.workflow_id(run_id)


async def one_workspace(engine: Engine) -> str:
    """The execution of a workspace, as it ran last: verifying."""
    run_id = await begin(engine, await small(engine))
    run = await until(engine, run_id, "completed")
    return Family.LEGACY_IMPORT.workflow_id(run_id, str(run.workspaces[0].id))


async def broken(engine: Engine) -> str:
    """A bundle that is none."""
    run_id = await accept(engine, b"no archive")
    await until(engine, run_id, "failed")
    return Family.LEGACY_IMPORT.workflow_id(run_id)


async def cancelled(engine: Engine) -> str:
    """A run that is cancelled while it waits for review."""
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    async with engine.database.transaction() as work:
        await decisions.cancel(work, engine.actor.principal, run_id, CancelLegacyImport())
    return Family.LEGACY_IMPORT.workflow_id(run_id)


async def rolled_back(engine: Engine) -> str:
    """The execution that takes a completed run back."""
    run_id = await begin(engine, await small(engine))
    await until(engine, run_id, "completed")
    body = RollBackLegacyImport(reason="Recorded")
    async with engine.database.transaction() as work:
        await recovery.roll_back(work, engine.actor.principal, run_id, body)
    await until(engine, run_id, "rolled_back")
    return Family.LEGACY_IMPORT.workflow_id(run_id, "rollback/1")


LEGACY_IMPORT_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "legacy-import": completed,
    "legacy-import-workspace": one_workspace,
    "legacy-import-broken": broken,
    "legacy-import-cancelled": cancelled,
    "legacy-import-rolled-back": rolled_back,
}
