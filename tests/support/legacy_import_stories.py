"""Histories of legacy imports: what a run can come to, and the work on one workspace of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from models.core.base import Id
from models.people.users import find_user
from models.workspace.legacy_imports import commands, stages
from models.workspace.legacy_imports.queries import (
    ApproveLegacyImport,
    CancelLegacyImport,
    CreateLegacyImport,
    LegacyImport,
    RollBackLegacyImport,
    get_run,
)
from models.workspace.legacy_imports.stages import Held
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, UnavailableError
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
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
        await commands.create_run(work, engine.actor.principal, run_id, body)
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
    run_id = await approved(engine, content)
    async with engine.database.transaction() as work:
        await commands.start(work, run_id)
    return run_id


async def approved(engine: Engine, content: bytes) -> Id:
    """A run that is not started yet."""
    run_id = await accept(engine, content)
    await until(engine, run_id, "awaiting_review")
    async with engine.database.transaction() as work:
        body = ApproveLegacyImport()
        await commands.approve(work, engine.actor.principal, run_id, body)
    return run_id


async def cancel(engine: Engine, run_id: Id) -> str:
    """Cancel a run; the id of its execution."""
    async with engine.database.transaction() as work:
        await commands.cancel(work, engine.actor.principal, run_id, CancelLegacyImport())
    await until(engine, run_id, "cancelled")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)


@contextmanager
def held_up(step: str) -> Iterator[None]:
    """No workspace gets over a step of `activities.legacy_imports` meanwhile."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise UnavailableError("Later.")

    with patch(f"activities.legacy_imports.{step}", refuse):
        yield


async def small(engine: Engine, count: int = 1, told_of: int = 1) -> bytes:
    """A bundle of workspaces with one member each, and their number in its manifest."""
    async with engine.database.reading() as work:
        user = await find_user(work, engine.actor.user_id)
    assert user is not None
    files, told = {}, []
    for number in range(count):
        own = str(uuid4())
        member = {"userId": str(uuid4()), "email": user.email, "role": "owner"}
        moment = "2026-01-01T00:00:00Z"
        files[f"workspaces/{own}/members.ndjson"] = line("member", **member, createdAt=moment)
        told.append({"id": own, "name": f"Old {number}", "counts": {"member": told_of}})
    return bundle(files, workspaces=told)


async def completed(engine: Engine) -> str:
    """Four workspaces, three of them at once."""
    run_id = await begin(engine, await small(engine, 4))
    await until(engine, run_id, "completed")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)


async def one_workspace(engine: Engine) -> str:
    """The execution of a workspace, as it ran last: verifying."""
    run_id = await begin(engine, await small(engine))
    run = await until(engine, run_id, "completed")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id, str(run.workspaces[0].id))


async def broken(engine: Engine) -> str:
    """A bundle that is none."""
    run_id = await accept(engine, b"no archive")
    await until(engine, run_id, "failed")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)


async def blocked(engine: Engine) -> str:
    """A dry run that is repeated, and finds both times that the bundle lies about its counts."""
    run_id = await accept(engine, await small(engine, told_of=2))
    await until(engine, run_id, "awaiting_review")
    async with engine.database.transaction() as work:
        await commands.repeat_dry_run(work, run_id)
    run = await until(engine, run_id, "awaiting_review")
    assert run.workspaces[0].stage == "blocked"
    return await cancel(engine, run_id)


async def dry_run_lost(engine: Engine) -> str:
    """The execution of a workspace is lost while it is checked, which blocks the workspace."""
    run_id = await accept(engine, await small(engine))
    with held_up("check_chunk"):
        (entry,) = (await until(engine, run_id, "dry_running")).workspaces
        workflow_id = WorkflowKind.LEGACY_IMPORT.workflow_id(run_id, str(entry.id))
        child = engine.client.get_workflow_handle(workflow_id)
        await eventually(partial(_is_there, child), what=f"the beginning of {workflow_id}")
        await child.terminate()
        run = await until(engine, run_id, "awaiting_review")
    assert run.workspaces[0].stage == "blocked"
    return await cancel(engine, run_id)


