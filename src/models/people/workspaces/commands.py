"""Creating, changing and deleting workspaces, and adding members."""

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from models.core.access.rules import Actor, Principal, Role
from models.core.base import Id
from models.people.users.commands import make_platform_admin, sync_profile
from models.people.workspaces.handlers import workspace_deleted
from models.people.workspaces.queries import entry, get_workspace
from models.people.workspaces.rules import numbered, slug_from
from models.people.workspaces.shapes import (
    ChangePlan,
    CreateWorkspace,
    DeletedWorkspace,
    PlanBody,
    UpdateWorkspace,
    WorkspaceEntry,
)
from models.people.workspaces.tables import Workspace, workspace, workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.identity_settings import DEVELOPMENT_ISSUER
from runtime.ids import new_id

_NUMBERED = 6


async def create_workspace(
    work: UnitOfWork, principal: Principal, body: CreateWorkspace
) -> WorkspaceEntry:
    """A workspace owned by the caller; raises ConflictError when the slug it asks for is taken."""
    row = await _insert(work, principal.user_id, body.name, body.slug, body.icon)
    return entry(row, principal, Role.OWNER)


async def update_workspace(work: UnitOfWork, actor: Actor, body: UpdateWorkspace) -> WorkspaceEntry:
    """Change name, slug or icon; raises ConflictError when the slug is taken."""
    given = body.model_dump(exclude_unset=True)
    values = {key: value for key, value in given.items() if value is not None or key == "icon"}
    try:
        async with work.savepoint():
            await work.execute(
                update(workspace)
                .where(workspace.c.id == actor.workspace_id)
                .values(**values, updated_at=work.now)
            )
    except IntegrityError as error:
        raise ConflictError(f"The slug {body.slug} is taken; choose another.") from error
    return await get_workspace(work, actor.principal, actor.workspace_id, actor.role)


async def change_plan(work: UnitOfWork, actor: Actor, body: ChangePlan) -> PlanBody:
    """Put a workspace on another plan."""
    this = update(workspace).where(workspace.c.id == actor.workspace_id)
    await work.execute(this.values(plan=body.plan.value, updated_at=work.now))
    return PlanBody(plan=body.plan)


async def delete_workspace(work: UnitOfWork, actor: Actor) -> DeletedWorkspace:
    """Close a workspace for everybody; its keys stop with it, and its slug is free again."""
    await work.execute(
        update(workspace)
        .where(workspace.c.id == actor.workspace_id, workspace.c.deleted_at.is_(None))
        .values(deleted_at=work.now, updated_at=work.now)
    )
    await workspace_deleted(work, actor.workspace_id)
    return DeletedWorkspace(id=actor.workspace_id)


async def lock_members(work: UnitOfWork, workspace_id: Id) -> None:
    """Have other changes of the members of a workspace wait for this one, at its row."""
    await work.execute(
        select(workspace.c.id).where(workspace.c.id == workspace_id).with_for_update()
    )


async def add_member(work: UnitOfWork, workspace_id: Id, user_id: Id, role: Role) -> None:
    """Make a user a member, or change what they are."""
    statement = upsert(workspace_member).values(
        workspace_id=workspace_id, user_id=user_id, role=role.value, created_at=work.now
    )
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "user_id"], set_={"role": role.value}
        )
    )


async def ensure_first_workspace(
    work: UnitOfWork, email: str, name: str, *, issuer: str = DEVELOPMENT_ISSUER
) -> tuple[Id, Id]:
    """The first workspace of a person and the person's user id, made if they are not there.

    The person is who `issuer` calls by their e-mail address, as the development issuer does, and
    becomes a platform administrator (decisions C4).
    """
    user_id = await sync_profile(
        work, issuer=issuer, subject=email.lower(), email=email, name=name, platform_admin=True
    )
    await make_platform_admin(work, user_id)
    first = (
        select(workspace.c.id)
        .where(workspace.c.created_by_user_id == user_id, workspace.c.deleted_at.is_(None))
        .order_by(workspace.c.created_at, workspace.c.id)
        .limit(1)
    )
    existing: Id | None = await work.scalar(first)
    if existing is not None:
        return existing, user_id
    row = await _insert(work, user_id, f"{name}'s workspace", None, None)
    return row.id, user_id


async def create_hidden_workspace(
    work: UnitOfWork, workspace_id: Id, name: str, user_id: Id
) -> None:
    """A workspace that is filled before anybody sees it; again, the same one.

    To everybody it is like a deleted one, until `reveal_workspace`.
    """
    await work.execute(
        upsert(workspace)
        .values(
            id=workspace_id,
            name=name,
            slug=slug_from(name),
            created_by_user_id=user_id,
            created_at=work.now,
            updated_at=work.now,
            deleted_at=work.now,
        )
        .on_conflict_do_nothing()
    )


async def reveal_workspace(work: UnitOfWork, workspace_id: Id, user_id: Id) -> None:
    """Let its members see a workspace that was hidden; without an owner it gets this one."""
    condition = workspace.c.id == workspace_id
    name = await work.scalar(select(workspace.c.name).where(condition))
    for slug in _slugs(name, workspace_id):
        taken = select(workspace.c.id).where(
            workspace.c.slug == slug, workspace.c.deleted_at.is_(None)
        )
        if await work.scalar(taken) is None:
            break
    await work.execute(
        update(workspace).where(condition).values(slug=slug, deleted_at=None, updated_at=work.now)
    )
    owners = select(workspace_member.c.user_id).where(
        workspace_member.c.workspace_id == workspace_id,
        workspace_member.c.role == Role.OWNER.value,
    )
    if await work.scalar(owners) is None:
        await add_member(work, workspace_id, user_id, Role.OWNER)


async def _insert(
    work: UnitOfWork, user_id: Id, name: str, slug: str | None, icon: str | None
) -> Workspace:
    """A workspace with its owner, under the wanted slug or the first free one made of the name."""
    row_id = new_id()
    for candidate in [slug] if slug else _slugs(name, row_id):
        statement = (
            upsert(workspace)
            .values(
                id=row_id,
                name=name,
                slug=candidate,
                icon=icon,
                created_by_user_id=user_id,
                created_at=work.now,
                updated_at=work.now,
            )
            .on_conflict_do_nothing()
            .returning(workspace)
        )
        row = await work.first(statement, of=Workspace)
        if row is not None:
            await add_member(work, row_id, user_id, Role.OWNER)
            return row
    raise ConflictError(f"The slug {slug} is taken; choose another, or leave it out.")


def _slugs(name: str, row_id: Id) -> list[str]:
    """The slugs to try in turn; the last is free, for it carries the id."""
    slug = slug_from(name)
    free = f"{slug}-{row_id.hex[-12:]}"
    return [*(numbered(slug, number) for number in range(1, _NUMBERED)), free]
