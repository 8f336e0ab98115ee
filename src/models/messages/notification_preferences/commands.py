"""Replacing notification preferences."""

from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Principal
from models.messages.notification_preferences.queries import get_preferences
from models.messages.notification_preferences.shapes import Preferences, ReplacePreferences
from models.messages.notification_preferences.tables import notification_preference
from runtime.database import UnitOfWork


async def replace_preferences(
    work: UnitOfWork, principal: Principal, body: ReplacePreferences
) -> Preferences:
    """Make these the caller's choices; they hold from the next notification on."""
    given = {"choices": dict(body.choices), "updated_at": work.now}
    statement = upsert(notification_preference).values(user_id=principal.user_id, **given)
    await work.execute(statement.on_conflict_do_update(index_elements=["user_id"], set_=given))
    return await get_preferences(work, principal)
