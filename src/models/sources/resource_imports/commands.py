"""Accepting imports of resources, and what became of them, on the wire."""

import sqlalchemy as sa

from models.content.items.commands import check_parent
from models.content.items.joins import live_item_of
from models.content.items.queries import get_item, placement
from models.content.items.rules import WRITE_SCOPES
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Actor, Level
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Shape, example
from models.core.lifecycle.commands import stand_in_line
from models.messages.jobs import store as job_store
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.external_resources.rules.resources import Capability, ProviderResource
from models.sources.provider_calls import EXAMPLE_RESOURCE, usable_connection
from models.sources.resource_imports.rows import ImportedRow
from models.sources.resource_imports.rules import ImportedKind
from models.sources.resource_imports.tables import imported_resource
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, InProgressError, UpstreamError
from runtime.postgresql.statements import lock_name
from runtime.temporal.families import Family


class ImportResource(Input):
    """Body of import: the resource is copied below the parent, or refreshed where it is."""

    model_config = example({"connectionId": EXAMPLE_ID, "resource": EXAMPLE_RESOURCE})

    connection_id: InputId
    resource: ProviderResource
    parent_item_id: InputId | None = None


class ImportCounts(Shape):
    """Counts of an import, by items; the ones that people changed since were `kept`."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0


class ImportedParts(Shape):
    """Counts of the rows of tables, or of the blocks at the top of pages, by what became of them.

    `kept` are the ones that people changed, where the source now says otherwise.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0


class SkippedResource(Shape):
    """A resource below the imported one that could not be, and why."""

    name: str
    reason: str


class ImportJob(Shape):
    """The job that imports."""

    id: Id
    status: JobStatus
    created_at: Moment
    completed_at: Moment | None = None


class ImportedResource(Shape):
    """The result of an import, or what it has made so far while its job runs.

    `rows` and `blocks` count tables and pages that were read again, where any were. At most 100
    resources are named in `skipped`.
    """

    item: ItemDetail
    imported: ImportCounts
    rows: ImportedParts | None = None
    blocks: ImportedParts | None = None
    skipped: list[SkippedResource]
    job: ImportJob


class FormImportResult(Shape):
    """A form, its surface and its database; `skipped` are questions without an equivalent."""

    surface_id: Id
    item_id: Id
    database_id: Id
    title: str
    field_count: int
    skipped: list[str]


async def accept_import_resource(
    work: UnitOfWork, actor: Actor, job_id: Id, body: ImportResource
) -> None:
    """Have a worker import a resource, with the scopes that the actor has now.

    Raises what `usable_connection` and `check_parent` raise.
    """
    connection = await usable_connection(work, actor, body.connection_id, Capability.IMPORT)
    await check_parent(work, actor, body.parent_item_id)
    parent = body.parent_item_id
    await job_store.accept_job(
        work,
        actor,
        Family.RESOURCE_IMPORT,
        job_id,
        connection.id,
        summary=f"Import · {connection.provider.value}",
        input={
            "connectionId": str(connection.id),
            "resource": body.resource.to_json(),
            "parentItemId": None if parent is None else str(parent),
            "kinds": _writable(actor),
        },
    )


async def record_import(
    work: UnitOfWork, actor: Actor, job_id: Id, connection_id: Id, resource: ProviderResource
) -> None:
    """Record an import that the caller has executed.

    The member who named the connection had access to it then (ADR 0037). Raises DeniedError without
    a user in whose name content could be made.
    """
    if actor.person is None:
        raise DeniedError("Only a person can start an import.")
    job_input = {
        "connectionId": str(connection_id),
        "resource": resource.to_json(),
        "parentItemId": None,
        "kinds": _writable(actor),
        "configured": True,
    }
    workspace_id, family = actor.workspace_id, Family.RESOURCE_IMPORT
    if await job_store.record_job(
        work, workspace_id, actor.person, family, job_id, connection_id, job_input
    ):
        request = job_store.start_request(connection_id, "Import", "action")
        await stand_in_line(work, family, workspace_id, job_id, request)


def _writable(actor: Actor) -> list[str]:
    return [kind.value for kind in ImportedKind if WRITE_SCOPES[kind.item_kind] in actor.scopes]


async def import_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> ImportedResource | None:
    """The result of an import; None while it runs.

    Raises why nothing was. When this is the last time to ask, a running import shows its results so
    far; InProgressError when that is nothing yet.
    """
    job = await job_store.find_job(work, actor.workspace_id, Family.RESOURCE_IMPORT, job_id)
    if job.status in OPEN_JOB and not last:
        return None
    if job.status not in OPEN_JOB and job.status != JobStatus.SUCCEEDED:
        raise job_store.refusal_of(job) or UpstreamError(
            "The provider could not be reached. Try again."
        )
    shown = await _shown(work, actor, job)
    if shown is None:
        raise InProgressError("The provider is slow to respond. Try again with the same key.")
    return shown


async def get_import_job(work: UnitOfWork, actor: Actor, job_id: Id) -> ImportedResource:
    """An import of the actor as it stands. Raises NotFoundError, and why nothing was imported."""
    await job_store.own_job(work, actor, Family.RESOURCE_IMPORT, job_id)
    found = await import_outcome(work, actor, job_id, last=True)
    assert found is not None, "it was the last time to ask"
    return found


async def _shown(work: UnitOfWork, actor: Actor, job: job_store.JobRow) -> ImportedResource | None:
    result = job.result or job.progress
    if "rootId" not in result:
        return None
    root = await work.first(
        sa.select(imported_resource).where(
            imported_resource.c.workspace_id == actor.workspace_id,
            imported_resource.c.id == Id(result["rootId"]),
        ),
        of=ImportedRow,
    )
    if root is None or root.item_id is None:
        return None
    return ImportedResource(
        item=await get_item(work, actor.workspace_id, root.item_id),
        imported=ImportCounts.model_validate(result["counts"]),
        rows=result.get("rows"),
        blocks=result.get("blocks"),
        skipped=[SkippedResource.model_validate(one) for one in result["skipped"]],
        job=ImportJob.model_validate(job),
    )


async def find_root(
    work: UnitOfWork, actor: Actor, connection_id: Id, external_id: str
) -> ImportedRow | None:
    """The row a resource was imported into before, where the actor may edit that; locked."""
    key = f"import/{actor.workspace_id}/{connection_id}/{external_id}"
    await lock_name(work, key)
    rows = await work.rows(
        sa.select(imported_resource)
        .join(*live_item_of(imported_resource))
        .where(
            imported_resource.c.workspace_id == actor.workspace_id,
            imported_resource.c.connection_id == connection_id,
            imported_resource.c.external_id == external_id,
            imported_resource.c.root_id == imported_resource.c.id,
        )
        .order_by(imported_resource.c.id.desc())
        .with_for_update(of=imported_resource),
        of=ImportedRow,
    )
    for row in rows:
        assert row.item_id is not None, "it is joined to its item"
        if await placement.level(work, actor, row.item_id) >= Level.EDIT:
            return row
    return None
