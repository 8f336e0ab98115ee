"""The page that lists every place that names a thing, before it is deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.console.entered import read_as
from api.console.forms import paged
from api.console.rendering import Shell, page, shell_of
from api.console.routing import page_router
from api.console.words import plain, sentence_case
from api.kernel.routing import Access, ApiRequest, QueryId
from api.routers.workspace import impact as api
from models.core.access.rules import Scope
from models.core.references.rules import SubjectKind
from models.workspace.impact.queries import ImpactPlace, ImpactQuestion, impact

router = page_router()

Key = Annotated[str, Field(min_length=1, max_length=63)]


@dataclass(frozen=True, slots=True)
class Line:
    """A place of the list, in words."""

    kind: str
    place: ImpactPlace
    href: str | None
    version: str
    """The version and its state, or the number of open runs."""


@router.get("/workspaces/{workspaceId}/impact", access=paged(Access(scopes=[Scope.WORKSPACE_READ])))
async def get_impact_page(
    request: ApiRequest,
    kind: SubjectKind,
    subject_id: QueryId | None = None,
    key: Key | None = None,
) -> Response:
    """Look at the places that use a thing."""
    body = {
        "kind": kind,
        **({} if subject_id is None else {"id": str(subject_id)}),
        **({} if key is None else {"key": key}),
    }
    question = read_as(ImpactQuestion, body)
    answer = await impact(request.work, request.actor, question)
    shell = await shell_of(request)
    return page(
        request,
        "impact.html",
        shell,
        answer=answer,
        noun=plain(kind),
        lines=_lines(shell, answer.places),
        more=answer.total - answer.hidden - len(answer.places),
        api=shell.calls((api.get_impact, {**body, "change": "delete"})),
    )


def _lines(shell: Shell, places: Sequence[ImpactPlace]) -> Sequence[Line]:
    return [
        Line(sentence_case(plain(place.kind)), place, _href(shell, place), _version(place))
        for place in places
    ]


def _href(shell: Shell, place: ImpactPlace) -> str | None:
    """The page of the definition, where there is one."""
    if place.kind in ("automation", "automation_run"):
        return shell.at("automations", place.id)
    if place.kind in ("field", "record_layout", "record_template", "view"):
        return shell.at("databases", place.database_id)
    return None


def _version(place: ImpactPlace) -> str:
    if place.runs is not None:
        return f"{place.runs:,} open {'run' if place.runs == 1 else 'runs'} of v{place.version}"
    return f"v{place.version}, {place.state}" if place.version is not None else ""
