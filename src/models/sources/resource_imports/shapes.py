"""Imports on the wire (interface, Import form result; decisions C18)."""

from models.content.items.shapes import ItemDetail
from models.core.base import EXAMPLE_ID, Id, Input, InputId, Moment, Shape, example
from models.messages.jobs.rules import JobStatus
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.provider_calls.shapes import EXAMPLE_RESOURCE


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
