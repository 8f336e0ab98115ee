"""Forms and what was submitted through them in a bundle."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from models.content.items.joins import ITEM, live_items
from models.content.surfaces.commands import create_missing
from models.content.surfaces.rules.contents import SurfaceKind
from models.core.base import Id, deferred_adapter
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage, shape_problem
from models.data.fields.bundle import of_live_databases
from models.data.forms.shapes import Questions
from models.data.forms.tables import form, form_submission
from models.data.records.bundle import live_records
from runtime.database import UnitOfWork

_FILE = "forms.ndjson"
_QUESTIONS = deferred_adapter(Questions)


def _forms(workspace_id: Id) -> sa.Select[Any]:
    return of_live_databases(workspace_id, form).where(
        form.c.item_id.in_(live_items(workspace_id, ITEM.id))
    )


def _submissions(workspace_id: Id) -> sa.Select[Any]:
    return sa.select(form_submission).where(
        form_submission.c.workspace_id == workspace_id,
        form_submission.c.form_id.in_(_forms(workspace_id).with_only_columns(form.c.id)),
        form_submission.c.record_id.in_(live_records(workspace_id)),
    )


async def _with_surfaces(
    work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]
) -> Sequence[Row]:
    """The rows; a form whose bundle has no surface for it gets an empty one."""
    item_ids = [Id(row["item_id"]) for row in rows]
    await create_missing(work, target.workspace_id, item_ids, SurfaceKind.FORM)
    return rows


FORMS = BundleKind(
    name="form",
    stage=Stage.CONTENT,
    file=_FILE,
    table=form,
    rows=_forms,
    references={"item_id": "item", "database_id": "database", "created_by_user_id": USER},
    contents=("fields",),
    lists=("fields",),
    check=lambda row: shape_problem(_QUESTIONS, row["fields"], "fields"),
    store=_with_surfaces,
)

SUBMISSIONS = BundleKind(
    name="form_submission",
    stage=Stage.CONTENT,
    file=_FILE,
    table=form_submission,
    rows=_submissions,
    references={"form_id": "form", "record_id": "record"},
)
