"""Workspaces for tests: each with its owner, a key and all else that a test requests."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import delete, select

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Actor, Principal, PrincipalType, Role, Scope
from models.people.api_keys import issue_key
from models.people.users import app_user, sync_profile
from models.people.workspaces import CreateWorkspace, add_member, create_workspace, workspace_member
from runtime.configuration.sections import DEVELOPMENT_ISSUER
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork

MASTER_SECRET = "a master secret that only tests use and that is long enough"


@dataclass(frozen=True, slots=True)
class Space:
    """One workspace, its owner and the owner's key with every scope."""

    database: Database
    keys: KeyRing
    id: UUID
    user_id: UUID
    email: str
    token: str

    @property
    def actor(self) -> Actor:
        """The owner in a session, for tests of commands and queries."""
        principal = Principal(type=PrincipalType.SESSION, id=self.user_id, user_id=self.user_id)
        return Actor(
            principal=principal,
            workspace_id=self.id,
            role=Role.OWNER,
            scopes=principal.effective_scopes(Role.OWNER),
        )

    @property
    def path(self) -> str:
        """Where the workspace's operations are."""
        return f"/v1/workspaces/{self.id}"

    async def key(self, scopes: Iterable[Scope] = tuple(Scope)) -> str:
        """One more key of the owner."""
        async with self.database.transaction() as work:
            return await issue_key(
                work,
                self.keys,
                workspace_id=self.id,
                user_id=self.user_id,
                name="another",
                scopes=scopes,
            )

    async def member(self, role: Role) -> tuple[UUID, str]:
        """A further member with this role and a key with every scope; gives id and token."""
        async with self.database.transaction() as work:
            user_id = await add_person(work, f"{role}-{uuid4().hex}@example.test")
            await add_member(work, self.id, user_id, role)
            token = await issue_key(
                work, self.keys, workspace_id=self.id, user_id=user_id, name=role
            )
        return user_id, token

    async def session(self, user_id: UUID, issuer: DevelopmentIssuer) -> str:
        """A session of a member."""
        async with self.database.reading() as work:
            found = select(app_user.c.email, app_user.c.name).where(app_user.c.id == user_id)
            (row,) = await work.rows(found)
        return issuer.mint(row.email, row.name)

    async def remove(self, user_id: UUID) -> None:
        """Take a member out of the workspace."""
        async with self.database.transaction() as work:
            await work.execute(
                delete(workspace_member).where(
                    workspace_member.c.workspace_id == self.id,
                    workspace_member.c.user_id == user_id,
                )
            )


MakeSpace = Callable[[], Awaitable[Space]]


async def make_space(database: Database, keys: KeyRing) -> Space:
    """A fresh workspace."""
    email = f"owner-{uuid4().hex}@example.test"
    async with database.transaction() as work:
        user_id = await add_person(work, email)
        principal = Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)
        # Its own slug is free at once: those made of a name are tried one by one.
        wanted = CreateWorkspace(name="Test", slug=f"test-{user_id.hex}")
        made = await create_workspace(work, principal, wanted)
        token = await issue_key(
            work, keys, workspace_id=made.workspace.id, user_id=user_id, name="owner"
        )
    return Space(database, keys, made.workspace.id, user_id, email, token)


async def add_person(work: UnitOfWork, email: str) -> UUID:
    """The id of a person who has signed in once, with this address."""
    return await sync_profile(
        work,
        issuer=DEVELOPMENT_ISSUER,
        subject=email,
        email=email,
        name="Test",
        platform_admin=None,
    )
