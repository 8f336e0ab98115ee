"""Search over pages, items, records and runs: a page of its own, and the palette of every page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.console.forms import paged
from api.console.rendering import Shell, page, shell_of
from api.console.routing import page_router
from api.console.words import named
from api.kernel.routing import Access, ApiRequest
from api.routers.content import items as api
from models.core.access.rules import Scope
from models.workspace import search
from models.workspace.search import HitKind, SearchHit
from runtime.ids import parse_id

router = page_router()

_MOST = 20
_PAGES: Sequence[tuple[str, str, Scope | None]] = (
    ("Home", "", None),
    ("Content", "items", Scope.RESOURCES_READ),
    ("New database", "databases/new", Scope.DATABASES_WRITE),
    ("Import a spreadsheet", "import", Scope.DATABASES_WRITE),
    ("Data sources", "data-sources", Scope.DATA_SOURCES_READ),
    ("New data source", "data-sources/new", Scope.DATA_SOURCES_WRITE),
    ("Integrations", "integrations", Scope.INTEGRATIONS_READ),
    ("Runs", "runs", Scope.AUTOMATIONS_READ),
    ("Failed runs", "runs?status=failed", Scope.AUTOMATIONS_READ),
    ("Waiting runs", "runs?status=waiting", Scope.AUTOMATIONS_READ),
    ("Run statistics", "runs/statistics", Scope.AUTOMATIONS_READ),
    ("Incidents", "incidents", Scope.AUTOMATIONS_READ),
    ("Alert rules", "alert-rules", Scope.AUTOMATIONS_READ),
    ("New alert rule", "alert-rules/new", Scope.AUTOMATIONS_WRITE),
    ("Run operations", "runs/operations", Scope.AUTOMATIONS_READ),
    ("Automations", "automations", Scope.AUTOMATIONS_READ),
    ("Changes", "changes", Scope.WORKSPACE_CHANGES_READ),
    ("Mounts", "integrations/mounts", Scope.INTEGRATIONS_READ),
    ("Rate limits", "integrations/outbound-limits", Scope.INTEGRATIONS_READ),
    ("Workspace pause", "settings/pause", Scope.WORKSPACE_READ),
    ("Settings", "settings", None),
    ("Notifications", "notifications", None),
)
"""Name, path below the workspace, and the scope that its page demands."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that a search leads to."""

    title: str
    kind: str
    path: str


@router.get("/workspaces/{workspaceId}/search", access=paged(Access(scopes=[Scope.WORKSPACE_READ])))
async def get_search(
    request: ApiRequest, q: Annotated[str, Field(max_length=200)] | None = None
) -> Response:
    """Find pages, items, records and runs by a part of their name, or by their id."""
    text = (q or "").strip()
    shell = await shell_of(request)
    titled = [await _titled(request, shell, text, kind) for kind in (HitKind.ITEM, HitKind.RECORD)]
    hits = [*_pages(shell, text), *_run(text), *(hit for hits, _ in titled for hit in hits)]
    more = any(more for _, more in titled)
    calls = shell.calls((api.search, {"q": text}))
    return page(request, "search.html", shell, text=text, hits=hits, more=more, api=calls)


def _pages(shell: Shell, text: str) -> Iterator[Hit]:
    for title, place, scope in _PAGES:
        is_open = scope is None or scope in shell.scopes
        if is_open and text.casefold() in title.casefold():
            yield Hit(title, "Page", shell.at(place) if place else shell.at())


def _run(text: str) -> Iterator[Hit]:
    if (run_id := parse_id(text)) is not None:
        yield Hit(str(run_id), "Run", f"/runs/{run_id}")


async def _titled(
    request: ApiRequest, shell: Shell, text: str, kind: HitKind
) -> tuple[Sequence[Hit], bool]:
    """The newest hits of a kind, and whether there are more.

    Kinds are asked apart: the records of a database may have its name in their titles.
    """
    if not text or Scope.RESOURCES_READ not in shell.scopes:
        return [], False
    first = request.page("console search", _MOST, None, text, kind)
    result = await search.search_titles(request.work, request.actor, text, first, kind)
    return [_hit(one) for one in result.results], result.cursor is not None


def _hit(hit: SearchHit) -> Hit:
    title = hit.title or "Untitled"
    if hit.kind is HitKind.RECORD:
        return Hit(title, f"Record in {hit.item_title or 'Untitled'}", f"/records/{hit.id}")
    return Hit(title, named(hit.item_kind), f"/items/{hit.item_id}")