async def _is_there(handle: WorkflowHandle[Any, Any]) -> bool:
    try:
        await handle.describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True


async def cancelled(engine: Engine) -> str:
    """A run that is cancelled while it waits for review."""
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    return await cancel(engine, run_id)


async def cancelled_in_temporal(engine: Engine) -> str:
    """A run whose execution an operator cancels while it waits for review."""
    run_id = await accept(engine, await small(engine))
    await until(engine, run_id, "awaiting_review")
    workflow_id = WorkflowKind.LEGACY_IMPORT.workflow_id(run_id)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    await until(engine, run_id, "cancelled")
    return workflow_id


async def cancelled_approved(engine: Engine) -> str:
    """A run that is cancelled when it could be started."""
    return await cancel(engine, await approved(engine, await small(engine)))


async def cancelled_checking(engine: Engine) -> str:
    """A run that is cancelled during its dry run."""
    run_id = await accept(engine, await small(engine))
    with held_up("check_chunk"):
        await _until_stage(engine, run_id, "dry_run")
        return await cancel(engine, run_id)


async def cancelled_importing(engine: Engine) -> str:
    """A run that is cancelled, and rolled back, when its workspace has been made."""
    with held_up("apply_chunk"):
        run_id = await begin(engine, await small(engine))
        await _until_stage(engine, run_id, "creating")
        return await cancel(engine, run_id)


async def cancelled_verifying(engine: Engine) -> str:
    """A run that is cancelled, and rolled back, when everything has been imported."""
    with held_up("verify_counts"):
        run_id = await begin(engine, await small(engine))
        await until(engine, run_id, "verifying")
        return await cancel(engine, run_id)


async def _until_stage(engine: Engine, run_id: Id, stage: str) -> None:

    async def is_there() -> bool:
        async with engine.database.snapshot() as work:
            found = (await get_run(work, run_id)).workspaces
        return bool(found) and found[0].stage == stage

    await eventually(is_there, what=f"the stage {stage} of run {run_id}")


async def retried(engine: Engine) -> str:
    """The execution that tries one of two workspaces again, which failed."""
    original = stages.make_workspace

    async def refuse(work: UnitOfWork, held: Held) -> None:
        if held.entry.position:
            raise ConflictError("Not today.")
        await original(work, held)

    with patch("models.workspace.legacy_imports.stages.make_workspace", refuse):
        run_id = await begin(engine, await small(engine, 2))
        run = await until(engine, run_id, "completed_with_warnings")
    async with engine.database.transaction() as work:
        await commands.retry_workspace(work, run_id, run.workspaces[1].id)
    await until(engine, run_id, "completed")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id, "retry/1")


async def rolled_back(engine: Engine, *, force: bool = False) -> str:
    """The execution that takes a completed run back."""
    run_id = await begin(engine, await small(engine))
    await until(engine, run_id, "completed")
    body = RollBackLegacyImport(reason="Recorded", force=force)
    async with engine.database.transaction() as work:
        await commands.roll_back(work, engine.actor.principal, run_id, body)
    await until(engine, run_id, "rolled_back")
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run_id, "rollback/1")


LEGACY_IMPORT_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "legacy-import": completed,
    "legacy-import-workspace": one_workspace,
    "legacy-import-broken": broken,
    "legacy-import-blocked": blocked,
    "legacy-import-dry-run-lost": dry_run_lost,
    "legacy-import-cancelled": cancelled,
    "legacy-import-cancelled-in-temporal": cancelled_in_temporal,
    "legacy-import-cancelled-checking": cancelled_checking,
    "legacy-import-cancelled-approved": cancelled_approved,
    "legacy-import-cancelled-importing": cancelled_importing,
    "legacy-import-cancelled-verifying": cancelled_verifying,
    "legacy-import-retried": retried,
    "legacy-import-rolled-back": rolled_back,
    "legacy-import-rolled-back-by-force": partial(rolled_back, force=True),
}
LONG_STORIES: Mapping[str, Callable[[Engine], Awaitable[str]]] = {
    "legacy-import-continued": completed,
}
"""The settings of a server that soon suggests to continue as another execution."""
