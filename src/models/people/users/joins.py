"""Parts of statements about users, for nouns whose rows are somebody's."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, select

from models.core.base import Id
from models.people.users.tables import app_user

USER = app_user.c
"""The columns of users that `of_user` and `user_of` select."""


def user_of(user_id: ColumnElement[Any]) -> tuple[FromClause, ColumnElement[bool]]:
    """The join to the user that a column names: `select(…).join(*user_of(noun.c.user_id))`."""
    return app_user, app_user.c.id == user_id


def of_user(user_id: Id, *columns: ColumnElement[Any]) -> Select[Any]:
    """These columns of one user, and of what the caller joins."""
    return select(*columns).where(app_user.c.id == user_id)
