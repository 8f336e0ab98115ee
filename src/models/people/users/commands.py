"""Creating and changing users by what their identity provider says of them."""

from typing import Any

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import insert

from models.core.base import Id
from models.people.users.tables import app_user
from runtime.database import UnitOfWork
from runtime.ids import new_id


async def sync_profile(
    work: UnitOfWork,
    *,
    issuer: str,
    subject: str,
    email: str | None,
    name: str | None,
    platform_admin: bool | None,
) -> Id:
    """Create the user on the first call, follow the provider afterwards; gives the user's id."""
    profile: dict[str, Any] = {"email": email, "name": name, "updated_at": work.now}
    if platform_admin is not None:
        profile["platform_admin"] = platform_admin
    statement = (
        insert(app_user)
        .values(id=new_id(), issuer=issuer, subject=subject, created_at=work.now, **profile)
        .on_conflict_do_update(index_elements=["issuer", "subject"], set_=profile)
        .returning(app_user.c.id)
    )
    user_id: Id = (await work.execute(statement)).scalar_one()
    return user_id


async def make_platform_admin(work: UnitOfWork, user_id: Id) -> None:
    """Let a user administer the platform."""
    await work.execute(update(app_user).where(app_user.c.id == user_id).values(platform_admin=True))
