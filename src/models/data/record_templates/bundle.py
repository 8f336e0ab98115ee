"""Record templates in a bundle; their contents are surfaces, which come before them."""

from typing import Any

from sqlalchemy import Select

from models.core.base import Id, InputId, deferred_adapter
from models.core.bundles.kinds import BundleKind
from models.core.bundles.rules import Stage, shape_problem
from models.data.fields.bundle import of_live_databases
from models.data.record_templates.tables import record_template

_RELATIONS = deferred_adapter(dict[str, list[InputId]])


def _rows(workspace_id: Id) -> Select[Any]:
    return of_live_databases(workspace_id, record_template)


RECORD_TEMPLATES = BundleKind(
    name="record_template",
    stage=Stage.CONTENT,
    file="databases.ndjson",
    table=record_template,
    rows=_rows,
    references={"database_id": "database", "content_surface_id": "surface"},
    contents=("data", "relations"),
    check=lambda row: shape_problem(_RELATIONS, row["relations"], "relations"),
)
