"""Parts of the statement that authenticates a request of a browser."""

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, func
from sqlalchemy.dialects.postgresql import BYTEA

from models.people.browser_sessions.rules import IDLE
from models.people.browser_sessions.tables import browser_session
from models.people.users.joins import USER

BROWSER_SESSION = browser_session.c
"""The columns of sessions that `live_session_of` selects."""


def live_session_of_user() -> tuple[FromClause, ColumnElement[bool]]:
    """The join of a user to the live session with the digest that the statement is given."""
    live = and_(
        browser_session.c.user_id == USER.id,
        browser_session.c.digest == bindparam("digest", type_=BYTEA),
        browser_session.c.expires_at > func.now(),
        browser_session.c.last_used_at > func.now() - IDLE,
    )
    return browser_session, live
