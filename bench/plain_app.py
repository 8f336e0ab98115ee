"""The floor of the request pipeline: three endpoints as FastAPI's own routes.

They make the same statements and call the same functions of the models, through `Depends` and
`response_model`. They have no idempotency, no request log, no limits and no strict JSON.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel

from api.kernel.authorization import RESOURCES, Caller, authenticate
from api.kernel.services import Services
from api.kernel.sessions import KeyToken
from api.routers.service import Health
from models.content.items import queries
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Actor, Level, Scope, level_on
from models.workspace.targets import items as commands
from models.workspace.targets.shapes import CreateItem, PlacedTarget
from runtime.database import UnitOfWork

T = TypeVar("T")


class Data(BaseModel, Generic[T]):
    """The envelope of a success (interface.md#bodies)."""

    data: T


Open = Callable[[], AbstractAsyncContextManager[UnitOfWork]]


def plain_app(services: Services) -> FastAPI:
    """The application; it needs no lifespan."""
    app = FastAPI()
    reading, reader = _dependencies(services, services.database.reading, Scope.RESOURCES_READ)
    writing, writer = _dependencies(services, services.database.transaction, Scope.RESOURCES_WRITE)

    @app.get("/healthz", response_model=Data[Health])
    async def get_health() -> Any:
        return Data(data=Health(status="ok"))

    @app.get("/v1/items/{item_id}", response_model=Data[ItemDetail])
    async def get_item(
        item_id: UUID,
        actor: Annotated[Actor, Depends(reader)],
        work: Annotated[UnitOfWork, Depends(reading, scope="function")],
    ) -> Any:
        places, user_id = [actor.workspace_id], actor.principal.user_id
        placement = await RESOURCES["item"](work, places, item_id, user_id)
        if placement is None or level_on(placement, actor.role) < Level.VIEW:
            raise HTTPException(404)
        return Data(data=await queries.get_item(work, actor.workspace_id, item_id))

    @app.post("/v1/items", response_model=Data[PlacedTarget], status_code=201)
    async def create_item(
        body: CreateItem,
        actor: Annotated[Actor, Depends(writer)],
        work: Annotated[UnitOfWork, Depends(writing, scope="function")],
    ) -> Any:
        return Data(data=await commands.create_item(work, actor, services.keys, body))

    return app


def _dependencies(services: Services, open_work: Open, scope: Scope) -> tuple[Any, Any]:
    """A transaction that commits before the answer is sent, and its actor."""

    async def transaction() -> AsyncIterator[UnitOfWork]:
        async with open_work() as work:
            yield work

    async def caller(
        authorization: Annotated[str, Header()],
        work: Annotated[UnitOfWork, Depends(transaction, scope="function")],
    ) -> Caller:
        return await authenticate(services, work, KeyToken(authorization.partition(" ")[2]))

    async def actor(caller: Annotated[Caller, Depends(caller, scope="function")]) -> Actor:
        principal = caller.principal
        workspace_id = principal.key_workspace_id
        if workspace_id is None or workspace_id not in caller.roles:
            raise HTTPException(404)
        role = caller.roles[workspace_id]
        scopes = principal.usable_scopes(role)
        if scope not in scopes:
            raise HTTPException(403)
        return Actor(principal=principal, workspace_id=workspace_id, role=role, scopes=scopes)

    return transaction, actor
