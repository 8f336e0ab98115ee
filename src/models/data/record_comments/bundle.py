"""Comments on records in a bundle."""

from typing import Any

from sqlalchemy import Select, select

from models.core.base import Id
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import USER, Stage
from models.data.record_comments.tables import record_comment
from models.data.records.bundle import live_records


def _rows(workspace_id: Id) -> Select[Any]:
    return select(record_comment).where(
        record_comment.c.workspace_id == workspace_id,
        record_comment.c.record_id.in_(live_records(workspace_id)),
    )


RECORD_COMMENTS = BundleKind(
    name="record_comment",
    stage=Stage.CONTENT,
    file="record_comments.ndjson",
    table=record_comment,
    rows=_rows,
    references={
        "record_id": "record",
        "parent_comment_id": "record_comment",
        "author_user_id": USER,
        "mentions": USER,
    },
    parent="parent_comment_id",
)
