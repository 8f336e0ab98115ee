"""Makes the ASGI application that `workspace api` serves, and the text of `openapi.json`."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Lifespan
from typing_extensions import override

from api.kernel import services as kernel_services
from api.kernel.authorization import RESOURCES
from api.kernel.dispatch import Dispatch, UnknownMethodError
from api.kernel.limits import ConnectionShares, RateLimits
from api.kernel.operation import Operation
from api.kernel.responses import RequestContext
from api.kernel.routing import Route, Router
from api.kernel.sessions import IdentityProvider, SessionVerifier
from api.realtime.feeds import serve_socket
from api.reference.document import openapi_document, written_document
from api.reference.documentation import Documentation
from api.reference.openapi import TITLE, VERSION
from api.routers.registry import ROUTERS
from models.automation.automations.graphs import set_mail_server
from models.registrations import register_models
from runtime.configuration.resources import platform_database, platform_policy
from runtime.configuration.settings import Settings
from runtime.crypto import KeyRing
from runtime.database import Database
from runtime.errors import NotFoundError
from runtime.object_store import ObjectStore


class WorkspaceApi(FastAPI):
    """FastAPI whose requests go to our dispatch instead of its router (docs/adr/0025)."""

    def __init__(self, routes: Sequence[Route], **options: Any) -> None:
        super().__init__(**options)
        self._operations = tuple(routes)
        self._documentation: asyncio.Task[Documentation] | None = None
        self._dispatch: Dispatch | None = None

    @override
    def build_middleware_stack(self) -> ASGIApp:
        self._dispatch = Dispatch(self._operations, self.router, serve_socket)
        return RequestContext(self._dispatch)

    def operation_at(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """The operation or page that a logged request asked for, and the parameters in its path."""
        assert self._dispatch is not None, "it is made before the first request"
        try:
            return self._dispatch.find_page(method, path) or self._dispatch.find(method, path)
        except (NotFoundError, UnknownMethodError):
            return None

    @override
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi_document(self._operations)
        return self.openapi_schema

    async def documentation(self) -> Documentation:
        """The description of the API, for clients and people.

        It is made for the first request that asks, in a thread, and no start of a process waits for
        it. The document is the one that was written for this build, where there is one: to make it
        anew takes seconds.
        """
        if self._documentation is None:
            self._documentation = asyncio.create_task(asyncio.to_thread(self._describe))
        return await asyncio.shield(self._documentation)

    def _describe(self) -> Documentation:
        return Documentation.of(written_document(self._operations) or self.openapi())


def create_app(
    settings: Settings,
    *,
    database: Database | None = None,
    background: Sequence[kernel_services.Background] = (
        kernel_services.secret_keys,
        kernel_services.object_store,
        kernel_services.notifications,
        kernel_services.feeds,
        kernel_services.overdue_alerts,
    ),
    routers: Sequence[Router] = ROUTERS,
) -> FastAPI:
    """The API; `background` runs from start to shutdown, entered in order, left in reverse.

    A `database` that is handed in is left open at the end.
    """
    register_models()
    set_mail_server(is_configured=settings.mail is not None)
    routes = [route for router in routers for route in router.routes]
    _check_resources(routes)
    app = WorkspaceApi(
        routes,
        title=TITLE,
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(database is None, background),
    )
    app.state.services = _services(settings, database)
    return app


def _services(settings: Settings, database: Database | None) -> kernel_services.Services:
    if database is None:
        database = platform_database(settings, "workspace-api", answers=True)
    sessions = None
    if settings.oidc_issuer and settings.oidc_audience and settings.oidc_jwks:
        sessions = SessionVerifier(
            settings.oidc_issuer,
            settings.oidc_audience,
            settings.oidc_jwks,
            settings.platform_admin_claim,
        )
    return kernel_services.Services(
        settings=settings,
        database=database,
        keys=KeyRing(settings.secret_keys),
        sessions=sessions,
        request_log=kernel_services.RequestLogWriter(database),
        store=ObjectStore(settings.object_store),
        limits=RateLimits(settings),
        shares=ConnectionShares(max(1, database.connections // 2)),
        outbound=platform_policy(settings),
        provider=IdentityProvider(settings) if settings.oidc_client_id else None,
    )


def _lifespan(
    owns_database: bool, background: Sequence[kernel_services.Background]
) -> Lifespan[WorkspaceApi]:
    @asynccontextmanager
    async def lifespan(app: WorkspaceApi) -> AsyncIterator[None]:
        services: kernel_services.Services = app.state.services
        async with AsyncExitStack() as stack:
            if owns_database:
                stack.push_async_callback(services.database.close)
            services.request_log.start()
            stack.push_async_callback(services.request_log.stop)
            for run_beside in background:
                await stack.enter_async_context(run_beside(services))
            yield

    return lifespan


def _check_resources(routes: Sequence[Route]) -> None:
    """Find at the start what would fail at a request, or read what locks do not hold."""
    for route in routes:
        access = route.operation.access
        if access.prefetch is not None and not route.operation.reads:
            raise RuntimeError(f"{route.path}: what writes reads under its locks, not before.")
        if access.resource is None:
            continue
        if access.resource not in RESOURCES or access.parameter not in route.operation.ids:
            raise RuntimeError(
                f"{route.path}: resource {access.resource} needs a line in api.kernel.authorization"
                f" and the path parameter {access.parameter}."
            )


def openapi_text() -> str:
    """The OpenAPI document, ready to be written to `openapi.json`."""
    document = openapi_document([route for router in ROUTERS for route in router.routes])
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
