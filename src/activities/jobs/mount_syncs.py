"""Jobs that place mounts and bring them in step with their providers."""

import time
from collections.abc import Sequence

from typing_extensions import override

from activities.jobs.providers import ask_provider, try_later_or_refuse
from activities.jobs.transactions import Chunks, ask_outside
from activities.providers import adapter as provider_adapter
from activities.providers.adapters import OpenConnection, Providers, in_time
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.messages.jobs.store import JobRow, job_actor
from models.sources.external_resources.rules.resources import Capability, ProviderResource
from models.sources.mounts import syncs
from models.sources.mounts.queries import INTERRUPTED, MAX_ENTRIES, MountRow
from runtime.database import Transaction, UnitOfWork
from runtime.processes.fault_injection import FaultPoint, inject_fault

CHUNK_SECONDS = 3.0
"""Seconds after which a chunk asks for no further page."""
CHUNK_PAGES = 50
FOLDER_PAGES = 1_000
"""Pages of one folder; a provider that gives more goes in circles."""


class MountSyncs(Chunks):
    """Describes the resource, then lists what is below it, folder by folder.

    The entries of a chunk and the place where the next one continues are one transaction. So a
    repeated chunk finds the entries of the one before it, and none exists twice.
    """

    def __init__(self, providers: Providers) -> None:
        self._providers = providers

    @override
    async def advance(self, work: Transaction, job: JobRow) -> JsonObject | None:
        actor = await job_actor(work, job)
        try:
            if not job.progress:
                return await self._begin(work, job, actor)
            return await self._list(work, job, actor)
        except provider_adapter.ProviderProblem as problem:
            try_later_or_refuse(problem)

    @override
    async def result(self, work: UnitOfWork, job: JobRow) -> JsonObject:
        return job.progress

    @override
    async def undo(self, work: UnitOfWork, job: JobRow) -> bool:
        """Store the reason why a mount is incomplete; its entries stay."""
        await syncs.note_failure(work, _mount_id(job), job.id, job.error or INTERRUPTED)
        return True

    async def _begin(self, work: Transaction, job: JobRow, actor: Actor) -> JsonObject | None:
        place = job.input["place"]
        if place is not None:
            return await self._place(work, job, actor, place)
        root = await syncs.root_of(work, job.workspace_id, _mount_id(job), job.id)
        if root is None or root.connection_id is None:
            return _done(job, _mount_id(job))
        connection = await self._providers.open(work, actor, root.connection_id)
        known = ProviderResource.model_validate(root.resource)
        try:
            resource = await ask_provider(
                work, job, connection.adapter.describe(connection.access, known)
            )
        except provider_adapter.ProviderProblem as problem:
            if problem.kind is not provider_adapter.ProblemKind.GONE:
                raise
            await syncs.note_vanished(work, root, job.id)
            return _done(job, root.id)
        below = provider_adapter.Watched(None)
        if root.recursive:
            below = await _below(work, job, connection, resource, root.synced_revision)
        return await self._described(work, job, root, resource, below)

    async def _place(
        self, work: Transaction, job: JobRow, actor: Actor, place: JsonObject
    ) -> JsonObject | None:
        connection = await self._providers.open(work, actor, Id(place["connectionId"]))
        named = ProviderResource.model_validate(place["resource"])
        resource = await ask_provider(
            work, job, connection.adapter.describe(connection.access, named)
        )
        below = provider_adapter.Watched(None)
        if place["recursive"]:
            below = await _below(work, job, connection, resource, None)
        mount_id, new = await syncs.place_root(work, actor, job.id, place, resource)
        # The request that waits for the mount is answered now; the listing may take minutes.
        work.answered.add(job.id)
        job.progress["created"] = new
        root = await syncs.root_of(work, job.workspace_id, mount_id, job.id) if new else None
        if root is None:
            return _done(job, mount_id)
        return await self._described(work, job, root, resource, below)

    async def _described(
        self,
        work: UnitOfWork,
        job: JobRow,
        root: MountRow,
        resource: ProviderResource,
        below: provider_adapter.Watched,
    ) -> JsonObject | None:
        """End here where nothing is below the resource, or nothing has changed there."""
        unchanged = root.synced_revision is not None and not below.changed
        if not root.recursive or unchanged:
            await syncs.note_unchanged(work, root, job.id, resource, below.mark)
            return _done(job, root.id)
        await syncs.begin_listing(work, root)
        return {
            "mountId": str(root.id),
            "created": job.progress.get("created", False),
            "resource": resource.to_json(),
            "mark": below.mark,
            "folder": str(root.id),
            "cursor": None,
            "pages": 0,
        }

    async def _list(self, work: Transaction, job: JobRow, actor: Actor) -> JsonObject | None:
        root = await syncs.root_of(work, job.workspace_id, _mount_id(job), job.id)
        if root is None or root.connection_id is None:
            return None
        connection = await self._providers.open(work, actor, root.connection_id)
        folders = await self._folders(work, root, job.progress)
        if not folders or root.truncated:
            resource = ProviderResource.model_validate(job.progress["resource"])
            await syncs.finish_sync(work, root, job.id, resource, job.progress["mark"])
            return None
        listings = await ask_outside(work, job, _listings(connection, root, folders, job.progress))
        entries = await syncs.record_listing(work, actor, root, job.id, listings)
        await syncs.advance_root(work, root, job.id, entries)
        inject_fault(FaultPoint.AFTER_ENTRIES_BEFORE_COMMIT, job.id)
        last = listings[-1]
        going_on = not last.done
        return {
            **job.progress,
            "folder": str(last.folder.id) if going_on else None,
            "cursor": last.cursor if going_on else None,
            "pages": job.progress["pages"] + len(last.resources) // provider_adapter.MAX_LISTED
            if going_on
            else 0,
        }

    async def _folders(
        self, work: UnitOfWork, root: MountRow, progress: JsonObject
    ) -> Sequence[MountRow]:
        """The folders to list next; the one with further pages is the first of them."""
        if progress["folder"] == str(root.id):
            return [root]
        pending = await syncs.pending_folders(work, root, CHUNK_PAGES)
        first = [one for one in pending if str(one.id) == progress["folder"]]
        return [*first, *(one for one in pending if one not in first)]


