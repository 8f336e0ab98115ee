"""What a change would break, and renames of fields that change what names them."""

from api.kernel.routing import Access, Router
from models.core.access.rules import Scope
from models.workspace.impact import queries

router = Router(tags=["impact"])

IMPACT = "/v1/workspaces/{workspaceId}/impact"


@router.post(IMPACT, access=Access(scopes=[Scope.WORKSPACE_READ]), calls=queries.impact)
async def get_impact() -> None:
    """Get the impact of a change: every place that names a field, a database or another thing.

    Graphs of published, draft and canary versions and of open runs are searched, actions, triggers,
    formulas, rollups, buttons, views, forms, record templates, record layouts, data sources,
    mounts, blocks of pages and dashboards, alert rules and share links. Nothing is changed. A key
    that an expression computes is not found. The scope that reads the thing is needed as well.
    """
