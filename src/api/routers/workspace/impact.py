"""The impact of a change, and renames of fields that change all that names them."""

from api.kernel.routing import Access, Router
from api.routers.data.databases import FIELD, WRITE_FIELD
from models.core.access.rules import Scope
from models.workspace.impact import fields, queries
from runtime.errors import ConflictError

router = Router(tags=["impact"])

IMPACT = "/v1/workspaces/{workspaceId}/impact"


@router.post(IMPACT, access=Access(scopes=[Scope.WORKSPACE_READ], safe=True), calls=queries.impact)
async def get_impact() -> None:
    """Get the impact of a change: every place that names a field, a database or another thing.

    Graphs of published, draft and canary versions and of open runs are searched, actions, triggers,
    formulas, rollups, buttons, views, forms, record templates, record layouts, data sources,
    mounts, blocks of pages and dashboards, alert rules and share links. Nothing is changed. A key
    that an expression computes is not found. Of an item, the places that name its contents are
    listed, unless they are deleted with it. The scope that reads the thing is needed as well.
    """


@router.post(
    f"{FIELD}/rename", access=WRITE_FIELD, errors=[ConflictError], calls=fields.rename_field
)
async def rename_field() -> None:
    """Rename the key of a field.

    The values of all records follow. With `rewrite` every place that `get_impact` lists gets the
    new key in the same transaction: the published version of an automation is replaced by a new one
    with a note, a draft is edited. Runs that wait or are queued continue with the new key. It is
    refused while a canary uses the field, or an open run that does more than wait. Without
    `rewrite` it is refused while anything but the layout of record pages names the field.
    """
