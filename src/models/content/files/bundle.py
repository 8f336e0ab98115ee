"""Files in a bundle; their bytes stand beside them, named by their SHA-256."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, or_, select

from models.content.files.rules import file_name, media_type
from models.content.files.tables import file
from models.content.items.joins import placing
from models.content.items.tables import item
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import USER, Stage
from runtime.database import UnitOfWork


def _rows(workspace_id: Id) -> Select[Any]:
    """Files outside the trash; a private one that no item places is its maker's alone."""
    place = select(item.c.id).where(placing(file))
    open_place = place.where(item.c.deleted_at.is_(None)).exists()
    loose = and_(~place.exists(), file.c.private.is_(False))
    return select(file).where(
        file.c.workspace_id == workspace_id, file.c.deleted_at.is_(None), or_(open_place, loose)
    )


def imported_object_key(workspace_id: object, file_id: object) -> str:
    """The key of an imported file's bytes; a repeated import writes them there again."""
    return f"files/{workspace_id}/{file_id}"


async def _prepare(_work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    return [
        {
            **row,
            "name": file_name(row["name"]),
            "mime_type": media_type(row["mime_type"]),
            "object_key": imported_object_key(target.workspace_id, row["id"]),
        }
        for row in rows
    ]


FILES = BundleKind(
    name="file",
    stage=Stage.FILES,
    file="files.ndjson",
    table=file,
    rows=_rows,
    references={"created_by_user_id": USER},
    left_out={
        "object_key": "names a place in the store of the source",
        "deleted_at": "what is in the trash stays behind",
    },
    blobs=True,
    hides=True,
    prepare=_prepare,
)
