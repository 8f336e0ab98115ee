"""An application with a probe resource, whose operations reach every corner of the kernel."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Annotated, Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from pydantic import Field

from api.app import create_app
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Flag, Limit, QueryId, Router
from api.reference.openapi import render
from api.reference.schemas import drop_nulls
from api.routers.registry import ROUTERS
from models.core.access.rules import Level, Scope
from models.core.base import Input, Shape
from models.core.openapi import Deprecated
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import accept_job, find_job
from models.people.users import sync_profile
from runtime import errors
from runtime.configuration.settings import Settings
from runtime.database import UnitOfWork
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client, Contract
from tests.support.document import DOCUMENT
from tests.support.spaces import Space
from tests.support.watched import WatchedDatabase

router = Router(tags=["probes"])

REFUSALS: dict[str, type[errors.PlatformError]] = {
    refusal.code: refusal
    for refusal in vars(errors).values()
    if isinstance(refusal, type) and issubclass(refusal, errors.PlatformError)
}


class Part(Input):
    label: Annotated[str, Field(min_length=1)]


class Probe(Input):
    """The order to the probe: to refuse, to break, or to echo."""

    name: str
    count: int | None = None
    parts: Annotated[list[Part], Field(default_factory=list)]
    data: dict[str, Any] | None = None
    raises: str | None = None


class Wish(Input):
    text: str | None = None


class Echo(Shape):
    value: Any


@router.post(
    "/v1/workspaces/{workspaceId}/probes/{apiKeyId}",
    access=Access(
        scopes=[Scope.AUTOMATIONS_WRITE], resource="api_key", level=Level.EDIT, idempotent=True
    ),
    errors=list(REFUSALS.values()),
)
async def run_probe(request: ApiRequest, body: Probe) -> Data[Echo]:
    """Write a row, then do as told."""
    await sync_profile(
        request.work, issuer="probe", subject=body.name, email=None, name=None, platform_admin=None
    )
    if body.raises == "bug":
        raise KeyError("svc_sk_an_inner_secret")
    if body.raises:
        raise REFUSALS[body.raises]("told so")
    return Data(Echo(value={"name": body.name, "data": body.data}))


@router.post(
    "/v1/workspaces/{workspaceId}/errands",
    access=Access(scopes=[Scope.RECORDS_READ], idempotent=True),
    errors=[errors.ConflictError, errors.InProgressError, errors.UpstreamError],
)
async def run_errand(request: ApiRequest, body: Wish) -> Data[Echo]:
    """Have a job do it, and answer with what became of the job."""
    actor, job_id = request.actor, request.new_id
    await accept_job(request.work, actor, WorkflowKind.EXPORT, job_id, job_id, summary="Errand")

    async def poll(work: UnitOfWork, last: bool) -> Echo | None:
        job = await find_job(work, actor.workspace_id, WorkflowKind.EXPORT, job_id)
        if job.status == JobStatus.FAILED:
            raise errors.ConflictError("It did not work out.")
        if job.status == JobStatus.SUCCEEDED:
            return Echo(value=str(job_id))
        if last:
            raise errors.InProgressError("It goes on.")
        return None

    return request.deferred(poll, within=0.1 if body.text == "hurry" else 20)


@router.post("/v1/workspaces/{workspaceId}/wishes", access=Access())
async def make_wish(body: Wish) -> Data[Echo]:
    """Take a body that may be empty."""
    return Data(Echo(value=body.text))


@router.post("/v1/workspaces/{workspaceId}/batches", access=Access(), batch=True)
async def make_batch(body: Probe) -> Data[Echo]:
    """Take a large body."""
    return Data(Echo(value=len(body.name)))


@router.delete("/v1/workspaces/{workspaceId}/wishes", access=Access())
async def drop_wishes() -> Data[Echo]:
    """Take no body."""
    return Data(Echo(value=None))


@router.get("/v1/probes", access=Access(scopes=[Scope.RESOURCES_READ]))
async def list_probes(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    only_unread: Flag = False,
    parent_id: QueryId | None = None,
) -> Data[Echo]:
    """Read every kind of query parameter; pages over the numbers 0 to 249."""
    page = request.page("probes", limit, cursor, only_unread)
    start = 0 if page.after is None else page.after[0] + 1
    rows = list(range(start, min(start + page.fetch, 250)))
    shown = page.of(rows, lambda row: (row,))
    value = {"items": shown.items, "cursor": shown.cursor, "only": only_unread}
    value["workspaceId"] = str(request.actor.workspace_id)
    value["parentId"] = None if parent_id is None else str(parent_id)
    return Data(Echo(value=value))


@router.get("/v1/admin/probe", access=Access(platform_admin=True))
async def administer(request: ApiRequest) -> Data[Echo]:
    """Be for platform administrators."""
    return Data(Echo(value=request.principal.platform_admin))


@router.get("/v1/keys-only", access=Access(credential="key"))
async def keys_only() -> Data[Echo]:
    """Be for API keys."""
    return Data(Echo(value=None))


@router.get(
    "/v1/probe-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_READ], resource="api_key"),
)
async def find_probe_key(request: ApiRequest) -> Data[Echo]:
    """Find the workspace through the resource."""
    return Data(Echo(value=str(request.actor.workspace_id)))


@router.get("/v1/writes-in-a-get", access=Access())
async def write_in_a_get(request: ApiRequest) -> Data[Echo]:
    """Do what a GET must not."""
    await sync_profile(
        request.work, issuer="probe", subject="x", email=None, name=None, platform_admin=None
    )
    return Data(Echo(value=None))


SOON = Deprecated(since=date(2026, 1, 1), sunset=date(2027, 1, 1))
SOONER = Deprecated(since=date(2026, 3, 1), sunset=date(2026, 9, 1))


class AgingPart(Input):
    label: str = "none"
    old: Annotated[str | None, SOON] = None


class Aging(Input):
    text: Annotated[str | None, SOONER] = None
    parts: Annotated[list[AgingPart], Field(default_factory=list)]


class Aged(Shape):
    value: str
    old: Annotated[str, SOON]


@router.get("/v1/aging/operations", access=Access(), deprecated=SOON)
async def use_aging_operation() -> Data[Echo]:
    """Be deprecated."""
    return Data(Echo(value=None))


@router.get("/v1/aging/parameters", access=Access())
async def use_aging_parameter(
    old_text: Annotated[str | None, SOONER] = None, text: str | None = None
) -> Data[Echo]:
    """Take a parameter that is deprecated."""
    return Data(Echo(value=old_text or text))


@router.post("/v1/aging/bodies", access=Access())
async def use_aging_field(body: Aging) -> Data[Echo]:
    """Take fields that are deprecated."""
    return Data(Echo(value=body.text))


@router.get("/v1/aging/answers", access=Access())
async def read_aging_field() -> Data[Aged]:
    """Answer a field that is deprecated."""
    return Data(Aged(value="new", old="old"))


@pytest_asyncio.fixture(scope="session")
async def _probe_app(
    settings: Settings, _watched_database: WatchedDatabase
) -> AsyncIterator[FastAPI]:
    app = create_app(
        settings, database=_watched_database, background=(), routers=(*ROUTERS, router)
    )
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture(scope="session")
def _probe_contract() -> Contract:
    """What is committed and the probe resource: to describe all of it anew takes seconds."""
    probed = render(router.routes)
    drop_nulls(probed)
    components = {
        kind: probed["components"].get(kind, {}) | parts
        for kind, parts in DOCUMENT["components"].items()
    }
    return Contract({"paths": DOCUMENT["paths"] | probed["paths"], "components": components})


@pytest_asyncio.fixture
async def probes(
    _probe_app: FastAPI,
    _probe_contract: Contract,
    database: WatchedDatabase,  # noqa: ARG001  # watches commits
    space: Space,
) -> AsyncIterator[Client]:
    """A client of the application with the probe resource."""
    async with Client(_probe_app, _probe_contract, space.token) as client:
        yield client


@pytest_asyncio.fixture
async def probe_path(probes: Client, space: Space) -> str:
    """The path of the probe over the space's own key."""
    listed = await probes.get(f"{space.path}/api-keys")
    return f"{space.path}/probes/{listed.json()['data'][0]['id']}"
