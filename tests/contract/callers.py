"""Callers of a furnished workspace who may do less than its owner; each is made once."""

from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role, Scope
from tests.contract.furnished import Furnished
from tests.contract.operations import Operation
from tests.support.admins import admin_session
from tests.support.client import Client


class Callers:
    """Clients by what their credential may do."""

    def __init__(self, made: Furnished) -> None:
        self._made = made
        self._clients: dict[object, Client] = {}

    async def key(self, scopes: Iterable[Scope]) -> Client:
        """A key of the owner with these scopes."""
        held = frozenset(scopes)
        return await self._once(held, lambda: self._made.space.key(held))

    async def member(self, role: Role) -> Client:
        """A member with this role."""

        async def token() -> str:
            return (await self._made.space.member(role))[1]

        return await self._once(role, token)

    async def removed(self) -> Client:
        """An administrator who is no longer a member."""

        async def token() -> str:
            user_id, token = await self._made.space.member(Role.ADMIN)
            await self._made.space.remove(user_id)
            return token

        return await self._once("removed", token)

    async def granted(self, grant: Callable[[UUID], Awaitable[None]]) -> Client:
        """An editor with a grant of their own."""

        async def token() -> str:
            user_id, token = await self._made.space.member(Role.EDITOR)
            await grant(user_id)
            return token

        return await self._once("granted", token)

    async def _once(self, who: object, token: Callable[[], Awaitable[str]]) -> Client:
        if who not in self._clients:
            self._made.checksum = None
            self._clients[who] = self._made.client.with_token(await token())
        return self._clients[who]


def caller_of(made: Furnished, operation: Operation, issuer: DevelopmentIssuer) -> Client:
    """The owner: with a key, or in a session where the operation wants one.

    What is for platform administrators is called by one.
    """
    if operation.access["platformAdmin"]:
        return made.client.with_token(admin_session(issuer))
    if operation.access["credential"] != "session":
        return made.client
    email = made.secrets.get(f"email of {operation.id}", made.space.email)
    return made.client.with_token(issuer.mint(email, "Test"))