async def _below(
    work: Transaction,
    job: JobRow,
    connection: OpenConnection,
    resource: ProviderResource,
    revision: str | None,
) -> provider_adapter.Watched:
    """The provider's word on whether anything below a resource changed since a revision."""
    if Capability.WATCH not in resource.capabilities:
        return provider_adapter.Watched(None)
    return await ask_provider(
        work, job, connection.adapter.watch(connection.access, resource, revision)
    )


async def _listings(
    connection: OpenConnection, root: MountRow, folders: Sequence[MountRow], progress: JsonObject
) -> list[syncs.ListedFolder]:
    """The provider's listings below folders, until the chunk has taken long enough."""
    ends, listings, pages = time.monotonic() + CHUNK_SECONDS, list[syncs.ListedFolder](), 0
    cursor, before = progress["cursor"], progress["pages"]
    for folder in folders:
        listing = syncs.ListedFolder(folder, cursor=cursor)
        listings.append(listing)
        while not listing.done and pages < CHUNK_PAGES and time.monotonic() < ends:
            pages += await _pages(connection, root, listing)
            if pages + before >= FOLDER_PAGES and folder is folders[0]:
                listing.done = True
        if not listing.done or time.monotonic() >= ends or pages >= CHUNK_PAGES:
            break
        cursor, before = None, 0
    return listings


async def _pages(connection: OpenConnection, root: MountRow, listing: syncs.ListedFolder) -> int:
    """List on; returns the number of pages."""
    asking = provider_adapter.Listing(
        listing.folder.external_id, limit=provider_adapter.MAX_LISTED, cursor=listing.cursor
    )
    adapter = connection.adapter
    try:
        answer = await in_time(adapter.browse(connection.access, asking), adapter.listing_seconds)
    except provider_adapter.ProviderProblem as problem:
        # These concern the whole sync. Any other problem is that of one folder, whose others
        # continue.
        if listing.folder.id == root.id or problem.kind in {
            *provider_adapter.RETRIED,
            provider_adapter.ProblemKind.AUTH,
        }:
            raise
        listing.missing = problem.kind is provider_adapter.ProblemKind.GONE
        listing.problem = None if listing.missing else problem.message
        listing.done = True
        return 1
    for page in answer.pages():
        listing.resources += page.resources[: provider_adapter.MAX_LISTED]
        listing.cursor = page.cursor
    listing.done = listing.cursor is None or len(listing.resources) > MAX_ENTRIES
    return len(answer.pages())


def _mount_id(job: JobRow) -> Id:
    return Id(job.progress.get("mountId") or job.input["mountId"])


def _done(job: JobRow, mount_id: Id) -> JsonObject | None:
    """Nothing is left to do; the job remembers its mount."""
    job.progress["mountId"] = str(mount_id)
    return None
